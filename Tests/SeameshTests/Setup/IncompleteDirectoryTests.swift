import Foundation
import Identity
import Replication
import Storage
import Testing

@testable import Seamesh

/// A start in each subset of the files of a node that was killed: nothing is lost, and a refusal is one sentence that names
/// what is missing.
@Suite(.serialized) struct IncompleteDirectoryTests {
  enum Verb: CaseIterable { case run, found, join, restore }
  /// A marker that a set-up left: none, that of the very set-up which made these keys, or of another one.
  enum Marker: CaseIterable { case none, own, foreign }

  /// What the rules want, written down apart from the code.
  enum Expected: Equatable {
    case refused(naming: String)
    /// A node with so many documents.
    case runs(documents: Int64)
    case restored
    /// A new node. What an unfinished set-up had made is set aside.
    case setUp
  }

  static let names = [
    "device.key", "fleet-root.key", "fleet.id", "replica.state", "seamesh.db", "seamesh.db-wal",
  ]
  static let keys = names.prefix(3)
  /// In the database, and in the log alone.
  static let (folded, logged): (Int64, Int64) = (3, 2)

  static func expected(_ verb: Verb, _ files: Set<String>, _ marker: Marker) -> Expected {
    if files.contains("fleet.id") {
      switch verb {
      case .found, .join: return .refused(naming: "another one with --data")
      case .run, .restore: break
      }
      guard files.contains("device.key") else { return .refused(naming: "device.key") }
      if verb == .restore { return .restored }
      guard files.contains("seamesh.db") else {
        return .refused(naming: files.contains("seamesh.db-wal") ? "seamesh.db-wal" : "--peer")
      }
      return .runs(documents: folded + (files.contains("seamesh.db-wal") ? logged : 0))
    }
    let isOfSetUp = files.isEmpty || marker == .own && files.contains("device.key") && !files.contains("replica.state")
    guard isOfSetUp else { return .refused(naming: "fleet.id") }
    switch (verb, marker) {
    case (.found, _), (.join, _), (.run, .none): return .setUp
    case (.restore, .none): return .refused(naming: "device.key and fleet.id")
    case (.run, _), (.restore, _): return .refused(naming: "seamesh join CODE --data")
    }
  }

  /// A killed node, a backup of it, and another fleet that joins are let into.
  private final class Scene {
    let image: NodeImage
    let owner: NodeFiles
    let backup: String
    let base: String
    let other: TestFleet

    init() throws {
      let fleet = try TestFleet(1)
      let (node, partition) = (fleet.nodes[0], try PartitionName("agency=Galapagos"))
      for index in 0..<folded { try node.put(partition, "reports", Text("f\(index)"), body(["n": .int(index)])) }
      try node.onStore { try $0.checkpoint() }
      base = try fleet.directory() + "-cases"
      try FileManager.default.createDirectory(atPath: base, withIntermediateDirectories: true)
      backup = base + "/backup"
      try node.backup(to: backup) { _, _ in }
      for index in 0..<logged { try node.put(partition, "reports", Text("l\(index)"), body(["n": .int(index)])) }
      (image, owner) = (try NodeImage(of: node), node.files)
      other = try TestFleet(1)
    }

    /// Each enters once.
    func code() throws -> String {
      try other.nodes[0].invite(InviteRequest(user: "u@test.example", role: "officer", profile: ValueMap())).code
    }

    deinit { try? remove(base) }
  }

  @Test(
    "every subset of a killed node's files, under every marker: the outcome that the rules want, and nothing is lost",
    arguments: Verb.allCases)
  func allSubsets(verb: Verb) throws {
    let scene = try Scene()
    var count = 0
    for mask in 0..<(1 << IncompleteDirectoryTests.names.count) {
      let files = IncompleteDirectoryTests.names.enumerated().filter { mask >> $0.offset & 1 == 1 }.map(\.element)
      // A finished set-up's marker has no weight, whoever's it is.
      for marker in Marker.allCases where marker != .foreign || !files.contains("fleet.id") {
        let path = "\(scene.base)/\(mask)-\(marker)"
        defer { try? remove(path) }
        try scene.image.write(to: path, names: files)
        try put(marker, path, scene)
        try check(verb, Set(files), marker, path, scene)
        count += 1
      }
    }
    #expect(count == 160)
  }

  private func put(_ marker: Marker, _ path: String, _ scene: Scene) throws {
    let key = SigningKey()
    let device = marker == .own ? scene.owner.device : DeviceID(key.publicKey)
    guard marker != .none else { return }
    try SetupMarker(.join, fleet: scene.owner.fleet, device: device, begun: "20260131T235959Z")
      .save(to: DataDirectory(existing: path))
  }

  private func check(_ verb: Verb, _ files: Set<String>, _ marker: Marker, _ path: String, _ scene: Scene) throws {
    let expected = Self.expected(verb, files, marker)
    let about: Comment = "\(verb) \(files.sorted()) \(marker), expected: \(expected)"
    do {
      try perform(verb, files, path, scene, expected, about)
      if case .refused = expected { Issue.record("not refused: \(about)") }
    } catch let error as NodeError {
      guard case .refused(let name) = expected else {
        Issue.record("refused: \(error.message); \(about)")
        return
      }
      #expect(error.message.contains(name) && !error.message.contains("\n"), "\(error.message); \(about)")
      for name in files { #expect(content("\(path)/\(name)") == scene.image.files[name], "\(name); \(about)") }
    }
    try checkKept(files, path, scene, isReplaced: expected == .setUp, about)
  }

  private func perform(
    _ verb: Verb, _ files: Set<String>, _ path: String, _ scene: Scene, _ expected: Expected, _ about: Comment
  ) throws {
    switch verb {
    case .run:
      if try NodeSetup.start(of: path) == .newFleet { try found(path) }
      let node = try Node.start(directory: path, configuration: scene.other.configuration([]) { _ in })
      defer { node.stop() }
      guard case .runs(let documents) = expected else { return }
      #expect(try node.status().documents == documents, about)
      let isLogLost = files.contains("replica.state") && !files.contains("seamesh.db-wal")
      #expect(try node.doctor().contains { $0.code == "log-lost" } == isLogLost, about)
    case .found: try found(path)
    case .join:
      let peer = try scene.other.peerAddress(of: scene.other.nodes[0])
      _ = try NodeSetup.join(path, code: scene.code(), label: "case", peers: [peer], usesDiscovery: false)
    case .restore: _ = try NodeSetup.restore(path, from: scene.backup) { _, _ in }
    }
  }

  private func found(_ path: String) throws {
    _ = try NodeSetup.found(path, fleetName: "case", user: "u@test.example", label: "case", profile: ValueMap())
  }

  /// Each key has its bytes, where it stood or beside it; the documents of database and log can be read.
  private func checkKept(
    _ files: Set<String>, _ path: String, _ scene: Scene, isReplaced: Bool, _ about: Comment
  ) throws {
    let aside = "\(path)/setup-aside-20260131T235959Z"
    for name in files.intersection(Self.keys) {
      let isKept = content("\(isReplaced ? aside : path)/\(name)") == scene.image.files[name]
      #expect(
        isKept || isReplaced && name == "device.key" && content("\(path)/\(name)") == scene.image.files[name], about)
    }
    let places = [path, aside].flatMap { place in
      ((try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []).map { "\(place)/\($0)" }
    }
    if files.contains("seamesh.db") {
      let wanted = Self.folded + (files.contains("seamesh.db-wal") ? Self.logged : 0)
      let stores = places.filter { $0.contains("seamesh.db") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") }
      #expect(try stores.contains { try documents(in: $0, scene) == wanted }, about)
    } else if files.contains("seamesh.db-wal") {
      let log = scene.image.files["seamesh.db-wal"]
      #expect(places.contains { $0.hasSuffix("-wal") && content($0) == log }, about)
    }
  }

  /// Of a copy, so that looking changes nothing. Nil where it is no store of the killed node.
  private func documents(in store: String, _ scene: Scene) throws -> Int64? {
    let copy = "\(scene.base)/look"
    defer { try? remove(copy) }
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    for suffix in ["", "-wal"] where isThere(store + suffix) {
      try FileManager.default.copyItem(atPath: store + suffix, toPath: "\(copy)/seamesh.db\(suffix)")
    }
    return try? Store.open(directory: copy, fleet: scene.owner.fleet, device: scene.owner.device).counters.documents
  }
}
