import Foundation
import Identity
import Replication
import Storage
import Testing

@testable import Engine
@testable import Seamesh

/// The write-ahead log goes after a kill: acknowledged writes may be gone, and the replica must not name changes twice (S4).
@Suite(.serialized) struct LogLossTests {
  private let partition: PartitionName
  private let fleet: TestFleet
  private let path: String

  init() throws {
    partition = try PartitionName("agency=Galapagos")
    fleet = try TestFleet(1)
    path = try fleet.directory() + "-killed"
  }

  private func put(_ node: Node, _ ids: String...) throws {
    for id in ids { try node.put(partition, "reports", Text(id), body(["n": .int(1)])) }
  }

  /// What a kill at this moment leaves, in a directory of its own.
  private func kill(_ node: Node) throws { try write(NodeImage(of: node)) }

  private func write(_ image: NodeImage) throws {
    try? remove(path)
    try image.write(to: path, namesInode: true)
  }

  private func start() throws -> Node {
    try Node.start(directory: path, configuration: fleet.configuration([]) { _ in })
  }

  /// Starts the killed node. Answers the replica that its next write is under, and what doctor says before it.
  private func outcome() throws -> (replica: String?, findings: [String], documents: Int64) {
    let node = try start()
    defer { node.stop() }
    let (findings, documents) = (try node.doctor().map(\.code), try node.status().documents)
    try put(node, "after")
    return (try node.status().replica, findings, documents)
  }

  @Test("a kill at any time with the log in place: the same replica, all documents, nothing to report")
  func noAlarm() throws {
    let node = fleet.nodes[0]
    try kill(node)
    #expect(try outcome().findings == ["healthy"])
    try put(node, "a", "b")
    let replica = try node.status().replica
    for step in 0..<4 {
      switch step {
      case 1: try node.onStore { try $0.checkpoint() }
      case 2: try put(node, "c")
      case 3: _ = try node.find(partition, "reports", FindRequest())
      default: break
      }
      try kill(node)
      let (found, findings, documents) = try outcome()
      #expect(found == replica && findings == ["healthy"] && documents == (step < 2 ? 2 : 3), "step \(step)")
    }
  }

  enum Loss: CaseIterable { case deleted, emptied, overwritten }

  @Test(
    "a log that is missing, empty or of no use after a kill: a new replica, and doctor says what may be lost",
    arguments: Loss.allCases)
  func alarm(loss: Loss) throws {
    let node = fleet.nodes[0]
    try put(node, "a", "b")
    let replica = try node.status().replica
    try kill(node)
    let log = path + "/seamesh.db-wal"
    switch loss {
    case .deleted: try remove(log)
    case .emptied: try Data().write(to: URL(fileURLWithPath: log))
    case .overwritten: try Data(repeating: 7, count: 200_000).write(to: URL(fileURLWithPath: log))
    }
    let (found, findings, documents) = try outcome()
    #expect(found != replica && findings.contains("log-lost") && documents == 0, "\(findings)")
  }

  @Test("a log lost after a part of it was carried over is noticed as well")
  func carriedOver() throws {
    let node = fleet.nodes[0]
    try put(node, "a")
    try node.onStore { try $0.checkpoint() }
    try put(node, "b")
    let replica = try node.status().replica
    try kill(node)
    try remove(path + "/seamesh.db-wal")
    let (found, findings, documents) = try outcome()
    #expect(found != replica && findings.contains("log-lost") && documents == 1, "\(findings)")
  }

  @Test("the loss is remembered over further kills until a new replica is drawn, and not afterwards")
  func remembered() throws {
    try put(fleet.nodes[0], "a")
    try fleet.nodes[0].onStore { try $0.checkpoint() }
    try put(fleet.nodes[0], "b")
    let replica = try fleet.nodes[0].status().replica
    try kill(fleet.nodes[0])
    try remove(path + "/seamesh.db-wal")
    for _ in 0..<2 {
      let node = try start()
      // Something is in the log again, but no own write.
      try node.subscribe("agency=*")
      try node.unsubscribe("agency=*")
      let image = try NodeImage(of: node)
      node.stop()
      try write(image)
    }
    let (found, findings, _) = try outcome()
    #expect(found != replica && findings.contains("log-lost"))
    #expect(try outcome().findings == ["healthy"])
  }

  @Test("a start that fails after a kill leaves the log, and what it shows, to the next one")
  func failedStart() throws {
    try put(fleet.nodes[0], "a")
    let replica = try fleet.nodes[0].status().replica
    try kill(fleet.nodes[0])
    let log = try #require(content(path + "/seamesh.db-wal"))
    let nowhere = fleet.configuration([]) { $0.listenHost = .ipv4(0xc000_0201) }
    #expect(throws: NodeError.self) { try Node.start(directory: path, configuration: nowhere) }
    #expect(content(path + "/seamesh.db-wal") == log)
    let (found, findings, documents) = try outcome()
    #expect(found == replica && findings == ["healthy"] && documents == 1, "\(findings)")
  }

  @Test("a clean stop leaves everything in seamesh.db and no log, also after reads, and is no cause for anything")
  func cleanStop() throws {
    let node = fleet.nodes[0]
    try put(node, "a", "b")
    _ = try node.find(partition, "reports", FindRequest())
    let replica = try node.status().replica
    node.stop()
    #expect(!isThere(fleet.path(of: 0) + "/seamesh.db-wal"))
    try write(NodeImage(of: fleet.path(of: 0)))
    let (found, findings, documents) = try outcome()
    #expect(found == replica && findings == ["healthy"] && documents == 2, "\(findings)")
  }

  @Test("a kill within the stop, once the log is noted as closed: gone or not, nothing is lost and nothing reported")
  func killedInStop() throws {
    let node = fleet.nodes[0]
    try put(node, "a", "b")
    let replica = try node.status().replica
    let isWhole = try node.engine.ask { engine in
      Result {
        let isWhole = try (engine.state.store as? Store)?.carryOverAll() ?? false
        (engine.state.mark as? SidecarMark)?.isLogClosed = isWhole
        engine.keeper.saveMark()
        return isWhole
      }
    }.get()
    #expect(isWhole)
    for isLogThere in [true, false] {
      try kill(node)
      if !isLogThere { try remove(path + "/seamesh.db-wal") }
      let (found, findings, documents) = try outcome()
      #expect(found == replica && findings == ["healthy"] && documents == 2, "\(isLogThere): \(findings)")
    }
  }

  @Test("a stop while a reader does not let go leaves the log, and the next start finds all of it")
  func heldLog() throws {
    let node = fleet.nodes[0]
    try put(node, "a")
    let replica = try node.status().replica
    let database = try Database(path: fleet.path(of: 0) + "/seamesh.db", access: .readOnly)
    try database.execute("BEGIN; SELECT count(*) FROM documents")
    try put(node, "b")
    node.stop()
    #expect(isThere(fleet.path(of: 0) + "/seamesh.db-wal"))
    let image = try NodeImage(of: fleet.path(of: 0))
    try database.execute("ROLLBACK")
    try write(image)
    let (found, findings, documents) = try outcome()
    #expect(found == replica && findings == ["healthy"] && documents == 2, "\(findings)")
    // It is needed: what could be carried over while the reader was there does not fit together without it.
    try write(image)
    try remove(path + "/seamesh.db-wal")
    let torn = try Data(contentsOf: URL(filePath: path + "/seamesh.db"))
    for _ in 0..<2 {
      #expect {
        try outcome()
      } throws: { error in
        "\(error)".contains("seamesh.db-wal is gone") && (error as? NodeError)?.code == .storeFailed
      }
    }
    #expect(try Data(contentsOf: URL(filePath: path + "/seamesh.db")) == torn)
  }
}
