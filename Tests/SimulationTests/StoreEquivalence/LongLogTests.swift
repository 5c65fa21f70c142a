import Engine
import Identity
import Replication
import Testing
import Wire

@testable import Simulation

/// Logs too long to be read at once.
extension StoreEquivalenceTests {
  /// A run of one change for each of `ids`, with about as many bytes as a run may have inside it.
  private func run(_ chain: ChainIdentity, after: UInt64, _ before: Digest, ids: [Int64]) throws -> Run {
    var builder = RunBuilder(
      chain: chain, after: after, hashBefore: before, context: VersionVector(), hash: SHA256.hash)
    for id in ids {
      let write = DocumentWrite(
        collection: "long", id: .int(id), kind: .create, generation: 1,
        operations: [Operation(.set, [.key("padding")], value: .bytes([UInt8](repeating: 1, count: 15_000)))])
      let key = DocumentKey(collection: write.collection, id: write.id)
      builder.append(
        payload: PayloadEncoder.encode([write], dot: builder.nextDot),
        keyHashes: [key.hash(in: chain.partition, SHA256.hash)], timestamp: .zero, wall: WallTime(milliseconds: 1))
    }
    let none = try unwrapped(Signature([UInt8](repeating: 0, count: Signature.byteCount)))
    return builder.close { _ in none }
  }

  @Test(
    "a rebuild finds an accepted change in a run that ends above it, behind a lost run, wherever the log is cut for reading"
  )
  func rebuildAcrossSteps() throws {
    let pair = try StorePair(seed: 0)
    let partition = try EquivalenceWorld(seed: 0).partitions[0]
    let chain = ChainIdentity(
      fleet: EquivalenceWorld.fleet, partition: partition.id, replica: EquivalenceWorld.replicas[0])
    let genesis = chain.genesis(SHA256.hash)
    func append(_ run: Run) -> EquivalenceStep {
      let body = RunCodec.encode(run)
      let appended = AppendedRun(
        first: run.record.first, last: run.record.last, context: run.record.context, body: body[...])
      return EquivalenceStep("append") { try $0.append(appended, to: chain, genesis: genesis) }
    }
    var (steps, last, hash) = ([EquivalenceStep](), UInt64(0), genesis)
    // The lost run is the last one that fits into what is read at once: 4 MiB.
    let size = RunCodec.encode(try run(chain, after: 300, genesis, ids: [0])).count
    while Int(last + 2) * size <= 4 * 1024 * 1024 {
      let next = try run(chain, after: last, hash, ids: [0])
      steps.append(append(next))
      (last, hash) = (next.record.last, next.record.hashAtLast)
    }
    let (lost, kept) = (try run(chain, after: last, hash, ids: [1]), try run(chain, after: last, hash, ids: [2, 3]))
    let position = ChainPosition(sequence: last + 1, tip: .zero)
    let rebuilding = Rebuilding(
      partition: partition.id, fleet: chain.fleet, hash: SHA256.hash,
      accepted: VersionVector([chain.replica: position])
    ) { replica, header, hash, context in
      guard hash != lost.hashes[0] else { return nil }
      return WriteContext(
        dot: Dot(replica: replica, sequence: header.sequence), timestamp: header.timestamp, context: context)
    }
    let keys = Set((1...3).map { DocumentKey(collection: "long", id: .int($0)) })
    steps += [append(lost), append(kept)]
    steps.append(EquivalenceStep("rebuild") { ChangedAnswer(try $0.rebuild(keys, by: rebuilding)) })
    #expect(pair.transact(steps))
    for store in [pair.real, pair.memory] as [any LogStore] {
      let found = try keys.filter { try store.document($0, in: partition.id) != nil }
      #expect(found == [DocumentKey(collection: "long", id: .int(2))], "\(type(of: store))")
    }
  }
}
