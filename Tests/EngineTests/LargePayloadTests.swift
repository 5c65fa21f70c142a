import Identity
import Storage
import Testing
import Wire

@testable import Engine
@testable import Replication

/// Payloads that travel apart from their run, in pieces ahead of it.
@Suite struct LargePayloadTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private func pair() throws -> EngineBench {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    return bench
  }

  @Test("a large document comes with its run, and its pieces are gone once it is whole", arguments: [20_000, 700_000])
  func whole(byteCount: Int) throws {
    let bench = try pair()
    try bench.nodes[0].write(room, Put("large", byteCount: byteCount))
    bench.meet(1, 0)
    #expect(try bench.nodes[1].shown(room, "large") == bench.nodes[0].shown(room, "large"))
    #expect(try bench.nodes[1].count("large_payloads") == 1)
    #expect(try bench.nodes[1].count("staged_pieces") == 0)
    // And on to a third, from the log.
    let third = try bench.addMember()
    try bench.nodes[third].subscribe("room=*")
    bench.meet(third, 1)
    #expect(try bench.nodes[third].shown(room, "large") == bench.nodes[0].shown(room, "large"))
  }

  @Test("a transfer that was cut goes on where it was: what is on disk is not sent again")
  func resumed() throws {
    let bench = try pair()
    try bench.nodes[0].write(room, Put("large", byteCount: 700_000))
    let session = bench.connect(1, 0)
    bench.run(until: { (try? bench.nodes[1].count("staged_pieces")) ?? 0 >= 5 })
    let staged = try bench.nodes[1].count("staged_pieces")
    #expect(staged >= 5 && staged < 11)
    bench.cut(session)
    bench.dropWire()
    try bench.restart(1)
    bench.nodes[0].trace.clear()
    bench.meet(1, 0)
    let pieces = bench.nodes[0].trace.entries.count { if case .sent(_, "payloadPiece") = $0 { true } else { false } }
    #expect(pieces > 0 && pieces <= 11 - Int(staged))
    #expect(try bench.nodes[1].shown(room, "large") != nil)
  }

  @Test("a run whose payload never came breaks the protocol")
  func missing() throws {
    let bench = try pair()
    try bench.nodes[0].write(room, Put("large", byteCount: 40_000))
    let session = bench.meet(1, 0)
    let node = bench.nodes[0]
    try node.write(room, Put("second", byteCount: 50_000))
    bench.dropWire()
    let (runs, _) = try LogReader(node.state).runs(
      node.id(of: room), lackedBy: bench.nodes[1].received(room), byteLimit: .max)
    let entries = runs.map { RunBatch.Entry(context: .full($0.context), encoded: $0.encoded) }
    let number = bench.nodes[1].state.mesh.sessions[session]?.live?.streams[node.id(of: room)]?.incoming.number
    let batch = RunBatch(name: room, stream: try #require(number), entries: entries)
    let frame = MessageCodec.encode(.runs(batch))
    bench.nodes[1].engine.turn([bench.event(frame, session, 1)])
    #expect(bench.nodes[1].state.mesh.sessions[session] == nil)
    #expect(try bench.nodes[1].shown(room, "second") == nil)
    bench.meet(1, 0)
    #expect(try bench.nodes[1].shown(room, "second") != nil)
  }

  @Test("a payload that does not read on this node's own disk is no rule that its sender broke")
  func spoiledHere() throws {
    let bench = try pair()
    let (node, reader) = (bench.nodes[0], bench.nodes[1])
    try node.write(room, Put("large", byteCount: 40_000))
    let session = bench.meet(1, 0)
    try reader.store.store.database.execute("UPDATE large_payloads SET bytes=x'ff'")
    let (runs, _) = try LogReader(node.state).runs(
      node.id(of: room), lackedBy: VersionVector(), byteLimit: .max)
    let entries = runs.map { RunBatch.Entry(context: .full($0.context), encoded: $0.encoded) }
    let batch = RunBatch(name: room, stream: 0, entries: entries, isForkEvidence: true)
    reader.engine.turn([bench.event(MessageCodec.encode(.runs(batch)), session, 1)])
    #expect(reader.engine.conduct.isEmpty && reader.engine.storeFailure == nil)
    // Everything else goes on.
    try node.write(room, Put("small"))
    bench.meet(1, 0)
    #expect(try reader.shown(room, "small") != nil)
  }

  @Test("a large payload that this build cannot read is kept with its run, and passed on with it")
  func unreadable() throws {
    let bench = try pair()
    try bench.nodes[0].write(room, Put("first"))
    bench.cut(bench.meet(1, 0))
    // Now both are level, and stream 0 is open.
    let session = bench.meet(1, 0)
    let (run, payload) = try unreadableRun(of: bench.nodes[0])
    let piece = PayloadPiece(
      name: room, stream: 0, hash: run.changes[0].header.payloadHash, total: UInt64(payload.count), offset: 0,
      bytes: payload[...])
    let entry = RunBatch.Entry(context: .full(run.record.context), encoded: RunCodec.encode(run)[...])
    let frames = [Message.payloadPiece(piece), .runs(RunBatch(name: room, stream: 0, entries: [entry]))]
    for frame in frames { bench.nodes[1].engine.turn([bench.event(MessageCodec.encode(frame), session, 1)]) }
    bench.dropWire()
    bench.cut(session)
    let third = try bench.addMember()
    try bench.nodes[third].subscribe("room=*")
    bench.meet(third, 1)
    for node in [bench.nodes[1], bench.nodes[third]] {
      #expect(try node.count("large_payloads") == 1)
      #expect(try node.count("staged_pieces") == 0)
      #expect(node.received(room).entries.values.map(\.sequence) == [2])
      #expect(node.accepted(room).entries.values.map(\.sequence) == [1])
    }
  }

  /// The next run of the node, which it does not know of: one change of a codec of a later build.
  private func unreadableRun(of node: BenchNode) throws -> (Run, payload: [UInt8]) {
    let hash = node.state.identity.cryptography.hash
    let chain = ChainIdentity(
      fleet: node.state.identity.fleet, partition: node.id(of: room),
      replica: try #require(node.state.own.replica?.id))
    let payload = [UInt8](repeating: 7, count: 20_000)
    let header = ChangeHeader(
      sequence: 2, timestamp: .zero, wall: WallTime(milliseconds: 0), codec: .zstd, payloadByteCount: 20_000,
      payloadHash: Digest.of(payload, hash), keyHashes: [KeyHash(high: 1, low: 2)])
    let before = try #require(node.state.own.tip(in: node.id(of: room)))
    let context = VersionVector()
    let digest = RunRecord.digest(of: context, hash)
    let last = header.chainHash(chain: chain, previous: before, contextDigest: digest, hash)
    let message = RunRecord.signedBytes(
      chain: chain, first: 2, last: 2, hashBefore: before, contextDigest: digest, hashAtLast: last)
    let record = RunRecord(
      chain: chain, first: 2, last: 2, hashBefore: before, context: context, contextDigest: digest, hashAtLast: last,
      signature: node.key.sign(message))
    return (Run(record: record, changes: [Change(header: header, payload: payload[...])], hashes: [last]), payload)
  }
}
