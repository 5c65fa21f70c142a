/// When runs that came from elsewhere are passed on to a peer, and which they are. Beside the streams, of which there may be
/// thousands: the shell asks for the earliest at every turn.
struct RelaysDue: Sendable {
  private var due: [PartitionID: MonotonicTime] = [:]
  private var waiting: [PartitionID: BroughtChains] = [:]

  /// Of a partition. What is beyond is passed on when its time has come, whoever brings it meanwhile.
  static let waitingLimit = 256

  var earliest: MonotonicTime? { due.values.min() }

  subscript(partition: PartitionID) -> MonotonicTime? { due[partition] }

  /// What waits already keeps its time.
  mutating func begin(_ partition: PartitionID, at time: MonotonicTime) {
    if due[partition] == nil { due[partition] = time }
  }

  mutating func postpone(_ partition: PartitionID, until time: MonotonicTime) {
    due[partition] = due[partition].map { max($0, time) } ?? time
  }

  mutating func end(_ partition: PartitionID) { (due[partition], waiting[partition]) = (nil, nil) }

  /// Ascending.
  func due(_ now: MonotonicTime) -> [PartitionID] { due.filter { $0.value <= now }.keys.sorted() }

  mutating func note(_ run: LoggedRun, of partition: PartitionID, from bringer: DeviceMark) {
    guard due[partition] != nil else { return }
    waiting[partition, default: BroughtChains(limit: RelaysDue.waitingLimit)].note(run, from: bringer)
  }

  mutating func note(_ chain: BroughtChains.Chain, of partition: PartitionID) {
    guard due[partition] != nil else { return }
    waiting[partition, default: BroughtChains(limit: RelaysDue.waitingLimit)].note(chain)
  }

  func waiting(of partition: PartitionID) -> [BroughtChains.Chain] { waiting[partition]?.chains ?? [] }

  /// What came from these, by partition.
  func waiting(from bringers: Set<DeviceMark>) -> [(partition: PartitionID, chains: [BroughtChains.Chain])] {
    waiting.mapValues { $0.chains.filter { bringers.contains($0.bringer) } }.filter { !$0.value.isEmpty }
      .sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}
