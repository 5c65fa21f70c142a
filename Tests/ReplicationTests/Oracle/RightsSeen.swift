@testable import Replication
@testable import Simulation

/// What random statements led to: a comparison says little where everything is allowed, or nothing is.
struct RightsSeen {
  private var levels: Set<AccessLevel> = []
  private var roomLevels: Set<AccessLevel> = []
  private var reasons: Set<NaiveReason> = []
  private var refusals: Set<NaiveRefusal?> = []
  private var bounds = Spread()
  private var floors = Spread()
  private var doubts = 0
  private var leftOut = 0

  struct Spread {
    var none = 0
    var all = 0
    var between = 0

    mutating func add(_ number: UInt64) {
      switch number {
      case 0: none += 1
      case .max: all += 1
      default: between += 1
      }
    }

    var isWide: Bool { none > 100 && all > 100 && between > 10 }
  }

  mutating func add(_ rights: NaiveRights, _ history: RightsHistory) {
    doubts += rights.isInDoubt ? 1 : 0
    leftOut += history.statements.count - rights.statements.count
    for name in history.partitions {
      for device in RightsHistory.devices {
        let level = rights.level(of: Named.key(device), in: name)
        levels.insert(level)
        if history.rooms.contains(name) { roomLevels.insert(level) }
      }
      for replica in RightsHistory.replicas { add(rights, replica, in: name) }
    }
  }

  private mutating func add(_ rights: NaiveRights, _ replica: ReplicaID, in name: Text) {
    let limits = rights.limits(of: replica, in: name)
    reasons.insert(limits.reason)
    for own in RightsHistory.ownDocuments {
      let run = ObservedRun(
        replica: replica, first: 1, hashBefore: .zero, context: [:], changes: [ObservedChange(own)])
      refusals.insert(limits.refusal(of: run))
    }
    guard limits.reason != .undeclared else { return }
    bounds.add(limits.bound.sequence)
    floors.add(rights.floor(of: replica, in: name))
  }

  var isVaried: Bool {
    levels.count == AccessLevel.allCases.count && roomLevels.count > 2
      && reasons == [.undeclared, .noGrant, .aboveLimit, .aboveEnd]
      && refusals == [nil, .undeclared, .void, .noGrant, .documentRule] && bounds.isWide && floors.isWide
      && doubts > 10 && leftOut > 100
  }
}
