/// What one device makes this node keep of it in memory, beside its statements. Root and whoever was ever an admin take as
/// much as they like.
package struct DeviceTake: Sendable, Equatable {
  /// Partitions in which it has a chain.
  package internal(set) var partitions = 0
  package internal(set) var chains = 0
  /// Changes that memory holds one by one although they do not count: of forked chains' other branches, and held ones.
  package internal(set) var heldChanges = 0
  /// Runs that were left out because the device had taken what it may, since this node started.
  package internal(set) var leftOutRuns = 0

  package init(partitions: Int = 0, chains: Int = 0, heldChanges: Int = 0, leftOutRuns: Int = 0) {
    (self.partitions, self.chains) = (partitions, chains)
    (self.heldChanges, self.leftOutRuns) = (heldChanges, leftOutRuns)
  }

  package static let nothing = DeviceTake()

  /// Far more than any app needs.
  package var isNearlySpent: Bool {
    let limits = DeviceTakeLimits.standard
    return hasHalfOfPlaces(limits) || heldChanges * 2 >= limits.heldChanges
  }

  func hasHalfOfPlaces(_ limits: DeviceTakeLimits) -> Bool {
    partitions * 2 >= limits.partitions || chains * 2 >= limits.chains
  }
  func hasSpentPlaces(_ limits: DeviceTakeLimits) -> Bool {
    partitions >= limits.partitions || chains >= limits.chains
  }
  func hasSpentBranches(_ limits: DeviceTakeLimits) -> Bool { heldChanges >= limits.heldChanges }
}

/// What one device may take. Nodes need not have the same.
package struct DeviceTakeLimits: Sendable {
  /// Each costs some two kilobytes, and some seven hundred bytes on each session.
  package var partitions = 4_096
  /// Each costs some six hundred bytes.
  package var chains = 16_384
  /// Each costs some 130 bytes, and as much again for every 128 bytes that it says beside its hash (``ChainTree/weight``).
  /// A thousand runs of an honest copy stay below.
  package var heldChanges = 65_536

  package init() {}
  package static let standard = DeviceTakeLimits()
  /// For worlds in which somebody keeps to none.
  package static let none: DeviceTakeLimits = {
    var limits = DeviceTakeLimits()
    (limits.partitions, limits.chains, limits.heldChanges) = (1 << 40, 1 << 40, 1 << 40)
    return limits
  }()
}

/// Devices that have taken what they may: in partitions and chains, and in branches.
package struct SpentDevices: Sendable, Equatable {
  package var places: Set<PublicKey> = []
  package var branches: Set<PublicKey> = []

  package init(places: Set<PublicKey> = [], branches: Set<PublicKey> = []) {
    (self.places, self.branches) = (places, branches)
  }

  /// Of one message, in each list. More than that are never at it in one fleet.
  package static let limit = 1_024

  var isEmpty: Bool { places.isEmpty && branches.isEmpty }

  func shared(with other: SpentDevices) -> SpentDevices {
    SpentDevices(places: places.intersection(other.places), branches: branches.intersection(other.branches))
  }
}
