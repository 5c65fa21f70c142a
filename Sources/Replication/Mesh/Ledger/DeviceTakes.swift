/// How much of this node each device takes, and who has taken all it may (decision 30).
package struct DeviceTakes: Sendable {
  package private(set) var all: [PublicKey: DeviceTake] = [:]
  private(set) var spent = SpentDevices()
  private let limits: DeviceTakeLimits

  init(_ limits: DeviceTakeLimits) { self.limits = limits }

  /// Anew, from all that is here.
  mutating func count(_ partitions: PartitionTable, _ authority: Authority) {
    var counted = all.compactMapValues { $0.leftOutRuns > 0 ? DeviceTake(leftOutRuns: $0.leftOutRuns) : nil }
    for partition in partitions.values {
      var devices: Set<PublicKey> = []
      for replica in partition.log.received.entries.keys {
        for device in authority.bearers(of: replica) {
          counted[device, default: DeviceTake()].chains += 1
          devices.insert(device)
        }
      }
      for device in devices { counted[device]?.partitions += 1 }
      for (replica, count) in partition.log.heldCounts {
        for device in authority.bearers(of: replica) { counted[device, default: DeviceTake()].heldChanges += count }
      }
    }
    all = counted
    spent = SpentDevices()
    for device in all.keys { judge(device, authority) }
  }

  /// Counted anew it comes to the same.
  func areCounted(_ partitions: PartitionTable, _ authority: Authority) -> Bool {
    var anew = self
    anew.count(partitions, authority)
    return anew.all == all
  }

  private mutating func judge(_ device: PublicKey, _ authority: Authority) {
    guard let take = all[device], !authority.wasEverAdmin(device) else { return }
    if take.hasSpentPlaces(limits) { spent.places.insert(device) }
    if take.hasSpentBranches(limits) {
      spent.branches.insert(device)
    } else {
      spent.branches.remove(device)
    }
  }

  /// A run of the device was taken: what it takes beyond what it took before.
  mutating func add(_ more: DeviceTake, of device: PublicKey, _ authority: Authority) {
    var take = all[device] ?? DeviceTake()
    take.heldChanges = max(0, take.heldChanges + more.heldChanges)
    take.chains += more.chains
    take.partitions += more.partitions
    all[device] = take
    judge(device, authority)
  }

  mutating func noteLeftOut(of device: PublicKey) { all[device]?.leftOutRuns += 1 }

  func isSpent(_ device: PublicKey) -> Bool {
    spent.places.contains(device) || spent.branches.contains(device)
  }

  /// Half of the allowance is left to what others know of it.
  func hasHalfOfPlaces(_ device: PublicKey) -> Bool { all[device]?.hasHalfOfPlaces(limits) ?? false }
}

extension Authority {
  /// Who has to answer for what is kept of a chain: its device. Where no declaration is here, some device that has said all it
  /// may has pushed out one of its own (rule C26), which nobody can tell: then each that could have.
  func bearers(of replica: ReplicaID) -> Set<PublicKey> { author(of: replica).map { [$0] } ?? fullDevices }
}
