import Replication

/// Verdicts that were made, by all that they follow from: the partition, the rights, and the set of runs.
struct VerdictShelf {
  private struct Key: Hashable {
    let partition: PartitionID
    let rights: ObjectIdentifier
    let runs: Set<Int>
  }

  private struct Kept {
    /// Kept, so that no other rights get its identity.
    let rights: JudgedRights
    let verdict: PartitionVerdict
  }

  /// Enough for what a few nodes that agree hold at the end of a world.
  private static let limit = 64
  private var verdicts: [Key: Kept] = [:]

  mutating func verdict(
    _ partition: PartitionID, _ rights: JudgedRights, _ runs: Set<Int>, make: () -> PartitionVerdict
  ) -> PartitionVerdict {
    let key = Key(partition: partition, rights: ObjectIdentifier(rights), runs: runs)
    if let known = verdicts[key] { return known.verdict }
    if verdicts.count >= VerdictShelf.limit { verdicts = [:] }
    let verdict = make()
    verdicts[key] = Kept(rights: rights, verdict: verdict)
    return verdict
  }
}
