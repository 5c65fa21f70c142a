import Engine
import Replication
import Wire

/// What a member that lies does on purpose rather than by chance: it signs runs of its own that name list elements which they
/// have not seen, and claims more of a peer's chain just when people write there.
struct Slyness {
  private let key: FakeKey
  private var random: SimulationRandom
  private var runsLeft = 20
  /// A claim of a device that was waited for in vain is not believed again.
  private var claimsLeft = 6

  init(_ key: FakeKey) {
    self.key = key
    random = SimulationRandom(seed: SimulationRandom.mix(key.publicKey.raw.words.0))
  }

  /// People write while their node waits for what is claimed, and when its patience is about to end.
  mutating func bother(_ peer: SimulatedNode, _ world: World) {
    guard claimsLeft > 0 else { return }
    claimsLeft -= 1
    let (early, late): (ClosedRange<UInt64>, ClosedRange<UInt64>) = (0...150, 1_990...2_100)
    for delay in [early, early, late, late] {
      world.queue.put(.write(slot: peer.slot), at: world.clock + random.between(delay))
    }
  }

  /// The batch with one of its own runs under a context that lacks the last of the list elements which it names. Nil where
  /// there is none.
  mutating func unseeing(_ batch: RunBatch, _ world: World) -> RunBatch? {
    guard runsLeft > 0, random.chance(50) else { return nil }
    let known = world.oracle.known
    for (index, entry) in batch.entries.enumerated() {
      guard let run = known.library.known(entry.encoded, in: world.fleet.partition(batch.name)),
        known.owners[run.replica] == key.publicKey, let blind = blind(run, world)
      else { continue }
      runsLeft -= 1
      world.count(.lie)
      // What follows stands on another context.
      let entries = Array(batch.entries[..<index]) + [key.sign(entry, of: run.decoded, under: blind)]
      return RunBatch(
        name: batch.name, stream: batch.stream, entries: entries, isForkEvidence: batch.isForkEvidence)
    }
    return nil
  }

  private mutating func blind(_ run: KnownRun, _ world: World) -> VersionVector? {
    var named: [ReplicaID: UInt64] = [:]
    for operation in run.observed.changes.flatMap(\.writes).flatMap(\.operations) {
      for case .element(let element) in operation.path where element.dot.replica != run.replica {
        named[element.dot.replica] = max(named[element.dot.replica] ?? 0, element.dot.sequence)
      }
    }
    guard let (replica, last) = random.pick(named.sorted { $0.key < $1.key }) else { return nil }
    let book = world.nodes.first { $0.key.publicKey == key.publicKey }?.directory.book
    let runs = book?.partitions[run.partition]?.runs[replica] ?? []
    let before = last > 1 ? runs.lazy.compactMap { $0.hash(at: last - 1) }.first : nil
    var blind = run.context
    blind[replica] = before.map { ChainPosition(sequence: last - 1, tip: $0.tip) }
    return blind
  }
}

extension FakeKey {
  private static let signatureByteCount = 64

  /// The changes of a run under this key and another context, whoever wrote them.
  func sign(_ entry: RunBatch.Entry, of run: DecodedRun, under claimed: VersionVector) -> RunBatch.Entry {
    let contextDigest = RunRecord.digest(of: claimed, FakeCryptography.hash)
    let message = RunRecord.signedBytes(
      chain: run.chain, first: run.first, last: run.last, hashBefore: run.hashBefore, contextDigest: contextDigest,
      hashAtLast: run.hashAtLast)
    var bytes = Array(entry.encoded)
    if let place = bytes.firstRange(of: run.contextDigest.bytes) {
      bytes.replaceSubrange(place, with: contextDigest.bytes)
    }
    bytes.replaceSubrange((bytes.count - FakeKey.signatureByteCount)..., with: sign(message).bytes)
    return RunBatch.Entry(context: .full(claimed), encoded: bytes[...])
  }
}
