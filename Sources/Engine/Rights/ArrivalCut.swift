import Replication

/// How far chains had come here at a moment: what came since the log was read for that had not.
struct ArrivalCut {
  private let before: ArrivedBefore
  /// By chain of which something came since, the last change before that.
  private let since: [PartitionID: [ReplicaID: UInt64]]

  /// Looks at what came since alone.
  init(_ before: ArrivedBefore, _ log: any LogReading) throws {
    self.before = before
    since = try log.ends(beforeRunsBehind: before.end)
  }

  func had(_ statement: Digest) -> Bool { before.statements.contains(statement) }

  /// All that is here of the chain had come up to this change.
  func last(of replica: ReplicaID, in partition: PartitionID) -> UInt64 {
    min(before.changes[partition]?[replica] ?? .max, since[partition]?[replica] ?? .max)
  }
}
