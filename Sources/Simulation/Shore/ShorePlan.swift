import Forwarding
import Replication

/// What a seed makes of the backend before anything happens. Drawn apart, so that worlds without relays are what they were.
struct ShorePlan {
  /// Slots of the nodes that forward.
  let relays: [Int]
  /// Of those, slots that bring the office's edits home.
  let carriers: [Int]
  let limits: ForwarderLimits
  /// Of a hundred calls so many are lost on their way, and as many answers on theirs.
  let lossesOf100: Int
  /// The backend is away now and then.
  let mayBeAway: Bool
  /// It comes back with an older ledger now and then.
  let mayGoBack: Bool
  /// One of several relays ends for good.
  let mayRetire: Bool
  /// A copy of a relay's machine forwards as the relay does, as the same device.
  let clonesForward: Bool
  /// It takes the bodies of some documents not.
  let rejectsSome: Bool
  /// How long a call takes, one way.
  let latency: ClosedRange<UInt64>
  /// Between two things that happen ashore.
  let interval: UInt64

  static let percent = 30

  /// Nil where nobody forwards. `slots`: of nodes that neither lie nor flood.
  init?(_ options: SimulationOptions, slots: [Int], usesDisk: Bool, _ random: inout SimulationRandom) {
    let isWanted = options.hasRelays ?? random.chance(ShorePlan.percent)
    // The readers of the log are the store's own; of two builds each has its own forms.
    guard isWanted, usesDisk, options.builds == nil, !slots.isEmpty else { return nil }
    relays = Array(slots.shuffled(using: &random).prefix(random.chance(60) ? 2 : 1))
    carriers = random.chance(65) ? relays.filter { _ in random.chance(75) } : []
    var limits = ForwarderLimits()
    limits.batchBytes = random.pick([300, 2_000, 1_048_576]) ?? 2_000
    limits.batchChanges = random.pick([3, 20, 8_192]) ?? 20
    limits.batchMarks = random.pick([2, 8_192]) ?? 8_192
    limits.questionChains = random.pick([1, 2, 1_024]) ?? 1_024
    (limits.firstPauseMilliseconds, limits.longestPauseMilliseconds) = (100, 3_000)
    limits.lookMilliseconds = random.pick([1_000, 4_000]) ?? 1_000
    limits.memoryMilliseconds = 500
    limits.asideMilliseconds = 4_000
    limits.readBackMilliseconds = random.pick([300, 2_000]) ?? 300
    limits.readEverythingMilliseconds = 4_000
    self.limits = limits
    lossesOf100 = random.pick([0, 2, 8]) ?? 2
    (mayBeAway, mayGoBack, rejectsSome) = (random.chance(50), random.chance(40), random.chance(25))
    latency = 0...random.between(1...60)
    interval = random.between(300...2_000)
    clonesForward = random.chance(50)
    mayRetire = random.chance(30)
  }
}
