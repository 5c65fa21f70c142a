import Identity
import Replication
import Storage
import Wire

/// Turning an empty directory into a node's.
package enum NodeSetup {
  /// What a person is told after a fleet was made.
  package struct Founded: Sendable {
    package let fleet: FleetID
    package let device: DeviceID
    package let rootKeyPath: String
    /// Where the files of an earlier set-up are that was cut off here.
    package let aside: String?
  }

  /// Whose directory it is, without opening its store: a running node is not in the way.
  package static func identity(of path: String) throws(NodeError) -> (fleet: FleetID, device: DeviceID) {
    if let refusal = DirectoryContents(path).nodeRefusal { throw refusal }
    let directory: DataDirectory
    do throws(FileError) { directory = try DataDirectory(existing: path) } catch { throw NodeError(error) }
    let files = try NodeFiles.load(directory)
    return (files.fleet, files.device)
  }

  /// Why no node can be started on a directory as it is; nil where one lies there.
  package static func refusal(of path: String) -> NodeError? { DirectoryContents(path).nodeRefusal }

  package static func isSetUp(_ path: String) -> Bool { NodeFiles.isSetUp(path) }

  /// What a first look at a directory says of starting a node there.
  package enum Start: Sendable, Equatable {
    /// No set-up to enter a fleet was ever begun here: a new one may be made.
    case newFleet
    case node
    /// The store is to be fetched anew from the fleet before the node can run.
    case nodeWithoutStore
  }

  package static func start(of path: String) throws(NodeError) -> Start {
    let contents = DirectoryContents(path)
    switch contents.standing {
    case .empty:
      do throws(FileError) { try DataDirectory.check(preparing: path) } catch { throw NodeError(error) }
      return .newFleet
    case .unfinished(let marker?) where marker.purpose == .found: return .newFleet
    case .node, .unfinished, .incomplete:
      if let refusal = contents.nodeRefusal ?? contents.storeRefusal { throw refusal }
      return contents.store == .lost ? .nodeWithoutStore : .node
    }
  }

  /// Keys, a new fleet, and this device as its first admin.
  package static func found(
    _ path: String, fleetName: Text, user: Text, label: Text, profile: ValueMap,
    _ openness: FleetFounding.Openness = .open
  ) throws(NodeError) -> Founded {
    do {
      try check(fleetName: fleetName, user: user, label: label, profile: profile)
      let claim = try SetupClaim(path)
      let founding = try FleetFounding.make(
        fleetName: fleetName, user: user, label: label, profile: profile, openness)
      let directory = try claim.begin(.found, fleet: founding.fleet, key: founding.deviceKey)
      try KeyFile.fleetRoot.create(founding.rootKey, in: directory)
      let files = NodeFiles(directory: directory, fleet: founding.fleet, deviceKey: founding.deviceKey)
      try store(founding.statements, files, claim.lock)
      try files.finish()
      return Founded(
        fleet: founding.fleet, device: files.device, rootKeyPath: KeyFile.fleetRoot.path(in: directory),
        aside: claim.aside)
    } catch {
      throw NodeError(any: error)
    }
  }

  /// What can be said of a new fleet before anything is made.
  package static func check(fleetName: Text, user: Text, label: Text, profile: ValueMap) throws(NodeError) {
    try check(user, "a user", mayBeEmpty: false)
    try check(label: label)
    try check(fleetName, "a fleet's name")
    try check(profile)
  }

  package static func check(label: Text) throws(NodeError) { try check(label, "a label") }

  /// Names as statements hold them, and people read them.
  static func check(_ text: Text, _ what: String, mayBeEmpty: Bool = true) throws(NodeError) {
    let isFit =
      text.utf8.count <= StatementCodec.textByteLimit && (mayBeEmpty || !text.utf8.isEmpty)
      && !text.utf8.contains { $0 < 0x20 || $0 == 0x7f }
    guard isFit else {
      throw NodeError(
        .unprocessable,
        "\(what) has \(mayBeEmpty ? "at most" : "1 to") \(StatementCodec.textByteLimit) bytes and no control characters"
      )
    }
  }

  package static let profileLimit = 16

  static func check(_ profile: ValueMap) throws(NodeError) {
    let isFit = profile.entries.allSatisfy { entry in
      guard case .string(let text) = entry.value else { return false }
      return max(text.utf8.count, entry.key.utf8.count) <= StatementCodec.textByteLimit
    }
    guard isFit, profile.count <= profileLimit else {
      throw NodeError(
        .unprocessable,
        "a profile has at most \(profileLimit) entries, each a text of at most \(StatementCodec.textByteLimit) bytes"
      )
    }
  }

  /// What a join brought home.
  static func enter(
    _ directory: DataDirectory, _ lock: DirectoryLock, fleet: FleetID, deviceKey: SigningKey, statements: [Statement]
  ) throws {
    let files = NodeFiles(directory: directory, fleet: fleet, deviceKey: deviceKey)
    try store(statements, files, lock)
    try files.finish()
  }

  private static func store(_ statements: [Statement], _ files: NodeFiles, _ lock: DirectoryLock) throws {
    let store = try Store.open(
      directory: files.directory.path, fleet: files.fleet, device: files.device, lock: lock)
    try store.write(.full) { transaction in
      for statement in statements {
        try transaction.addStatement(
          id: statement.id, encoded: statement.encoded, arrived: WallClock.milliseconds)
      }
    }
    if try store.carryOverAll() { try store.closeLog() }
  }
}
