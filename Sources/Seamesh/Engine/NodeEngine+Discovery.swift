import Identity
import Replication
import Transport

/// Hands what discovery finds to the engine thread.
private final class DiscoveryIntake: DiscoveryHandler {
  private let fleet: FleetID
  private let inbox: Inbox<EngineJob>

  init(fleet: FleetID, inbox: Inbox<EngineJob>) { (self.fleet, self.inbox) = (fleet, inbox) }

  func found(instance: String, addresses: [SocketAddress], tag: [UInt8]) {
    let matches = DiscoveryTag.matches(tag, fleet: fleet, instanceName: instance)
    inbox.put(.found(instance: Text(instance), addresses, tagMatches: matches))
  }

  func lost(instance: String) { inbox.put(.lost(instance: Text(instance))) }

  func discoveryChanged(_ state: DiscoveryState) {
    inbox.put(.call { engine in engine.discoveryState = state })
  }

  func interfacesChanged() { inbox.put(.networkChanged) }
}

extension NodeEngine {
  /// How long one random name is announced (X15).
  private static let advertisementMilliseconds: UInt64 = 24 * 3_600 * 1_000

  func startDiscovery() {
    guard configuration.usesDiscovery else {
      discoveryState.responder = .disabled
      return
    }
    do {
      discovery = try Discovery(
        advertisement: advertisement(), handler: DiscoveryIntake(fleet: files.fleet, inbox: inbox)
      ) { SystemRandomNumberGenerator.word() }
      advertisedAt = NodeEngine.now
    } catch {
      log.error("discovery could not start", ["reason": "\(error)"])
    }
  }

  private func advertisement() -> Advertisement? {
    let instance = Hex.encode(SecureRandom.bytes(8))
    return Advertisement(
      instance: instance, tag: DiscoveryTag.make(fleet: files.fleet, instanceName: instance),
      port: mesh.local.listenPort)
  }

  func refreshAdvertisement(_ now: MonotonicTime) {
    guard let discovery, now.millisecondsSince(advertisedAt) > NodeEngine.advertisementMilliseconds else { return }
    advertisedAt = now
    discovery.advertise(advertisement())
  }
}

extension SystemRandomNumberGenerator {
  fileprivate static func word() -> UInt64 {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}
