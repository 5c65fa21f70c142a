import Engine
import Replication

/// An onlooker who sees everything and is seen by no node. It keeps book of what every store took and judges with rules of
/// its own (``PartitionVerdict``): nothing that it says rests on how the nodes merge, accept or permit.
///
/// What it has worked out once it keeps: runs by their bytes, rights by the set of statements, verdicts by both. Each is a
/// function of what it is kept by.
final class Oracle {
  unowned let world: World
  /// The frame that is looked at may have waited for room.
  var mayBeLate = false

  struct Place: Hashable {
    let partition: PartitionID
    let dot: Dot
  }

  /// A write that somebody was told is safe.
  struct Acknowledged {
    let partition: PartitionID
    let dot: Dot
    let hash: Digest
    let slot: Int
    let lineage: Int
    /// Written when all was quiet and all agreed: the digest of the statements under which it was.
    let lastWordUnder: Digest?
    /// The run destroyed its only holder.
    var isExcused = false
  }

  var library: RunLibrary
  var hashes: [Place: Digest] = [:]
  var payloads: [Digest: [UInt8]] = [:]
  private(set) var acknowledged: [Acknowledged] = []
  /// By slot: what a life of the store showed last.
  private var vectors: [Int: [PartitionID: (received: VersionVector, accepted: VersionVector)]] = [:]
  /// Devices of which the run made two, and the replicas that they write under.
  private var forkable: Set<PublicKey> = []
  var owners: [ReplicaID: PublicKey] = [:]
  /// How many replica ids each slot drew.
  private var drawn: [Int: Int] = [:]
  /// A right was narrowed: what counted may fall.
  var wasNarrowed = false
  private var rights: [Set<Digest>: JudgedRights] = [:]
  var verdicts = VerdictShelf()
  var sent = SentBook()
  var copies = CopyBook()
  /// Devices that were ended, and those of them that are in other hands.
  var (ended, compromised): (Set<PublicKey>, Set<PublicKey>) = ([], [])

  /// Of sets of statements; one costs some ten kilobytes.
  private static let rightsLimit = 256

  init(_ world: World) {
    self.world = world
    library = RunLibrary(formats: world.options.builds?.later ?? .all)
  }

  var changeCount: Int { hashes.count }

  func expectForks(of node: SimulatedNode) { forkable.insert(node.key.publicKey) }
  func mayFork(_ replica: ReplicaID) -> Bool { owners[replica].map(forkable.contains) ?? false }

  func rights(of statements: [Digest: Statement]) -> JudgedRights {
    let ids = Set(statements.keys)
    if let known = rights[ids] { return known }
    if rights.count > Oracle.rightsLimit { rights = [:] }
    let made = JudgedRights(statements.values, root: world.fleet.root.publicKey)
    rights[ids] = made
    return made
  }

  func isDeclared(_ replica: ReplicaID) -> Bool { owners[replica] != nil }

  /// Answers how many it has drawn with this one.
  func countDrawn(by slot: Int) -> Int {
    drawn[slot, default: 0] += 1
    return drawn[slot, default: 0]
  }

  // MARK: Answers

  func answered(_ job: WriteJob, _ result: Result<ChangeReceipt, RefusedWrite>, by process: NodeProcess) {
    let node = process.node
    let receipt: ChangeReceipt
    switch result {
    case .success(let given): receipt = given
    case .failure(let refused):
      world.count(.writeRefused)
      checkRefusal(job, refused, by: process)
      // The limits of flooded worlds are so low that an honest device may come to the end of what it begins.
      let isSpent = !world.plan.flooded.isEmpty && refused.reason.contains("one partition too many")
      if world.lastWords.contains(job.number), !isSpent {
        world.violate("I14", "node \(node.slot) refuses to write: \(result)")
      }
      return
    }
    guard let dot = receipt.dot else { return }
    checkOrder(of: job, by: process)
    let partition = world.fleet.partition(job.partition)
    let runs = node.directory.book.partitions[partition]?.runs[dot.replica] ?? []
    guard let change = runs.reversed().lazy.compactMap({ $0.change(at: dot.sequence) }).first else {
      return world.violate("I2", "change \(dot.sequence) was acknowledged at node \(node.slot) and is not stored")
    }
    checkStamp(change, by: node)
    acknowledged.append(
      Acknowledged(
        partition: partition, dot: dot, hash: change.hash, slot: node.slot, lineage: node.lineage,
        lastWordUnder: world.lastWords.contains(job.number)
          ? process.mesh.authority.digest(FakeCryptography.hash) : nil))
  }

  /// A stamp runs at most ten minutes ahead of its author's clock: one that was wrong once does not drag all later ones.
  private func checkStamp(_ change: ObservedChange, by node: SimulatedNode) {
    let ahead = Int64(clamping: change.timestamp >> 16) - world.wall(of: node)
    guard ahead > 600_000 else { return }
    world.violate("clock", "node \(node.slot) stamps a write \(ahead) ms ahead of its clock")
  }

  /// An older copy takes the place of a store: what it alone held is gone, and nobody's fault.
  func storeIsLost(of node: SimulatedNode, to older: NodeBook) {
    vectors[node.slot] = nil
    let others = world.nodes.filter { $0.slot != node.slot && $0.liar == nil }
    for index in acknowledged.indices where !acknowledged[index].isExcused {
      let write = acknowledged[index]
      func holds(_ book: NodeBook) -> Bool { book.holds(write.hash, at: write.dot, in: write.partition) }
      guard holds(node.directory.book), !holds(older), !others.contains(where: { holds($0.directory.book) }) else {
        continue
      }
      acknowledged[index].isExcused = true
      world.count(.excusedLoss)
    }
  }

  /// What it makes of its store from now on may be less than before.
  func upgraded(_ node: SimulatedNode) { vectors[node.slot] = nil }

  // MARK: While the run goes on

  func turnEnded(_ process: NodeProcess) {
    knowsWhatItHeard(process.node)
    let moved = process.ports.takeRecords()
    let footprint = process.mesh.footprint
    if footprint.parkedBatches > 0 || footprint.awaitedHeaders > 0 {
      world.violate("I13", "node \(process.node.slot) leaves \(footprint.parkedBatches) batches parked")
    }
    if footprint.streams > footprint.sessions * max(1, process.mesh.partitions.count) {
      world.violate("I13", "node \(process.node.slot) has \(footprint.streams) streams")
    }
    checkTakes(process)
    let named = world.partitions.count + world.plan.flooded.count
    if footprint.awaitedStreams > footprint.sessions * named {
      world.violate("I13", "node \(process.node.slot) has \(footprint.awaitedStreams) streams of nothing")
    }
    if footprint.sessions > 4 * world.nodes.count {
      world.violate("I13", "node \(process.node.slot) has \(footprint.sessions) sessions")
    }
    checkConduct(of: process)
    checkPatience(of: process)
    checkClaims(of: process)
    checkFeed(moved, of: process)
    guard !moved.isEmpty, process.node.isJudged else { return }
    checkVectors(process)
    // Judging is slow: now and then while the run goes on, and everywhere at its end.
    let partitions = Set(moved.flatMap { $0.partitions.map(\.partition) }).sorted()
    let percent = partitions.contains { isDelicate(process, $0) } ? Oracle.delicatePercent : world.options.judgedPercent
    guard world.random.chance(percent) else { return }
    for partition in partitions { judge(process, partition) }
  }

  /// I13: who floods takes no more than one device may, beside where others write.
  private func checkTakes(_ process: NodeProcess) {
    guard !world.plan.flooded.isEmpty, !process.node.isFlooder else { return }
    let limit = Plan.floodedLimit + world.plan.visited.count + world.plan.partitions.count
    // What waits for its causes goes with the session that brought it, and is bounded in bytes.
    let begun = process.mesh.partitions.values.count(where: \.hasBegun)
    if begun > limit {
      world.violate("I13", "node \(process.node.slot) holds \(begun) partitions")
    }
    if process.mesh.takes.values.contains(where: { $0.leftOutRuns > 0 }) { world.count(.leftOut) }
  }

  /// Not all that is here counts: what a node makes of that may be wrong for a moment only.
  private func isDelicate(_ process: NodeProcess, _ partition: PartitionID) -> Bool {
    guard let log = process.mesh.partitions[partition]?.log else { return false }
    return !log.forkPoints.isEmpty || !log.withoutEffect.isEmpty || !log.heldAbove.isEmpty
  }

  private static let delicatePercent = 20

  /// Vectors do not fall in the lifetime of a store, but for chains that changed their branch or were narrowed (I8).
  func checkVectors(_ process: NodeProcess) {
    let slot = process.node.slot
    for (id, state) in process.mesh.partitions {
      let (received, accepted) = (state.log.received, state.log.accepted)
      if let before = vectors[slot]?[id] {
        if before.received == received, before.accepted == accepted { continue }
        let fallen = before.received.entries.first {
          $0.value.sequence > received.sequence(of: $0.key) && !mayFork($0.key)
        }
        let undone = before.accepted.entries.first {
          $0.value.sequence > accepted.sequence(of: $0.key) && !mayFork($0.key) && !wasNarrowed
        }
        if let fallen = fallen ?? undone {
          world.violate("I8", "the vector of node \(slot) falls at \(fallen.key) below \(fallen.value.sequence)")
        }
      }
      vectors[slot, default: [:]][id] = (received, accepted)
    }
  }
}
