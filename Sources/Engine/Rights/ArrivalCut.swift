import Replication

/// Tells of runs whether they had come here at a moment: what came since the log was read for that had not.
struct ArrivalCut {
  private let before: ArrivedBefore
  /// By chain of which something came since, the last change before that.
  private let since: [PartitionID: [ReplicaID: UInt64]]
  /// What all say, but of the device only what had come.
  let authority: Authority

  /// For the end of a device. Of the log it looks at what came since alone.
  init(_ before: ArrivedBefore, of device: PublicKey, _ state: EngineState) throws {
    self.before = before
    since = try state.store.ends(beforeRunsBehind: before.end)
    authority = state.mesh.authority.hearing(from: device, only: before.statements.contains)
  }

  func had(_ statement: Digest) -> Bool { before.statements.contains(statement) }

  /// All that is here of the chain had come up to this change.
  func last(of replica: ReplicaID, in partition: PartitionID) -> UInt64 {
    min(read(replica, partition), since[partition]?[replica] ?? .max)
  }

  func had(_ place: RunPlace, of replica: ReplicaID, in partition: PartitionID) -> Bool {
    guard place.arrival <= before.end else { return false }
    if let later = before.branched[partition]?[replica] { return !later.contains(place.arrival) }
    // It had not forked when the log was read: its numbers told.
    return place.last <= read(replica, partition)
  }

  private func read(_ replica: ReplicaID, _ partition: PartitionID) -> UInt64 {
    before.changes[partition]?[replica] ?? .max
  }
}
