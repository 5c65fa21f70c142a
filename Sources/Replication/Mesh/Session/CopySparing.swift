/// What two nodes spare each other that tell whom each is linked with: copies of runs that a neighbour of both brings, and a
/// `have` for each of them.
struct CopySparing: Sendable {
  /// Devices with which the peer says to have a live session.
  private(set) var neighbours: Set<DeviceMark> = []
  /// With whom this node is linked no more: the peer, which is no member, was not told.
  private var withheld: Set<DeviceMark> = []
  /// What is to be announced of each partition, all of it at once.
  private var gathered: [PartitionID: Gathered] = [:]
  /// When to look for what is to be announced.
  private(set) var announcedAt: MonotonicTime?
  /// Partitions of which the peer has named more than is here: others bring it, or this peer has to.
  private var behind: [PartitionID: Behind] = [:]
  /// Partitions of which the peer was not asked for its stream, since the pull would have told what is held back.
  private var heldPulls: Set<PartitionID> = []

  private struct Gathered: Sendable {
    var vector: PartitionVector
    var due: MonotonicTime
    /// Nothing of the partition is announced before.
    var heldUntil: MonotonicTime?
    /// However many newcomers there are, one after the other.
    var heldAtMost: MonotonicTime?
    /// Of what is to be announced, what no comparison and no pull has named meanwhile.
    var brought = BroughtChains(limit: CopySparing.broughtLimit)
    /// That is nothing.
    var isTold = false

    /// Answers when it is due.
    mutating func join(_ vector: VersionVector, until time: MonotonicTime, isHeldBack: Bool) -> MonotonicTime {
      self.vector.vector.join(vector)
      isTold = false
      if isHeldBack {
        let limit = heldAtMost ?? time.advanced(byMilliseconds: CopySparing.holdMilliseconds)
        (heldAtMost, heldUntil) = (limit, min(max(heldUntil ?? time, time), limit))
      }
      due = min(due, time)
      if let heldUntil { due = max(due, heldUntil) }
      return due
    }
  }

  private struct Behind: Sendable {
    /// Since then, or where the peer was asked already, not before then.
    var since: MonotonicTime
    /// How far chains were here then of which the peer had more.
    var standing: [ReplicaID: UInt64]
  }

  /// Partitions of which announcements are gathered, and of which is looked whether what others bring came. What is beyond is
  /// announced at once, and found by the next comparison.
  static let partitionLimit = 1_024
  /// So much longer than for the first newcomer something is held back for those that come after it.
  static let holdMilliseconds: UInt64 = 4_000
  /// Pieces of chains of one partition that are to be announced, and of which is known who brought them.
  static let broughtLimit = 16
  /// Chains of one partition of which is looked whether they go on.
  static let chainLimit = 64

  // MARK: Neighbours

  mutating func hear(_ news: NeighbourNews) {
    neighbours.subtract(news.removed)
    for mark in news.added.sorted() where neighbours.count < NeighbourNews.limit { neighbours.insert(mark) }
  }

  /// Of more than it keeps the peer need not be told.
  mutating func withhold(_ gone: Set<DeviceMark>) {
    for mark in gone.sorted() where withheld.count < NeighbourNews.limit { withheld.insert(mark) }
  }

  mutating func takeWithheld() -> Set<DeviceMark> {
    defer { withheld = [] }
    return withheld
  }

  // MARK: Announcements

  /// Answers whether there is room.
  ///
  /// - Parameter isHeldBack: not before `due`, whatever of the partition was to be announced earlier: that waits as well.
  mutating func gather(
    _ partition: PartitionID, _ vector: PartitionVector, until due: MonotonicTime, isHeldBack: Bool = false,
    runs: [LoggedRun] = [], from bringer: DeviceMark? = nil
  ) -> Bool {
    guard gathered.count < CopySparing.partitionLimit || gathered.keys.contains(partition) else { return false }
    let itsDue = gathered[partition, default: Gathered(vector: vector, due: due)]
      .join(vector.vector, until: due, isHeldBack: isHeldBack)
    if let bringer { for run in runs { gathered[partition]?.brought.note(run, from: bringer) } }
    announcedAt = min(announcedAt ?? due, itsDue)
    return true
  }

  /// The peer is told all that is here of the partition, in a vector of another kind.
  mutating func noteTold(_ partition: PartitionID) {
    guard gathered[partition] != nil else { return }
    gathered[partition]?.brought = BroughtChains(limit: CopySparing.broughtLimit)
    gathered[partition]?.isTold = true
  }

  /// What the peer does not know yet to be here, since its announcement waits: it cannot have asked for it.
  func unannounced(_ partition: PartitionID) -> (chains: [BroughtChains.Chain], until: MonotonicTime)? {
    guard let item = gathered[partition], !item.isTold else { return nil }
    return (item.brought.chains, item.due)
  }

  /// A word of the partition would have the peer ask for what it is likely to get elsewhere.
  func holdsBack(_ partition: PartitionID, _ now: MonotonicTime) -> Bool {
    guard let item = gathered[partition], !item.isTold, let until = item.heldUntil else { return false }
    return until > now
  }

  mutating func noteHeldPull(_ partition: PartitionID) {
    if heldPulls.count < CopySparing.partitionLimit { heldPulls.insert(partition) }
  }

  func isPullHeld(_ partition: PartitionID) -> Bool { heldPulls.contains(partition) }

  /// The peer is asked for its stream, which tells it all that is here.
  mutating func notePulled(_ partition: PartitionID) {
    heldPulls.remove(partition)
    noteTold(partition)
  }

  /// By partition; those that are due, or all.
  mutating func takeGathered(_ now: MonotonicTime? = nil) -> [(partition: PartitionID, vector: PartitionVector)] {
    take(now.map { now in gathered.filter { $0.value.due <= now } } ?? gathered)
  }

  /// What is gathered of one partition, unless it is held back.
  mutating func takeGathered(of partition: PartitionID, _ now: MonotonicTime) -> PartitionVector? {
    guard let item = gathered[partition], item.heldUntil ?? now <= now else { return nil }
    return take([partition: item]).first?.vector
  }

  private mutating func take(_ taken: [PartitionID: Gathered]) -> [(partition: PartitionID, vector: PartitionVector)] {
    for partition in taken.keys { gathered[partition] = nil }
    announcedAt = gathered.values.lazy.map(\.due).min()
    return taken.sorted { $0.key < $1.key }.map { ($0.key, $0.value.vector) }
  }

  // MARK: What others bring

  /// - Parameter stream: tells of which chains the peer has more.
  mutating func noteBehind(_ partition: PartitionID, _ stream: PeerStream, _ log: PartitionLog?, _ now: MonotonicTime) {
    guard behind[partition] == nil, behind.count < CopySparing.partitionLimit else { return }
    watch(partition, stream, log, since: now)
  }

  /// From now on, or from later.
  mutating func watch(
    _ partition: PartitionID, _ stream: PeerStream, _ log: PartitionLog?, since time: MonotonicTime
  ) {
    let ahead = stream.chainsAhead(of: log).prefix(CopySparing.chainLimit)
    let standing = ahead.map { ($0, log?.received.sequence(of: $0) ?? 0) }
    behind[partition] = Behind(since: time, standing: Dictionary(uniqueKeysWithValues: standing))
  }

  mutating func noteLevel(_ partition: PartitionID) { behind[partition] = nil }

  /// One of the chains of which the peer has more is here as far as it was, whatever else came.
  func standsStill(_ partition: PartitionID, _ stream: PeerStream, _ log: PartitionLog?) -> Bool {
    guard let standing = behind[partition]?.standing else { return false }
    return stream.chainsAhead(of: log).contains { standing[$0] == log?.received.sequence(of: $0) ?? 0 }
  }

  /// Ascending.
  func behind(for milliseconds: UInt64, _ now: MonotonicTime) -> [PartitionID] {
    behind.filter { $0.value.since <= now && now.millisecondsSince($0.value.since) >= milliseconds }.keys.sorted()
  }
}

extension CopySparing {
  /// Nil where one end does not know the rule. `features`: those that both know.
  init?(_ features: UInt64) {
    guard features & KnownFormats.Feature.neighbours != 0 else { return nil }
    self.init()
  }
}
