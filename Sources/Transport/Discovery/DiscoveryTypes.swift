import Replication

/// What this node tells others on the network: no names, no clock, nothing that stays the same for longer than a day
/// (X15).
package struct Advertisement: Hashable, Sendable {
  package static let tagByteCount = 8
  /// DNS label (RFC 1035 §2.3.4).
  package static let instanceByteLimit = 63

  /// Random; new at every start and once a day.
  package let instance: String
  /// MAC(fleet discovery key, instance), 8 bytes.
  package let tag: [UInt8]
  /// TCP port of the transport.
  package let port: UInt16

  /// Nil unless the instance has 1–63 bytes, the tag 8, and the port is not 0.
  package init?(instance: String, tag: [UInt8], port: UInt16) {
    guard (1...Advertisement.instanceByteLimit).contains(instance.utf8.count), tag.count == Advertisement.tagByteCount,
      port != 0
    else { return nil }
    (self.instance, self.tag, self.port) = (instance, tag, port)
  }
}

/// The mDNS responder of this machine (avahi, mDNSResponder), as far as it lets itself be seen.
package enum ResponderState: String, Sendable, Equatable {
  case unknown
  /// No D-Bus, no daemon: tried again every few seconds.
  case absent
  case available
  /// It exists but does not answer calls.
  case hung
  /// Not asked for.
  case disabled
}

/// For `doctor`: why nobody may be found.
package struct DiscoveryState: Sendable, Equatable {
  package var responder = ResponderState.unknown
  /// The responder confirmed that our service is announced.
  package var isRegistered = false
  /// A multicast packet of someone else arrived, by mDNS or by beacon.
  package var hasHeardMulticast = false
  package var isBeaconing = false
  /// Interfaces that the beacon uses.
  package var interfaces: [String] = []
  /// Instances known now.
  package var instances = 0
  package init() {}
}

/// What discovery finds. Every item is a hint by an unknown sender: who is there, TLS shows.
///
/// All methods are called on discovery's own thread, one after another.
package protocol DiscoveryHandler: AnyObject, Sendable {
  /// An instance was seen, with all addresses known now. Told again when something changed, and when it was seen anew
  /// after half a minute or more.
  func found(instance: String, addresses: [SocketAddress], tag: [UInt8])
  func lost(instance: String)
  func discoveryChanged(_ state: DiscoveryState)
  /// An interface or address of this host came or went.
  func interfacesChanged()
}

package struct DiscoveryConfiguration: Sendable {
  package var usesResponder = true
  package var usesBeacon = true
  /// Interfaces of the beacon, by name; nil means all that are up.
  package var beaconInterfaces: Set<String>?
  /// UDP port of the beacon: in nobody's registered range, below the ephemeral ones.
  package var beaconPort: UInt16 = 21_063
  /// The beacon also runs beside a working responder while nobody was heard for so long: multicast DNS may be filtered.
  package var silenceMilliseconds: UInt64 = 10_000
  /// Between two beacons, after a few faster ones at the start.
  package var beaconIntervalMilliseconds: UInt64 = 5_000
  package var firstBeaconIntervalMilliseconds: UInt64 = 1_000
  /// A node that is silent, since its responder announces it, answers the beacons of others so often.
  package var answerIntervalMilliseconds: UInt64 = 10_000
  /// An instance known by beacon alone is forgotten without one for so long.
  package var beaconLifetimeMilliseconds: UInt64 = 30_000
  /// Known names are asked for again, since nothing tells when a peer's address changed or a split healed.
  package var resolveIntervalMilliseconds: UInt64 = 30_000
  package init() {}
}
