import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// A member may give a document the last generation there is.
@Suite struct UndeletableTests {
  @Test("a document of the last generation is refused to be deleted in words, and is named for the doctor")
  func lastGeneration() throws {
    let bench = try EngineBench(2)
    let room = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("room=*") }
    let (node, member) = (bench.nodes[0], bench.nodes[1])
    try member.write(room, Put("other"))
    let session = bench.meet(0, 1)
    let run = try created("doc", generation: (1 << 53) - 1, by: member, in: room)
    let entry = RunBatch.Entry(context: .full(run.record.context), encoded: RunCodec.encode(run)[...])
    let batch = RunBatch(name: room, stream: 0, entries: [entry], isForkEvidence: true)
    node.engine.turn([bench.event(MessageCodec.encode(.runs(batch)), session, 0)])
    #expect(try node.shown(room, "doc") != nil && node.engine.undeletable.isEmpty)

    let document = UndeletableDocument(collection: Put.collection, .string("doc"))
    for _ in 0..<2 {
      #expect(throws: EngineError.undeletable(document)) { try node.write(room, Erase("doc")) }
    }
    #expect(node.engine.undeletable == ["c doc in room=1"])
    try node.write(room, Put("doc", 2))
    #expect(try node.shown(room, "doc") == Put("doc", 2).content)
  }

  /// The next change of a member's chain, with whatever generation.
  private func created(
    _ id: Text, generation: UInt64, by member: BenchNode, in room: PartitionName
  ) throws -> Run {
    let (identity, own, hash) = (member.state.identity, member.state.own, member.state.identity.cryptography.hash)
    let partition = member.id(of: room)
    let chain = ChainIdentity(
      fleet: identity.fleet, partition: partition, replica: try #require(own.replica?.id))
    let end = try #require(own.ends[partition])
    var builder = RunBuilder(
      chain: chain, after: end.sequence, hashBefore: end.hash, context: end.context, hash: hash)
    let write = DocumentWrite(
      collection: Put.collection, id: .string(id), kind: .create, generation: generation,
      operations: [Operation(.set, [.key("n")], value: .int(1))])
    let payload = PayloadEncoder.encode([write], dot: builder.nextDot)
    let header = ChangeHeader(
      sequence: builder.nextDot.sequence, timestamp: .zero, wall: WallTime(milliseconds: 0), payloadByteCount: 0,
      payloadHash: .zero, keyHashes: [])
    let keys = try Change.plain(header, payload: payload, chain: chain, hash).change.header.keyHashes
    builder.append(payload: payload, keyHashes: keys, timestamp: .zero, wall: header.wall)
    return builder.close(sign: identity.cryptography.sign)
  }
}
