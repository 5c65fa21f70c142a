import Engine
import Glibc
import Identity
import Replication
import Storage
import Transport
import Wire

/// Fills the store of a directory that has its keys, and nothing else of a node, with runs that a ledger kept. Each is judged
/// as one that a peer sends, and stored by the same engine; nothing listens and nothing is dialled meanwhile.
///
/// What came is durable, and a later try goes on behind it. Until ``finish()`` the directory says that it is not whole.
package final class LedgerFilling {
  private let files: NodeFiles
  private let store: Store
  private let mark: SidecarMark
  private let engine: NodeEngine
  private let decoder: FrameDecoder
  private let log: NodeLog
  private var waiting: [(name: PartitionName, run: DeliveredRun)] = []
  private var waitingBytes = 0
  /// Runs that acceptance did not take.
  package private(set) var notTaken = 0
  /// Runs for which their author has no right, or has none any more by what ended it: they stay in the ledger alone.
  package private(set) var withoutRight = 0

  /// In the directory while it is being filled.
  package static let markerFile = "ledger.filling"
  /// Of runs and contexts that wait for one commit, passed by one run at the most.
  private static let byteLimit = 1024 * 1024
  private static let contextEntryBytes = 48

  /// - Parameter statements: of the ledger, each as its issuer signed it.
  package init(
    _ path: String, fleet: FleetID, _ statements: [Statement], logLevel: LogLevel = .error
  ) throws(NodeError) {
    do {
      let contents = DirectoryContents(path)
      if let refusal = contents.nodeRefusal { throw refusal }
      files = try NodeFiles.load(try DataDirectory(existing: path))
      guard files.fleet == fleet else {
        throw NodeError(.unprocessable, "the ledger is of another fleet than the device in \(path)")
      }
      let lock = try DirectoryLock(directory: path)
      log = try NodeLog(level: logLevel, path: nil)
      let opened = try LedgerFilling.open(files, contents, lock, statements)
      (store, mark) = (opened, SidecarMark(files.directory, opened))
      let identity = EngineIdentity(files)
      decoder = FrameDecoder(fleet: fleet, identity.cryptography)
      let ports = EnginePorts(
        store: store, mark: mark, clock: SystemClock(), links: NoLinks(), journal: log, feed: NoListener(),
        random: SystemRandomNumberGenerator())
      engine = try NodeEngine(
        identity, EngineOptions(instance: UUIDValue(SecureRandom.bytes(16)) ?? .zero), ports)
    } catch {
      throw NodeError(any: error)
    }
  }

  /// The store, with the statements of the ledger besides its own, and the wish for all that this device may hold.
  private static func open(
    _ files: NodeFiles, _ contents: DirectoryContents, _ lock: DirectoryLock, _ ledger: [Statement]
  ) throws -> Store {
    switch contents.store {
    case .logAlone, .halfRestored: if let refusal = contents.storeRefusal { throw refusal }
    case .present, .lost, .halfFilled: break
    }
    var present: Store?
    if contents.present.contains(.database) { present = try files.existingStore(lock) }
    if let changes = present?.counters.changes, changes > 0, contents.store != .halfFilled {
      throw NodeError(
        .unprocessable,
        "\(files.directory.path) has a store with \(counted(changes, "change")), and stays as it is: a ledger fills a directory that "
          + "has its keys and no data yet")
    }
    let cryptography = EngineIdentity(files).cryptography
    let own = try present?.statements().compactMap { cryptography.statement($0.encoded).statement } ?? []
    let authority = Authority(ofFleet: files.fleet, own + ledger, cryptography.hash)
    guard let authority else { throw NodeError(.unprocessable, "the ledger lacks the genesis of its fleet") }
    guard authority.member(of: files.deviceKey.publicKey) != nil else {
      throw NodeError(
        .notPermitted,
        "device \(files.device.shortText) is no member of the fleet, neither by the ledger nor by what is in "
          + "\(files.directory.path): let it enter with seamesh invite and seamesh join first")
    }
    try begin(files.directory)
    let store =
      try present
      ?? Store.open(directory: files.directory.path, fleet: files.fleet, device: files.device, lock: lock)
    try store.write(.full) { transaction in
      for statement in ledger where authority.holds(statement.id) && isForDevice(statement, files, authority) {
        try transaction.addStatement(id: statement.id, encoded: statement.encoded, arrived: WallClock.milliseconds)
      }
      try transaction.subscribe(NodeFiles.everything)
    }
    return store
  }

  /// Of the fleet, or of a room that it may carry: those of other rooms go to their rooms alone.
  private static func isForDevice(_ statement: Statement, _ files: NodeFiles, _ authority: Authority) -> Bool {
    guard !statement.isOfFleet else { return true }
    guard let room = try? PartitionName(statement.scope) else { return false }
    return authority.level(of: files.deviceKey.publicKey, in: room) >= .carry
  }

  private static func begin(_ directory: DataDirectory) throws {
    try PrivateFile.replace(directory.file(markerFile), Array("\(WallClock.stamp)\n".utf8))
    // Whatever else a set-up left to do came to its end with this.
    try PrivateFile.remove(directory.file(SetupMarker.fileName))
  }

  // MARK: Filling

  /// A peer would be shown no other partitions.
  package func mayHold(_ name: PartitionName) -> Bool {
    engine.state.mesh.authority.level(of: files.deviceKey.publicKey, in: name) >= .carry
  }

  /// How far each chain is here.
  package func received(of name: PartitionName) -> VersionVector {
    engine.state.mesh.partitions[engine.state.identity.id(of: name)]?.log.received ?? VersionVector()
  }

  /// Takes a run behind all that its author had seen.
  ///
  /// - Parameter apart: answers a payload that stands outside of its run.
  /// - Throws: why the run does not hold.
  package func take(
    _ encoded: [UInt8], context: VersionVector, in name: PartitionName, apart: (Digest) throws -> [UInt8]
  ) throws {
    let inspected = try decoder.inspect(
      encoded, context: context, in: name, under: engine.state.mesh.authority, apart: apart)
    waiting.append((name, inspected.delivered))
    let apart = inspected.delivered.incoming.documents.apart?.bytes.count ?? 0
    waitingBytes += encoded.count + apart + context.count * LedgerFilling.contextEntryBytes
    if waitingBytes >= LedgerFilling.byteLimit { try commit() }
  }

  /// What was taken is durable when this returns.
  package func commit() throws(NodeError) {
    engine.turn(waiting.map { .ledgerRun($0.name, $0.run) })
    if let failure = engine.failure { throw NodeError(any: failure) }
    for (name, run) in waiting where !isHeld(run, in: name) {
      if lacksRight(run, in: name) { withoutRight += 1 } else { notTaken += 1 }
    }
    (waiting, waitingBytes) = ([], 0)
  }

  private func isHeld(_ run: DeliveredRun, in name: PartitionName) -> Bool {
    guard let log = engine.state.mesh.partitions[engine.state.identity.id(of: name)]?.log else { return false }
    return run.incoming.hashes.last.map {
      log.hasContent(through: run.last, $0, of: run.incoming.replica)
    } ?? false
  }

  /// Nobody would take it from a peer either, as long as the statements are as they are.
  private func lacksRight(_ run: DeliveredRun, in name: PartitionName) -> Bool {
    let authority = engine.state.mesh.authority
    guard let summary = RunSummary(run, in: name) else {
      return authority.floor(of: run.incoming.replica, in: name) < run.incoming.first
    }
    let chain = ChainIdentity(
      fleet: files.fleet, partition: engine.state.identity.id(of: name), replica: run.incoming.replica)
    return authority.refusal(of: summary, genesis: chain.genesis(SHA256.hash))?.isLackOfRight ?? false
  }

  package var changes: Int64 { store.counters.changes }

  /// From here on the directory is a node's like any other. It writes under a new replica id: the store has none.
  package func finish() throws(NodeError) {
    try commit()
    engine.finish()
    store.readers.close()
    do {
      mark.isLogClosed = try store.carryOverAll()
      engine.keeper.saveMark()
      if mark.isLogClosed { try store.closeLog() }
      try PrivateFile.remove(files.directory.file(LedgerFilling.markerFile))
    } catch {
      throw NodeError(any: error)
    }
  }
}
