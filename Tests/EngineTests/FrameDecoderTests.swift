import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// What is made of a frame beside the engine, and what the engine still looks at.
@Suite struct FrameDecoderTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let replica: ReplicaID

  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("a"))
    replica = try #require(bench.nodes[0].state.own.replica?.id)
  }

  /// A run that goes on where node 0's chain ends, signed by whom the test likes.
  private func run(by key: SigningKey, replica: ReplicaID) throws -> Run {
    let node = bench.nodes[0]
    let chain = ChainIdentity(fleet: bench.founding.fleet, partition: node.id(of: room), replica: replica)
    let isOwn = replica == self.replica
    var builder = RunBuilder(
      chain: chain, after: isOwn ? 1 : 0,
      hashBefore: try isOwn ? #require(node.state.own.tip(in: node.id(of: room))) : chain.genesis(SHA256.hash),
      context: isOwn ? node.state.own.context(in: node.id(of: room)) : VersionVector(), hash: SHA256.hash)
    let dot = builder.nextDot
    let write = DocumentWrite(
      collection: "c", id: .string("b"), kind: .create, generation: 1,
      operations: [Operation(.set, [.key("n")], value: .int(1))])
    let payload = PayloadEncoder.encode([write], dot: dot)
    let change = try ComposedChange(
      WriteContext(dot: dot, timestamp: .zero, context: builder.context), wall: WallTime(milliseconds: 0),
      payload: payload, in: chain, SHA256.hash)
    builder.append(payload: payload, keyHashes: change.keyHashes, timestamp: .zero, wall: change.wall)
    return builder.close(sign: key.sign)
  }

  private func frame(_ run: Run) -> [UInt8] {
    let entry = RunBatch.Entry(context: .full(run.record.context), encoded: RunCodec.encode(run)[...])
    return MessageCodec.encode(.runs(RunBatch(name: room, stream: 0, entries: [entry])))
  }

  private func decode(_ frame: [UInt8]) throws -> FrameDecoder.Decoded {
    let state = bench.nodes[0].state
    return try FrameDecoder(fleet: bench.founding.fleet, state.identity.cryptography)
      .decode(frame, under: { state.mesh.authority })
  }

  @Test("a run by another key than its replica's device is none")
  func otherKey() throws {
    let other = bench.newKey()
    #expect(throws: (any Error).self) { try decode(frame(run(by: other, replica: replica))) }
    guard case .runs(let batch, let runs) = try decode(frame(run(by: bench.nodes[0].key, replica: replica))) else {
      Issue.record("no runs")
      return
    }
    #expect(batch.name == room)
    #expect(runs.map(\.incoming.signer) == [bench.nodes[0].key.publicKey])
    // Nothing is left to look at.
    #expect(runs.allSatisfy { $0.open == nil && $0.awaitedByteCount == 0 })
  }

  @Test("a run of a replica that nobody has declared yet is left to the engine, which looks again")
  func unknownReplica() throws {
    let unknown = ReplicaID(high: 7, low: 7)
    guard case .runs(_, let runs) = try decode(frame(run(by: bench.nodes[0].key, replica: unknown))) else {
      Issue.record("no runs")
      return
    }
    #expect(runs.map(\.incoming.signer) == [nil])
    #expect(runs.first?.open != nil)
  }

  @Test("the engine checks a signature that could not be checked where the frame came in")
  func checkedLate() throws {
    let session = bench.meet(1, 0)
    let stranger = bench.newKey()
    let decoder = FrameDecoder(fleet: bench.founding.fleet, bench.nodes[1].state.identity.cryptography)
    // As if the thread of the connection knew no statements at all.
    let known = Authority(root: bench.founding.rootKey.publicKey, hash: SHA256.hash)
    guard
      case .runs(let batch, let runs) = try decoder.decode(
        frame(run(by: stranger, replica: replica)), under: { known })
    else {
      Issue.record("no runs")
      return
    }
    let before = bench.nodes[1].accepted(room)
    bench.nodes[1].engine.turn([.runs(session, batch, runs, byteCount: 100)])
    #expect(bench.nodes[1].journal.says("a peer broke the protocol"))
    #expect(bench.nodes[1].state.mesh.sessions[session] == nil)
    #expect(bench.nodes[1].accepted(room) == before)
    #expect(bench.nodes[1].links.released >= 100)
  }

  @Test("who sends a run that is none is noted with whose it says it is", arguments: [true, false])
  func place(isSigned: Bool) throws {
    let run = try run(by: isSigned ? bench.nodes[0].key : bench.newKey(), replica: replica)
    var bytes = RunCodec.encode(run)
    // In what the signature covers, or another array than a run's.
    if isSigned { bytes[0] -= 1 }
    let entry = RunBatch.Entry(context: .full(run.record.context), encoded: bytes[...])
    let frame = MessageCodec.encode(.runs(RunBatch(name: room, stream: 0, entries: [entry])))
    // As the thread of the connection finds it, and as the engine does, which knows more statements.
    let known = Authority(root: bench.founding.rootKey.publicKey, hash: SHA256.hash)
    let decoder = FrameDecoder(fleet: bench.founding.fleet, bench.nodes[1].state.identity.cryptography)
    for isLate in isSigned ? [false] : [false, true] {
      let session = bench.meet(1, 0)
      var event = bench.event(frame, session, 1)
      if isLate, case .runs(let batch, let runs) = try decoder.decode(frame, under: { known }) {
        event = .runs(session, batch, runs, byteCount: frame.count)
      }
      bench.nodes[1].engine.turn([event])
      bench.run()
    }
    let entries = bench.nodes[1].engine.conduct
    #expect(entries.count == 1 && entries.first?.count == (isSigned ? 1 : 2))
    let noted = try #require(entries.first)
    #expect(noted.place == BrokenRule.Place(partition: room, replica: replica, sequence: 2))
    let member = try #require(bench.nodes[1].state.mesh.authority.member(of: bench.nodes[0].key.publicKey))
    #expect(noted.source == .device(bench.nodes[0].state.identity.deviceID, user: member.user))
  }

  @Test("a run whose signer the engine alone knows is taken all the same")
  func knownLate() throws {
    // Both hold the same when they meet again, so that the stream is open without a number.
    bench.cut(bench.meet(1, 0))
    let session = bench.meet(1, 0)
    let decoder = FrameDecoder(fleet: bench.founding.fleet, bench.nodes[1].state.identity.cryptography)
    let known = Authority(root: bench.founding.rootKey.publicKey, hash: SHA256.hash)
    let frame = try frame(run(by: bench.nodes[0].key, replica: replica))
    guard case .runs(let batch, let runs) = try decoder.decode(frame, under: { known }) else {
      Issue.record("no runs")
      return
    }
    bench.nodes[1].engine.turn([.runs(session, batch, runs, byteCount: frame.count)])
    #expect(try bench.nodes[1].shown(room, "b") != nil)
  }

  @Test("what is no message is an error, and one of a later version that may be skipped is nothing")
  func garbage() throws {
    #expect(throws: (any Error).self) { try decode([0xff]) }
    #expect(throws: (any Error).self) { try decode([]) }
    guard case .message(.ping(let nonce)) = try decode(MessageCodec.encode(.ping(nonce: 9))) else {
      Issue.record("no ping")
      return
    }
    #expect(nonce == 9)
  }
}
