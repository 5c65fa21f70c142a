import Engine
import Replication

/// Writes of which somebody was told that they are safe, and what becomes of them.
struct PromiseCheck: Check {
  /// A write that somebody was told is safe.
  private struct Acknowledged {
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

  let known: Knowledge
  private let conduct: ConductCheck
  private var acknowledged: [Acknowledged] = []

  init(_ known: Knowledge) {
    self.known = known
    conduct = ConductCheck(known: known)
  }

  func finish() {
    checkAcknowledged()
    checkLastWords()
  }

  mutating func answered(_ job: WriteJob, _ result: Result<ChangeReceipt, RefusedWrite>, by process: NodeProcess) {
    let node = process.node
    let receipt: ChangeReceipt
    switch result {
    case .success(let given): receipt = given
    case .failure(let refused):
      world.count(.writeRefused)
      conduct.checkRefusal(job, refused, by: process)
      // The limits of flooded worlds are so low that an honest device may come to the end of what it begins.
      let isSpent = world.plan.isFlooded && refused.reason.contains("one partition too many")
      // An id for one membership's right is drawn a minute after that for another's.
      let isPutOff = world.plan.hasFurtherMemberships && refused.reason.contains("by another of its memberships")
      if world.lastWords.contains(job.number), !isSpent, !isPutOff {
        world.violate("I14", "node \(node.slot) refuses to write: \(result)")
      }
      return
    }
    guard let dot = receipt.dot else { return }
    conduct.checkOrder(of: job, by: process)
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
  mutating func storeIsLost(of node: SimulatedNode, to older: NodeBook) {
    let others = world.nodes.filter { $0.slot != node.slot && $0.isHonest }
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

  // MARK: When all is over

  /// What is written after all have met counts at all: whoever had a fork has learned of it, and goes on beside it.
  private func checkLastWords() {
    for write in acknowledged {
      guard let statements = write.lastWordUnder, !hasHeardOfLiar(world.nodes[write.slot].process, since: statements),
        !world.lackedStatements.contains(write.slot),
        let name = world.partitions.first(where: { world.fleet.partition($0) == write.partition }), known.isOwed(name)
      else { continue }
      let group = known.groups(wanting: name).first { $0.contains { $0.node.slot == write.slot } } ?? []
      for process in group {
        let verdict = verdict(process.node, write.partition, name)
        guard !verdict.counts(write.hash, at: write.dot), !isIssuedAgain(write, verdict, process.node) else { continue }
        world.violate(
          "I14",
          "change \(write.dot.sequence) of \(write.dot.replica), written at node \(write.slot) when all was quiet, does not count at node \(process.node.slot)"
        )
      }
    }
  }

  /// A peer that lies may have kept a narrowing that a disk lost and nobody else had, and tells of it when it likes.
  private func hasHeardOfLiar(_ author: NodeProcess?, since statements: Digest) -> Bool {
    guard world.nodes.contains(where: { $0.liar != nil }) else { return false }
    return author?.mesh.authority.digest(FakeCryptography.hash) != statements
  }

  /// Every acknowledged write is somewhere, and at its author's if that store lives: counting, or held for a reason (I2).
  private func checkAcknowledged() {
    var verdicts: [Int: [PartitionID: PartitionVerdict]] = [:]
    for write in acknowledged where !write.isExcused {
      let holders = world.nodes.filter {
        $0.process != nil && $0.isHonest && $0.directory.book.holds(write.hash, at: write.dot, in: write.partition)
      }
      let author = world.nodes[write.slot]
      let isAuthorIntact = author.lineage == write.lineage && author.isHonest
      if holders.isEmpty && author.isHonest || isAuthorIntact && !holders.contains(where: { $0.slot == write.slot }) {
        world.violate(
          "I2", "change \(write.dot.sequence) of \(write.dot.replica), acknowledged at \(write.slot), is lost")
      }
      for holder in holders {
        guard let name = holder.directory.book.partitions[write.partition]?.name else { continue }
        let verdict = verdicts[holder.slot]?[write.partition] ?? verdict(holder, write.partition, name)
        verdicts[holder.slot, default: [:]][write.partition] = verdict
        checkCounts(write, verdict, at: holder, mayWrite: known.mayWrite(holder, name))
      }
    }
  }

  /// Does a re-issue count, or is one held for another reason than the branch on which it stands?
  private func isIssuedAgain(_ write: Acknowledged, _ verdict: PartitionVerdict, _ node: SimulatedNode) -> Bool {
    let onLostBranches = Set(verdict.acceptance.held.filter { $0.reason == .otherBranch }.map(\.hash))
    let origin = ChangeOrigin(dot: write.dot, hash: write.hash)
    return node.directory.book.partitions[write.partition]?.observed.contains { run in
      run.changes.contains { $0.origin == origin && !onLostBranches.contains($0.hash) }
    } ?? false
  }

  private func checkCounts(
    _ write: Acknowledged, _ verdict: PartitionVerdict, at holder: SimulatedNode, mayWrite: Bool
  ) {
    guard !verdict.counts(write.hash, at: write.dot) else { return }
    if let held = verdict.acceptance.held.first(where: { $0.hash == write.hash }) {
      world.count(.heldOnOtherBranch)
      // C22: the device that wrote it issues it again, as soon as it may write (I10).
      if held.reason == .otherBranch, mayWrite, holder.key == world.nodes[write.slot].key,
        !isIssuedAgain(write, verdict, holder)
      {
        world.violate(
          "I2",
          "change \(write.dot.sequence) of \(write.dot.replica) lost, and node \(holder.slot) has not issued it again")
      }
      return
    }
    // Another of the same original has the effect.
    let accepted = verdict.acceptance.accepted[write.dot.replica]?.sequence ?? 0
    guard accepted < write.dot.sequence else { return }
    world.violate(
      "I2", "change \(write.dot.sequence) of \(write.dot.replica) at node \(holder.slot) neither counts nor is held")
  }
}
