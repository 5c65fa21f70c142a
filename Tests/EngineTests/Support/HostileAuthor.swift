import Identity
import TestSupport
import Wire

@testable import Engine
@testable import Replication

/// A member without an engine: it signs whatever it likes under its device's key, and says it on a session of its own.
final class HostileAuthor {
  let bench: EngineBench
  let slot: Int
  private(set) var replicas: [ReplicaID] = []
  private var last: Statement.Link?
  private var random: any RandomNumberGenerator = SplitMix64(seed: 7)
  private var words: Int64 = 1 << 32
  private var heads: [ChainIdentity: (sequence: UInt64, hash: Digest)] = [:]

  init(_ bench: EngineBench, slot: Int) {
    (self.bench, self.slot) = (bench, slot)
    last = state.mesh.authority.lastStatement(of: identity.device)
  }

  var state: EngineState { bench.nodes[slot].state }
  var identity: EngineIdentity { state.identity }
  private var hash: HashFunction { identity.cryptography.hash }

  func sign(_ body: Statement.Body) throws -> Statement {
    let statement = try identity.statement(body, after: last)
    last = Statement.Link(sequence: statement.sequence, id: statement.id)
    return statement
  }

  /// What it signs next stands beside its first statements.
  func beginAgain() { last = nil }

  /// Declarations of so many replica ids more.
  func declare(_ count: Int) throws -> [Statement] {
    guard let membership = state.mesh.authority.member(of: identity.device)?.id else { return [] }
    return try (0..<count).map { _ in
      let nonce = UUIDValue(high: 5, low: UInt64(replicas.count))
      let replica = ReplicaID.derived(device: identity.deviceID, nonce: nonce, hash)
      replicas.append(replica)
      return try sign(.replica(Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership)))
    }
  }

  /// Another each time: what is stored already changes nothing.
  private func nextWord() -> Int64 {
    words += 1
    return words
  }

  /// The next run of a chain, of changes that each put one document; `fork`: beside what was signed there before.
  func run(
    _ name: PartitionName, _ replica: ReplicaID, count: Int = 1, seen context: VersionVector = VersionVector(),
    codec: PayloadCodec = .plain, fork: (after: UInt64, hash: Digest, word: Int64)? = nil
  ) throws -> Run {
    let chain = ChainIdentity(fleet: identity.fleet, partition: identity.id(of: name), replica: replica)
    let head =
      fork.map { ($0.after, $0.hash) } ?? heads[chain].map { ($0.sequence, $0.hash) } ?? (0, chain.genesis(hash))
    var builder = RunBuilder(chain: chain, after: head.0, hashBefore: head.1, context: context, hash: hash)
    for _ in 0..<count {
      var composer = DocumentComposer(partition: chain.partition, dot: builder.nextDot, hash: hash)
      try composer.add(Put("h", fork?.word ?? nextWord()), bench.nodes[slot].store, random: &random)
      let composed = try ComposedChange(
        WriteContext(dot: builder.nextDot, timestamp: .zero, context: context), wall: WallTime(milliseconds: 0),
        payload: try composer.payload(), in: chain, hash)
      builder.append(
        payload: composed.payload, keyHashes: composed.keyHashes, timestamp: composed.context.timestamp,
        wall: composed.wall, codec: codec)
    }
    let run = builder.close(sign: identity.cryptography.sign)
    if fork == nil { heads[chain] = (run.record.last, run.record.hashAtLast) }
    return run
  }

  func batch(_ name: PartitionName, _ runs: [Run], stream: UInt64 = 0, asEvidence: Bool = false) -> Message {
    let entries = runs.map { RunBatch.Entry(context: .full($0.record.context), encoded: RunCodec.encode($0)[...]) }
    return .runs(RunBatch(name: name, stream: stream, entries: entries, isForkEvidence: asEvidence))
  }

  /// Announces the runs to a node, and sends them on the stream on which it then asks for them.
  func offer(_ name: PartitionName, _ runs: [Run], to node: Int, on session: SessionID) {
    guard let last = runs.last?.record else { return }
    let end = ChainPosition(sequence: last.last, tip: last.hashAtLast.tip)
    say([.have(PartitionVector(name: name, vector: VersionVector([last.chain.replica: end])))], to: node, on: session)
    let stream = bench.nodes[node].state.mesh.sessions[session]?.live?.streams[identity.id(of: name)]?.incoming.number
    say([batch(name, runs, stream: stream ?? 0)], to: node, on: session)
  }

  /// Said to one node alone; what that says to anybody about it is lost.
  func say(_ messages: [Message], to node: Int, on session: SessionID) {
    bench.nodes[node].engine.turn(messages.map { bench.event(MessageCodec.encode($0), session, node) })
    bench.dropWire()
  }
}
