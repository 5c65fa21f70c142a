/// Where one session's comparison stands: one at a time.
struct Comparison: Sendable {
  enum Stage: Sendable, Equatable {
    case none
    /// The digest was sent.
    case asked(UInt64)
    /// The buckets were sent.
    case toldBuckets(UInt64)
    /// Partitions of these buckets were listed.
    case toldPartitions(UInt64, listed: UInt64)
  }

  private(set) var stage = Stage.none
  /// When it got there.
  private(set) var since = MonotonicTime(milliseconds: 0)
  /// Comparisons that this side began, and answered.
  var count: UInt64 = 0
  /// A question that came before this side was live.
  var waiting: Summary?
  /// Something was compared: before that the peer may not be live.
  private(set) var hasBegun = false
  /// More came into the common scope since this side's sums were made for it: nothing that it shows to be held alike.
  var isOutdated = false
  /// Nil where the scope has changed since.
  var sums: ScopeSums?
  /// Vectors of partitions that changed since the last step of this side, as they were then.
  var changed: [PartitionID: VersionVector] = [:]

  /// What changes now has to wait for the peer's answer.
  var isUnderWay: Bool { stage != .none }

  mutating func enter(_ next: Stage, _ now: MonotonicTime) {
    (stage, since, changed, hasBegun) = (next, now, [:], true)
  }
}

/// What comparisons have shown to be held alike: the streams of these partitions are open both ways without a word, and
/// nothing of them has changed here since unless the session has a stream of theirs.
struct LevelMarks: Sendable {
  private var buckets: UInt64 = 0
  /// One by one, in buckets that differed.
  private var partitions: Set<PartitionID> = []
  /// What both sides wanted when the session went live. Only there do equal buckets open streams: a partition that came
  /// into the common scope later was in no summary until then, and is named by its vectors instead.
  private var own = Interest()
  private var peer = Interest()

  mutating func begin(_ own: Interest, _ peer: Interest) { (self.own, self.peer) = (own, peer) }

  mutating func mark(buckets: UInt64) { self.buckets |= buckets }
  mutating func mark(_ id: PartitionID) { partitions.insert(id) }

  /// The partition left the scope for a time, in which it may have changed.
  mutating func unmark(_ id: PartitionID) {
    buckets &= ~(1 << UInt64(Summary.bucket(of: id)))
    partitions.remove(id)
  }

  /// Until the next comparison nothing is known to be held alike; streams that are open stay so.
  mutating func forget() { (buckets, partitions) = (0, []) }

  mutating func narrow(by removed: Interest, _ names: (PartitionID) -> PartitionName?) {
    (own, peer) = (own.removing(removed), peer.removing(removed))
    partitions = partitions.filter { id in names(id).map { !removed.wants(id, name: $0) } ?? false }
  }

  func contains(_ id: PartitionID, _ name: PartitionName) -> Bool {
    partitions.contains(id)
      || buckets >> UInt64(Summary.bucket(of: id)) & 1 == 1 && own.wants(id, name: name) && peer.wants(id, name: name)
  }
}
