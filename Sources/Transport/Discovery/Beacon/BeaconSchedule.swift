import Replication

/// When this node sends its beacon. A value without IO.
///
/// It does so while no responder announces it, and also beside a working one while nobody was heard: multicast DNS may be
/// filtered, or its port blocked. A node that is silent answers the beacons of others now and then, so that they learn of it.
struct BeaconSchedule {
  /// Beacons at the shorter interval, at the start and whenever the need arises.
  static let fastCount = 5

  private let configuration: DiscoveryConfiguration
  private var lastHeardAt: MonotonicTime
  private var sentAt: MonotonicTime?
  private var fastLeft = fastCount
  private var mustAnswer = false
  private(set) var isActive = false

  init(_ configuration: DiscoveryConfiguration, now: MonotonicTime) {
    self.configuration = configuration
    self.lastHeardAt = now
  }

  /// Somebody is known, by whichever way.
  mutating func noteKnown(now: MonotonicTime) { lastHeardAt = now }

  mutating func noteBeacon(now: MonotonicTime) {
    lastHeardAt = now
    let mayAnswerAt = sentAt?.advanced(byMilliseconds: configuration.answerIntervalMilliseconds)
    if mayAnswerAt.map({ now >= $0 }) ?? true { mustAnswer = true }
  }

  /// Interfaces came: those behind them have not heard us.
  mutating func noteInterfacesChanged() { fastLeft = BeaconSchedule.fastCount }

  /// Whether to send now.
  mutating func due(isAnnounced: Bool, now: MonotonicTime) -> Bool {
    let wasActive = isActive
    isActive = !isAnnounced || now >= silentAt
    if isActive, !wasActive { fastLeft = BeaconSchedule.fastCount }
    guard let next = next(now), next <= now else { return false }
    sentAt = now
    mustAnswer = false
    fastLeft = max(0, fastLeft - 1)
    return true
  }

  /// Nil while silent with nothing to answer.
  private func next(_ now: MonotonicTime) -> MonotonicTime? {
    guard let sentAt else { return isActive || mustAnswer ? now : nil }
    if mustAnswer || (isActive && fastLeft > 0) {
      return sentAt.advanced(byMilliseconds: configuration.firstBeaconIntervalMilliseconds)
    }
    return isActive ? sentAt.advanced(byMilliseconds: configuration.beaconIntervalMilliseconds) : nil
  }

  /// When nobody has been heard for long.
  private var silentAt: MonotonicTime { lastHeardAt.advanced(byMilliseconds: configuration.silenceMilliseconds) }

  /// When ``due(isAnnounced:now:)`` should be asked again.
  func nextWake(now: MonotonicTime) -> MonotonicTime { next(now) ?? silentAt }
}
