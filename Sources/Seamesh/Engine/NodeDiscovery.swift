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
  private let settling: Mutex<Settling>
  private let intake: DiscoveryIntake

  /// How long one random name is announced (X15).
  private static let advertisementMilliseconds: UInt64 = 24 * 3_600 * 1_000

  /// What the responder was told of whose names need not be looked up soon.
  private struct Settling {
    var at: MonotonicTime
    var names: Set<String> = []
  }

  /// A look at all links costs more than a turn may.
  private static let settlingMilliseconds: UInt64 = 1_000

  init(fleet: FleetID, port: UInt16, isUsed: Bool, inbox: Inbox, log: NodeLog) {
    (self.fleet, self.port) = (fleet, port)
    intake = DiscoveryIntake(fleet: fleet, inbox: inbox)
    let now = ElapsedClock.now()
    advertisedAt = Mutex(now)
    settling = Mutex(Settling(at: now))
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

  /// Goes over to another name once a day, and has the names of linked devices looked up seldom.
  ///
  /// - Parameter linked: asked for once a second at the most.
  func refresh(linked: () -> Set<Text>) {
    let now = ElapsedClock.now()
    settle(now, linked)
    let isDue = advertisedAt.withLock { at in
      guard now.millisecondsSince(at) > NodeDiscovery.advertisementMilliseconds else { return false }
      at = now
      return true
    }
    if isDue { discovery?.advertise(NodeDiscovery.advertisement(fleet, port)) }
  }

  private func settle(_ now: MonotonicTime, _ linked: () -> Set<Text>) {
    settling.withLock { settling in
      guard now.millisecondsSince(settling.at) >= NodeDiscovery.settlingMilliseconds else { return }
      settling.at = now
      let names = Set(linked().map(\.string))
      guard names != settling.names else { return }
      settling.names = names
      discovery?.settle(names)
    }
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
