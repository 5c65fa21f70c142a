import Foundation
import Replication
import Storage
import Testing

@testable import Engine
@testable import Seamesh

/// What a node does with documents that do not read on its disk.
@Suite(.serialized) struct DamageTests {
  private let partition: PartitionName
  private let fleet: TestFleet
  private var node: Node { fleet.nodes[0] }

  init() throws {
    partition = try PartitionName("agency=Gabon")
    fleet = try TestFleet(1)
    for id in ["a", "b", "c"] as [Text] { try node.put(partition, "reports", id, body(["n": .int(1)])) }
  }

  @Test("what users are told of a store that fails has no number of SQLite's, and nothing of its rows")
  func words() {
    for error in [
      StoreError.diskFull("full (SQLite 13)"), .inputOutput("I/O (SQLite 266, errno 5)"),
      .damaged("row 645: CBORError"), .tornByLostLog("row 7 missing from index documents_by_key"),
      .damagedDocument("row 645"), .damagedLog("run 12"),
    ] {
      let message = NodeError(any: error).message
      #expect(!message.contains { $0.isNumber || $0 == "_" } && !message.contains("SQLite"), "\(message)")
    }
  }

  private func ids(_ request: FindRequest = FindRequest()) throws -> [Value] {
    try node.find(partition, "reports", request).map(\.id)
  }

  private func findings() throws -> [String: DoctorFinding] {
    Dictionary(try node.doctor().map { ($0.code, $0) }) { first, _ in first }
  }

  /// Flips bytes of the stored state of a document of the stopped node, until it does not read.
  private func flipState(of id: Text, _ path: String) throws {
    let database = try Database(path: path + "/" + Store.fileName, access: .readWrite)
    let key = Value.string(id).canonicalBytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    // The tenth byte is of the first group's dot.
    try database.execute(
      "UPDATE documents SET state=CAST(substr(state,1,3)||x'00'||substr(state,5) AS BLOB) WHERE key=x'\(key)'")
  }

  @Test("a document that was damaged while the node was stopped is read as ever, and doctor says that it was mended")
  func mendedFromLog() throws {
    node.stop()
    try flipState(of: "b", fleet.path(of: 0))
    try fleet.restart(0)
    #expect(try findings()["document-mended"] == nil)
    #expect(try ids() == ["a", "b", "c"].map { .string($0) })
    #expect(try node.find(partition, "reports", FindRequest()).damaged.isEmpty)
    #expect(try node.read(partition, "reports", id: .string("b"))?.body == body(["n": .int(1)]))
    let finding = try #require(try findings()["document-mended"])
    #expect(finding.level == .warning && finding.message.contains("b of reports in agency=Gabon"))
    #expect(try node.damaged().isEmpty && findings()["document-damaged"] == nil)
  }

  @Test("a document that the log cannot give, either, is named wherever it is missing, and everything else goes on")
  func damagedForGood() throws {
    let watch = try LiveMirror(try node.watch(partition, "reports", FindRequest()))
    try node.damage(id: .string("b"), log: true)
    let found = try node.find(partition, "reports", FindRequest())
    #expect(found.map(\.id) == ["a", "c"].map { .string($0) } && found.damaged == [.string("b")])
    #expect(
      try node.find(partition, "reports", FindRequest(filter: body(["_id": .string("b")]))).damaged == [.string("b")])
    for attempt in [
      { _ = try node.read(partition, "reports", id: .string("b")) },
      { _ = try node.receipts(partition, "reports", id: .string("b"), asking: false) },
      {
        let patch = DocumentRequest.Action.mergePatch(body(["m": .int(1)]))
        _ = try node.write(partition, [DocumentRequest(collection: "reports", id: .string("b"), action: patch)])
      },
    ] as [() throws -> Void] {
      let error = #expect(throws: NodeError.self) { try attempt() }
      #expect(error?.code == .damaged && error?.message.contains("document b is damaged") == true)
    }
    var exported: [Value] = []
    try node.export(partition, collection: nil) { _, document in
      exported.append(document.id)
      return true
    }
    #expect(exported == ["a", "c"].map { .string($0) })
    #expect(try node.damaged().map(\.id) == [.string("b")])
    let finding = try #require(try findings()["document-damaged"])
    #expect(finding.level == .problem && finding.message.contains("b of reports in agency=Gabon"))
    #expect(try !node.status().readOnly)
    try node.put(partition, "reports", "d", body(["n": .int(2)]))
    try watch.drain()
    #expect(watch.ids == ["a", "b", "c", "d"].map { .string($0) }, "what was shown before stays")
    #expect(
      try LiveMirror(try node.watch(partition, "reports", FindRequest())).ids == ["a", "c", "d"].map { .string($0) })
  }

  @Test("runs that are not as they were written are named by doctor")
  func damagedRuns() throws {
    #expect(try findings()["log-damaged"] == nil)
    _ = try node.engine.ask { [partition] engine in
      let run = DamagedRun(replica: ReplicaID(high: 1, low: 2), first: 1, last: 1, arrival: 9)
      engine.state.damagedRuns.note(run, in: engine.state.identity.id(of: partition))
      return true
    }
    let finding = try #require(try findings()["log-damaged"])
    #expect(finding.level == .problem && finding.message.contains("1 run of this device's log is not"))
  }

  @Test("a part of the log that could not be read over is named by doctor, with its reason")
  func unreadLog() throws {
    #expect(Doctor.findings(unreadLog: nil).isEmpty)
    #expect(try findings()["log-unread"] == nil)
    let finding = try #require(Doctor.findings(unreadLog: "the disk failed").first)
    #expect(finding.code == "log-unread" && finding.level == .problem && finding.message.contains("the disk failed"))
  }

  @Test("written whole it is there again, without a restart")
  func writtenWhole() throws {
    try node.damage(id: .string("b"), log: true)
    try node.damage(id: .string("c"))
    #expect(try ids() == [.string("a")])
    try node.put(partition, "reports", "b", body(["n": .int(7)]))
    #expect(try node.read(partition, "reports", id: .string("b"))?.body == body(["n": .int(7)]))
    _ = try node.write(partition, [DocumentRequest(collection: "reports", id: .string("c"), action: .delete)])
    let found = try node.find(partition, "reports", FindRequest())
    #expect(found.map(\.id) == ["a", "b"].map { .string($0) } && found.damaged.isEmpty)
    #expect(try node.damaged().isEmpty && findings()["document-damaged"] == nil)
  }

  @Test(
    "a part of a result keeps what it showed of a document that does not read, and follows all others",
    arguments: [false, true])
  func window(isSorted: Bool) throws {
    let sort = isSorted ? [FindRequest.SortField(path: "n", ascending: true)] : []
    let request = FindRequest(sort: sort, limit: 2)
    let mirror = try LiveMirror(try node.watch(partition, "reports", request))
    try node.damage(id: .string("a"), log: true)
    try node.put(partition, "reports", "d", body(["n": .int(2)]))
    try mirror.drain()
    #expect(mirror.ids == ["a", "b"].map { .string($0) } && mirror.events.isEmpty)
    try node.put(partition, "reports", "aa", body(["n": .int(1)]))
    try mirror.drain()
    #expect(mirror.ids == ["a", "aa"].map { .string($0) } && mirror.events == ["-b", "+aa"])
    let end = DocumentRequest(collection: "reports", id: .string("a"), action: .delete)
    _ = try node.write(partition, [end])
    try mirror.drain()
    #expect(mirror.events == ["-b", "+aa", "-a", "+b"])
    #expect(try mirror.shown == node.find(partition, "reports", request).documents)
  }

  @Test("a watch that began without a document shows it as soon as it reads again", arguments: [nil, 9])
  func readsAgain(limit: Int?) throws {
    let long = body(["n": .int(1), "text": .string(Text(String(repeating: "x", count: 80)))])
    try node.put(partition, "reports", "long", long)
    try node.execute(
      """
      CREATE TEMP TABLE kept AS SELECT arrival, body FROM runs ORDER BY arrival DESC LIMIT 1;
      UPDATE runs SET body=zeroblob(length(body)) WHERE arrival IN (SELECT arrival FROM kept)
      """)
    let mirror = try LiveMirror(try node.watch(partition, "reports", FindRequest(limit: limit)))
    #expect(mirror.ids == ["a", "b", "c"].map { .string($0) })
    try node.execute(
      """
      UPDATE runs SET body=(SELECT body FROM kept WHERE kept.arrival=runs.arrival)
      WHERE arrival IN (SELECT arrival FROM kept)
      """)
    _ = try node.engine.ask { engine in
      let damaged = engine.state.damagedRuns.due(MonotonicTime(milliseconds: .max))
      for (chain, run, _) in damaged { engine.noteMended(run, chain, cameAnew: false) }
    }
    try eventually {
      try mirror.drain()
      return mirror.events == ["+long"]
    }
    #expect(try mirror.shown == node.find(partition, "reports", FindRequest()).documents)
  }

  @Test("a document that does not read keeps its place in a part of a result where the one before it moves behind")
  func windowWithoutAnchor() throws {
    for (id, n) in [("b", 2), ("c", 5), ("d", 6)] as [(Text, Int64)] {
      try node.put(partition, "reports", id, body(["n": .int(n)]))
    }
    let request = FindRequest(sort: [FindRequest.SortField(path: "n", ascending: true)], limit: 2)
    let mirror = try LiveMirror(try node.watch(partition, "reports", request))
    try node.damage(id: .string("b"), log: true)
    try node.put(partition, "reports", "a", body(["n": .double(5.5)]))
    try mirror.drain()
    #expect(mirror.events == ["-a", "+c"] && mirror.ids == ["b", "c"].map { .string($0) })
  }

  @Test(
    "what comes before a document that does not read pushes that one out of a part of a result, and nothing that reads",
    arguments: [
      ([("x", 0)], ["x", "a"]), ([("x", 0), ("y", -1)], ["y", "x"]), ([("x", 0), ("a", 1)], ["x", "a"]),
      ([("x", 3)], ["a", "b"]), ([("a", 9)], ["b", "c"]),
    ] as [([(Text, Int64)], [Text])])
  func windowPushed(changes: [(Text, Int64)], shown: [Text]) throws {
    for (id, n) in [("a", 1), ("b", 2), ("c", 3)] as [(Text, Int64)] {
      try node.put(partition, "reports", id, body(["n": .int(n)]))
    }
    let request = FindRequest(
      sort: [FindRequest.SortField(path: "n", ascending: true)], limit: 2, projection: body(["m": .int(1)]))
    let mirror = try LiveMirror(try node.watch(partition, "reports", request))
    try node.damage(id: .string("b"), log: true)
    _ = try node.write(
      partition,
      changes.map { id, n in
        let action = DocumentRequest.Action.put(body: body(["n": .int(n), "m": .int(n)]), keepAbsent: false)
        return DocumentRequest(collection: "reports", id: .string(id), action: action)
      })
    try mirror.drain()
    #expect(mirror.ids == shown.map { .string($0) })
  }
}
