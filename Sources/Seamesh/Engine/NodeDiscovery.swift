import Engine
import Identity
import Replication
import Synchronization
import Transport

/// Announces this node and hands what discovery finds to the engine.
final class NodeDiscovery: Sendable {
  private let fleet: FleetID
  private let port: UInt16
  private let discovery: Discovery?
  private let advertisedAt: Mutex<MonotonicTime>
  private let intake: DiscoveryIntake

  /// How long one random name is announced (X15).
  private static let advertisementMilliseconds: UInt64 = 24 * 3_600 * 1_000

  init(fleet: FleetID, port: UInt16, isUsed: Bool, inbox: Inbox, log: NodeLog) {
    (self.fleet, self.port) = (fleet, port)
    intake = DiscoveryIntake(fleet: fleet, inbox: inbox)
    advertisedAt = Mutex(ElapsedClock.now())
    guard isUsed else {
      intake.state.withLock { $0.responder = .disabled }
      discovery = nil
      return
    }
    do {
      discovery = try Discovery(
        advertisement: NodeDiscovery.advertisement(fleet, port), handler: intake
      ) { SystemRandomNumberGenerator.word() }
    } catch {
      log.error("discovery could not start", ["reason": "\(error)"])
      discovery = nil
    }
  }

  var state: DiscoveryState { intake.state.withLock { $0 } }

  func stop() { discovery?.stop() }

  /// Goes over to another name once a day.
  func refresh() {
    let now = ElapsedClock.now()
    let isDue = advertisedAt.withLock { at in
      guard now.millisecondsSince(at) > NodeDiscovery.advertisementMilliseconds else { return false }
      at = now
      return true
    }
    if isDue { discovery?.advertise(NodeDiscovery.advertisement(fleet, port)) }
  }

  private static func advertisement(_ fleet: FleetID, _ port: UInt16) -> Advertisement? {
    let instance = Hex.encode(SecureRandom.bytes(8))
    return Advertisement(
      instance: instance, tag: DiscoveryTag.make(fleet: fleet, instanceName: instance), port: port)
  }
}

private final class DiscoveryIntake: DiscoveryHandler {
  private let fleet: FleetID
  private let inbox: Inbox
  let state = Mutex(DiscoveryState())

  init(fleet: FleetID, inbox: Inbox) { (self.fleet, self.inbox) = (fleet, inbox) }

  func found(instance: String, addresses: [SocketAddress], tag: [UInt8]) {
    let matches = DiscoveryTag.matches(tag, fleet: fleet, instanceName: instance)
    inbox.put(.event(.sighting(.found(instance: Text(instance), addresses: addresses, tagMatches: matches))))
  }

  func lost(instance: String) { inbox.put(.event(.sighting(.lost(instance: Text(instance))))) }
  func discoveryChanged(_ new: DiscoveryState) { state.withLock { $0 = new } }
  func interfacesChanged() { inbox.put(.event(.networkChanged)) }
}

extension SystemRandomNumberGenerator {
  fileprivate static func word() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}

extension DiscoveryState {
  /// In a word or two, for `status`.
  var sentence: String {
    switch responder {
    case .disabled: "off"
    case .unknown: "starting"
    case .available: "mDNS"
    case .absent: "beacon (no mDNS responder)"
    case .hung: "beacon (the mDNS responder does not answer)"
    }
  }
}
