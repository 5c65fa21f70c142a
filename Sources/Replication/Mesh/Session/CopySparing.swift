/// What two nodes spare each other that tell whom each is linked with: copies of runs that a neighbour of both brings, and a
/// `have` for each of them.
struct CopySparing: Sendable {
  /// Devices with which the peer says to have a live session.
  private(set) var neighbours: Set<DeviceMark> = []
  /// What is to be announced of each partition, all at once.
  private var gathered: [PartitionID: PartitionVector] = [:]
  private(set) var announcedAt: MonotonicTime?
  /// Partitions of which the peer has named more than is here: others bring it, or this peer has to. Since then, or where it
  /// was asked already, not before then.
  private var behindSince: [PartitionID: MonotonicTime] = [:]

  /// Partitions of which announcements are gathered, and of which is looked whether what others bring came. What is beyond is
  /// announced at once, and found by the next comparison.
  static let partitionLimit = 1_024

  // MARK: Neighbours

  mutating func hear(_ news: NeighbourNews) {
    neighbours.subtract(news.removed)
    for mark in news.added.sorted() where neighbours.count < NeighbourNews.limit { neighbours.insert(mark) }
  }

  // MARK: Announcements

  /// Answers whether there is room.
  mutating func gather(_ partition: PartitionID, _ vector: PartitionVector, until due: MonotonicTime) -> Bool {
    guard gathered[partition] != nil || gathered.count < CopySparing.partitionLimit else { return false }
    gathered[partition, default: PartitionVector(name: vector.name, vector: VersionVector())].vector.join(vector.vector)
    announcedAt = min(announcedAt ?? due, due)
    return true
  }

  /// By partition.
  mutating func takeGathered() -> [(partition: PartitionID, vector: PartitionVector)] {
    defer { (gathered, announcedAt) = ([:], nil) }
    return gathered.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  // MARK: What others bring

  mutating func noteBehind(_ partition: PartitionID, _ now: MonotonicTime) {
    guard behindSince[partition] == nil, behindSince.count < CopySparing.partitionLimit else { return }
    behindSince[partition] = now
  }

  mutating func notePulled(_ partition: PartitionID, patientUntil time: MonotonicTime) { behindSince[partition] = time }

  mutating func noteLevel(_ partition: PartitionID) { behindSince[partition] = nil }

  /// Ascending.
  func behind(for milliseconds: UInt64, _ now: MonotonicTime) -> [PartitionID] {
    behindSince.filter { $0.value <= now && now.millisecondsSince($0.value) >= milliseconds }.keys.sorted()
  }
}

extension CopySparing {
  /// Nil where one end does not know the rule. `features`: those that both know.
  init?(_ features: UInt64) {
    guard features & KnownFormats.Feature.neighbours != 0 else { return nil }
    self.init()
  }
}
