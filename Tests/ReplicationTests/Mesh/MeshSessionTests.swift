import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: two and three nodes") struct MeshSessionTests {
  @Test("what one holds reaches the other: summaries, vectors, a pull, runs, and an acknowledgement once durable")
  func catchUp() throws {
    let bench = try MeshBench([0, 1])
    for value in 0..<3 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.nodes[1].holdsCommits = true
    _ = bench.connect(0, 1)
    bench.run()
    #expect(bench.said(from: 0, to: 1) == ["hello", "summary", "vectors", "summary", "pull", "runs"])
    #expect(bench.said(from: 1, to: 0) == ["hello", "summary", "summary", "pull"])
    bench.nodes[1].commit()
    bench.pass(1_000)
    #expect(bench.said(from: 1, to: 0).last == "have")
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 3 && bench.nodes[1].log.count == 3)
  }

  @Test("nodes that are level exchange nothing but summaries, and then new runs without a question")
  func level() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(1)
    let first = bench.connect(0, 1)
    bench.run()
    bench.cut(first)
    let start = bench.transcript.count
    _ = bench.connect(1, 0)
    bench.run()
    #expect(bench.said(from: 0, to: 1, since: start) == ["hello", "summary"])
    #expect(bench.said(from: 1, to: 0, since: start) == ["hello", "summary"])
    try bench.nodes[0].write(2)
    bench.run()
    bench.pass(1_000)
    #expect(bench.said(from: 0, to: 1, since: start).suffix(1) == ["runs"])
    #expect(bench.said(from: 1, to: 0, since: start).suffix(1) == ["have"])
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 2)
  }

  @Test("a relay passes on what came from another, after a wait in which that one might have done so itself")
  func relay() throws {
    let bench = try MeshBench([0, 1, 2])
    _ = bench.connect(0, 1)
    _ = bench.connect(1, 2)
    bench.run()
    // The first may be pulled: a stream that equal summaries opened is doubted once.
    try bench.nodes[0].write(1)
    bench.pass(100)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 1)
    try bench.nodes[0].write(2)
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 2 && bench.nodes[2].holds(bench.nodes[0]) == 1)
    bench.pass(100)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2)
    #expect(!bench.said(from: 2, to: 1).contains("runs"))
  }

  @Test("nothing is read or queued for a peer that reads nothing; all of it goes when there is room")
  func stalled() throws {
    let bench = try MeshBench([0, 1])
    let session = bench.connect(0, 1)
    bench.run()
    bench.nodes[0].mesh.pause(session)
    let start = bench.transcript.count
    for value in 0..<50 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.pass(200)
    #expect(!bench.said(from: 0, to: 1, since: start).contains("runs"))
    bench.nodes[0].deliver(.writable(session))
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 50)
  }

  @Test("a run whose author had seen what is not here ends the session with a build that leaves nothing to others")
  func missingContext() throws {
    let bench = try MeshBench([0, 1, 2], formats: [1: TestBuild.earlier.formats])
    _ = bench.connect(0, 1)
    bench.run()
    try bench.nodes[0].write(1)
    bench.run()
    let run = try bench.nodes[1].write(2)
    #expect(run.context.sequence(of: bench.nodes[0].replica) == 1)
    // Node 2 is asked to take the second change without the first.
    let session = bench.connect(1, 2)
    while bench.nodes[2].mesh.sessions[session]?.live?.streams[bench.partition]?.incoming.number == nil { bench.run(1) }
    let number = try #require(bench.nodes[2].mesh.sessions[session]?.live?.streams[bench.partition]?.incoming.number)
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    bench.nodes[2].receive(.runs(RunBatch(name: bench.name, stream: number, entries: [entry])), on: session)
    #expect(bench.said(from: 2, to: 1).last == "goodbye" && bench.nodes[2].mesh.sessions[session] == nil)
    #expect(bench.nodes[2].log.isEmpty)
  }

  @Test("a large payload goes ahead of its run in pieces, and what is there already is left out")
  func pieces() throws {
    let bench = try MeshBench([0, 1])
    let run = try bench.nodes[0].write(1, payloadByteCount: 300_000)
    let apart = try #require(run.apart)
    let key = StagedKey(device: bench.nodes[0].device, partition: bench.partition, hash: apart.hash)
    bench.nodes[1].staged = StagedPayloads([
      StagedShare(key, total: UInt64(apart.bytes.count), byteCount: UInt64(PayloadPiece.byteLimit))
    ])
    _ = bench.connect(1, 0)
    bench.run()
    #expect(bench.nodes[1].pieces.first?.offset == UInt64(PayloadPiece.byteLimit))
    #expect(Array(bench.nodes[1].pieces.map(\.bytes).joined()) == Array(apart.bytes.dropFirst(PayloadPiece.byteLimit)))
    #expect(bench.nodes[1].pieces.allSatisfy { $0.bytes.count <= PayloadPiece.byteLimit })
    let said = bench.said(from: 0, to: 1)
    #expect(said.lastIndex(of: "payloadPiece") ?? .max < said.firstIndex(of: "runs") ?? 0)
  }

  @Test("a peer whose interest grows beyond its limits is refused")
  func interestLimit() throws {
    let bench = try MeshBench([0, 1])
    let session = bench.connect(0, 1)
    bench.run()
    func change(_ range: Range<Int>) {
      let added = Interest(prefixes: Set(range.map { Text("agency=\($0)") }))
      bench.nodes[1].receive(.interestChange(added: added, removed: Interest()), on: session)
    }
    change(0..<Interest.prefixLimit / 2)
    #expect(bench.nodes[1].mesh.sessions[session] != nil)
    change(Interest.prefixLimit / 2..<Interest.prefixLimit)
    #expect(bench.nodes[1].mesh.sessions[session] == nil)
    #expect(bench.nodes[1].notes.contains(.peerRefused("an interest beyond its limits")))
  }

  @Test("an interest told and changed while statements are compared is asked for again")
  func interestOutOfDate() throws {
    let bench = try MeshBench([0, 1])
    let late = try #require(bench.state(.rule(Statement.Rule(key: "x"))))
    bench.nodes[1].deliver(.statementsStored([late]))
    let session = bench.connect(0, 1)
    while bench.nodes[1].mesh.sessions[session]?.phase == .awaitingHello { bench.run(1) }
    bench.nodes[1].receive(.interest(Interest()), on: session)
    bench.nodes[1].receive(.interestChange(added: bench.fleet.interest("*"), removed: Interest()), on: session)
    bench.run()
    #expect(bench.said(from: 1, to: 0).contains("interestRequest"))
    #expect(bench.nodes[1].mesh.sessions[session]?.peerInterest == bench.fleet.interest("*"))
  }
}
