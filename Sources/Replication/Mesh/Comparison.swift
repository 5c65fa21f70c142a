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

    /// The buckets of which partitions were listed.
    func hasListed(in number: UInt64) -> UInt64? {
      if case .toldPartitions(number, let listed) = self { listed } else { nil }
    }
  }

  /// Questions of the peer's that are answered long before a comparison is due.
  static let earlyLimit = 4

  private(set) var stage = Stage.none
  /// When it got there.
  private(set) var since = MonotonicTime(milliseconds: 0)
  /// Comparisons that this side began, and answered.
  private(set) var count: UInt64 = 0
  /// Something was compared: before that the peer may not be live.
  private(set) var hasBegun = false
  /// More came into the common scope since this side's sums were made for it: nothing that it shows to be held alike.
  private(set) var isOutdated = false
  /// There is more to compare than one comparison can.
  private var mustGoOn: Bool
  /// Nil where the scope has changed since.
  var sums: ScopeSums?
  /// Partitions that changed since the last step of this side.
  var changed: [PartitionID: Change] = [:]
  /// Partitions that changed earlier in this comparison: the message of this side's last step tells of them already.
  private var changedBefore: [PartitionID: Change] = [:]

  struct Change: Sendable {
    /// What was held at that step.
    let before: VersionVector
    /// What came from elsewhere since.
    fileprivate(set) var brought = BroughtChains(limit: broughtLimit)
    /// Something that this device wrote, too.
    fileprivate(set) var hasOwn = false
  }

  /// Of a partition that changed. What is beyond goes out at the end, whoever brings it.
  static let broughtLimit = 256

  /// When the next one is due, and when a question was last asked or answered.
  private var due = MonotonicTime(milliseconds: 0)
  private var lastQuestion = MonotonicTime(milliseconds: 0)
  /// Questions that were answered early; counted anew when one is due.
  private var earlyAnswers = 0

  init(mustGoOn: Bool) { self.mustGoOn = mustGoOn }

  /// What changes now has to wait for the peer's answer.
  var isUnderWay: Bool { stage != .none }

  mutating func enter(_ next: Stage, _ now: MonotonicTime) {
    (stage, since, changed, changedBefore, hasBegun) = (next, now, [:], [:], true)
  }

  /// The next step of this side. Its message tells of what is held now.
  mutating func goOn(to next: Stage, _ now: MonotonicTime) {
    let before = Dictionary(uniqueKeysWithValues: allChanged.map { ($0, changes(of: $0)) }).compactMapValues { $0 }
    enter(next, now)
    changedBefore = before
  }

  /// Partitions that changed since the comparison began.
  var allChanged: Set<PartitionID> { Set(changed.keys).union(changedBefore.keys) }

  /// What changed of a partition since the comparison began.
  func changes(of partition: PartitionID) -> Change? {
    guard var change = changedBefore[partition], let since = changed[partition] else {
      return changedBefore[partition] ?? changed[partition]
    }
    for chain in since.brought.chains { change.brought.note(chain) }
    change.hasOwn = change.hasOwn || since.hasOwn
    return change
  }

  /// Answers with the number of the question.
  mutating func ask(_ now: MonotonicTime) -> UInt64 {
    begin()
    enter(.asked(count), now)
    (lastQuestion, earlyAnswers) = (now, 0)
    return count
  }

  /// Asked, or answering.
  mutating func begin() {
    count += 1
    isOutdated = false
  }

  mutating func noteMore() { mustGoOn = true }

  /// Answers with what changed meanwhile, and has to be told now.
  mutating func end(_ now: MonotonicTime) -> [PartitionID: Change] {
    let changed = changed
    enter(.none, now)
    if mustGoOn { due = now }
    mustGoOn = false
    return changed
  }

  mutating func note(_ committed: CommittedRuns) {
    var change = changed.removeValue(forKey: committed.partition) ?? Change(before: committed.before)
    if let bringer = committed.bringer {
      if let mark = bringer.markIfAlone { for run in committed.runs { change.brought.note(run, from: mark) } }
    } else {
      change.hasOwn = true
    }
    changed[committed.partition] = change
  }

  // MARK: When

  func isDue(_ now: MonotonicTime) -> Bool { now >= due }

  /// What two may speak of now that they might not before is compared at the next tick; what was found equal is no word of
  /// it.
  mutating func hasten(_ now: MonotonicTime) {
    (due, earlyAnswers, isOutdated) = (now, 0, true)
  }

  mutating func setDue(after milliseconds: UInt64, _ now: MonotonicTime) {
    due = now.advanced(byMilliseconds: milliseconds)
  }

  /// The last question came long before a comparison was due.
  var isAnsweredEarly: Bool { earlyAnswers > 0 }

  /// Of questions that come long before a comparison is due, a few are answered. Whom that leaves waiting has its answer
  /// in the next comparison that this side begins.
  mutating func allowsAnswer(_ interval: UInt64, _ now: MonotonicTime) -> Bool {
    let isNearlyDue = !hasBegun || now.millisecondsSince(lastQuestion) >= interval / 2
    guard isNearlyDue || earlyAnswers < Comparison.earlyLimit else { return false }
    earlyAnswers = isNearlyDue ? 0 : earlyAnswers + 1
    lastQuestion = now
    // Whoever asked asks again; the other only if that does not come.
    setDue(after: interval * 3 / 2, now)
    return true
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
    partitions = partitions.filter { id in
      names(id).map { !removed.wants(id, name: $0) || own.wants(id, name: $0) && peer.wants(id, name: $0) } ?? false
    }
  }

  func contains(_ id: PartitionID, _ name: PartitionName) -> Bool {
    partitions.contains(id)
      || buckets >> UInt64(Summary.bucket(of: id)) & 1 == 1 && own.wants(id, name: name) && peer.wants(id, name: name)
  }
}
