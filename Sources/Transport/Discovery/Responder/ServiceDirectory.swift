import Replication

/// The names that the responder reports, and when each is to be resolved. A value without IO.
///
/// Names are hints of unknown origin (N5, N6): the table is bounded, a random one makes place when it is full, and what is
/// resolved next is drawn at random among what is due, so that no flood of made-up names keeps a real one waiting for
/// more than its share.
struct ServiceDirectory {
  struct Key: Hashable, Comparable {
    let name: String
    let interface: UInt32
    static func < (a: Key, b: Key) -> Bool { (a.name, a.interface) < (b.name, b.interface) }
  }

  struct Resolution: Equatable {
    let addresses: [SocketAddress]
    let tag: [UInt8]
  }

  enum Output: Equatable {
    case seen(name: String, addresses: [SocketAddress], tag: [UInt8])
    case lost(name: String)
  }

  static let serviceLimit = 1_024
  static let firstRetryMilliseconds: UInt64 = 5_000
  static let longestRetryMilliseconds: UInt64 = 600_000
  /// After so many failures in a row what was resolved before no longer counts: the record is a ghost.
  static let failuresUntilLost = 2
  /// Peers that are connected need no fresh address, those that go on being found seldom: each name that is looked at costs
  /// every host of the network a question and an answer.
  static let settledFactor: UInt64 = 120
  static let longestIntervalFactor: UInt64 = 20

  private struct Service {
    /// The responder reports a name once for each address family of an interface.
    var reports = 1
    var resolveAt: MonotonicTime
    var isInProgress = false
    var failures = 0
    /// Since it appeared.
    var successes: UInt64 = 0
    var resolution: Resolution?
  }

  private let intervalMilliseconds: UInt64
  private var services: [Key: Service] = [:]
  private var settled: Set<String> = []

  init(resolveIntervalMilliseconds: UInt64) { self.intervalMilliseconds = resolveIntervalMilliseconds }

  var count: Int { services.count }

  mutating func appeared(_ key: Key, now: MonotonicTime, using random: inout some RandomNumberGenerator) -> [Output] {
    guard services[key] == nil else {
      services[key]?.reports += 1
      return []
    }
    var outputs: [Output] = []
    if services.count >= ServiceDirectory.serviceLimit, let victim = services.keys.randomElement(using: &random) {
      outputs = forget(victim)
    }
    services[key] = Service(resolveAt: now)
    return outputs
  }

  mutating func vanished(_ key: Key) -> [Output] {
    guard let service = services[key] else { return [] }
    guard service.reports <= 1 else {
      services[key]?.reports -= 1
      return []
    }
    return forget(key)
  }

  private mutating func forget(_ key: Key) -> [Output] {
    guard let service = services.removeValue(forKey: key), service.resolution != nil else { return [] }
    return [output(key.name)]
  }

  /// A random one of those that are due; it counts as in progress until ``resolved(_:_:now:)`` or ``failed(_:now:)``.
  mutating func takeDue(now: MonotonicTime, using random: inout some RandomNumberGenerator) -> Key? {
    let due = services.filter { !$0.value.isInProgress && $0.value.resolveAt <= now }.keys
    guard let key = due.randomElement(using: &random) else { return nil }
    services[key]?.isInProgress = true
    return key
  }

  var nextDue: MonotonicTime? { services.values.lazy.filter { !$0.isInProgress }.map(\.resolveAt).min() }

  mutating func resolved(_ key: Key, _ resolution: Resolution, now: MonotonicTime) -> [Output] {
    guard var service = services[key] else { return [] }
    (service.isInProgress, service.failures, service.resolution) = (false, 0, resolution)
    service.resolveAt = now.advanced(byMilliseconds: intervalMilliseconds * factor(of: key, service))
    service.successes += 1
    services[key] = service
    return [output(key.name)]
  }

  private func factor(of key: Key, _ service: Service) -> UInt64 {
    settled.contains(key.name)
      ? ServiceDirectory.settledFactor : min(1 << min(service.successes, 32), ServiceDirectory.longestIntervalFactor)
  }

  mutating func failed(_ key: Key, now: MonotonicTime) -> [Output] {
    guard var service = services[key] else { return [] }
    service.isInProgress = false
    service.failures += 1
    let delay = ServiceDirectory.firstRetryMilliseconds << UInt64(min(service.failures, 10))
    service.resolveAt = now.advanced(byMilliseconds: min(delay, ServiceDirectory.longestRetryMilliseconds))
    let becomesGhost = service.failures >= ServiceDirectory.failuresUntilLost && service.resolution != nil
    if becomesGhost { service.resolution = nil }
    services[key] = service
    return becomesGhost ? [output(key.name)] : []
  }

  /// The daemon is gone; a new one reports everything anew.
  func emptied() -> ServiceDirectory {
    var empty = ServiceDirectory(resolveIntervalMilliseconds: intervalMilliseconds)
    empty.settled = settled
    return empty
  }

  /// Interfaces of this host changed: every address may have, too.
  mutating func resolveAllAgain(now: MonotonicTime) {
    for key in services.keys { services[key]?.resolveAt = now }
  }

  mutating func setSettled(_ names: Set<String>, now: MonotonicTime) {
    let (lost, gained) = (settled.subtracting(names), names.subtracting(settled))
    settled = names
    // Once, and then as seldom as before: in a large fleet links are given up again and again.
    for key in services.keys where lost.contains(key.name) { services[key]?.resolveAt = now }
    for key in services.keys where gained.contains(key.name) && services[key]?.resolution != nil {
      services[key]?.resolveAt = now.advanced(byMilliseconds: intervalMilliseconds * ServiceDirectory.settledFactor)
    }
  }

  private func output(_ name: String) -> Output {
    let resolutions = services.filter { $0.key.name == name }.sorted { $0.key < $1.key }.compactMap(\.value.resolution)
    guard let last = resolutions.last else { return .lost(name: name) }
    return .seen(name: name, addresses: Set(resolutions.flatMap(\.addresses)).sorted(), tag: last.tag)
  }
}
