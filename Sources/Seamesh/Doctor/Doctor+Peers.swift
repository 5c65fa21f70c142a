extension Doctor {
  /// Peers that one finding names; the others it counts. Anybody on the network can announce thousands of nodes, and what is
  /// wrong with them is said once.
  static let namedPeers = 3

  /// One for each thing that is wrong, whomever it concerns.
  static func findings(_ peers: [PeerStatus]) -> [DoctorFinding] {
    func those(_ state: PeerStatus.State) -> [PeerStatus] { peers.filter { $0.state == state } }
    let found = those(.unreachable).filter(\.isFound)
    // Who was met there before is listed as silent, and may be away for good.
    let awaited = those(.unreachable).filter { !$0.isFound && $0.device.isEmpty }
    let skewed = those(.connected).filter { $0.clockDifference != nil }
    return [
      finding(
        those(.otherFleet), .warning, "other-fleet",
        remedy: "Nothing to do, unless it should be one of yours: then it must join with a code of this fleet.",
        one: { "The node at \($0.address) belongs to another fleet." },
        several: { names, _ in "The nodes at \(names) belong to another fleet, or to several." }),
      finding(
        found, .problem, "peer-unreachable",
        remedy: "Look for a firewall on it, client isolation in the access point, or an address that has changed.",
        one: { "A node is seen at \(Doctor.name($0)) but cannot be reached: \($0.detail)." },
        several: { names, first in
          "Nodes are seen at \(names) but cannot be reached; at the first: \(first.detail)."
        }),
      finding(
        awaited, .warning, "peer-away",
        remedy: "Nothing to do while it is switched off or away. Otherwise look at the address, and for a firewall.",
        one: { "Nobody answers at \(Doctor.name($0)), where a node is expected: \($0.detail)." },
        several: { names, first in
          "Nobody answers at \(names), where nodes are expected; at the first: \(first.detail)."
        }),
      finding(
        those(.refused), .warning, "not-a-member",
        remedy:
          "If it is of this fleet it has not heard of this device yet: connect through a node that has. If none takes it, "
          + "the admin who let it in may have been ended before: ask another for a new code.",
        one: { "The node at \($0.address) does not take this device for a member." },
        several: { names, _ in "The nodes at \(names) do not take this device for a member." }),
      finding(
        skewed, .warning, "clock-off",
        remedy:
          "Set the wrong one. Nothing is lost meanwhile, but of two edits at the same time the wrong one may be shown.",
        one: { "The clocks of this device and \(Doctor.name($0)) differ: \($0.detail)." },
        several: { names, first in
          "The clocks of this device and those at \(names) differ; the first: \(first.detail)."
        }),
    ].compactMap(\.self)
  }

  /// An address alone says little: that of who has dialled changes each time.
  private static func name(_ peer: PeerStatus) -> String {
    peer.label.isEmpty ? peer.address : "\(peer.address) (\(peer.label))"
  }

  private static func finding(
    _ peers: [PeerStatus], _ level: DoctorFinding.Level, _ code: String, remedy: String,
    one: (PeerStatus) -> String, several: (_ names: String, PeerStatus) -> String
  ) -> DoctorFinding? {
    guard let first = peers.first else { return nil }
    let named = peers.prefix(namedPeers).map(name).joined(separator: ", ")
    let names = peers.count > namedPeers ? "\(named) and \(peers.count - namedPeers) more" : named
    return DoctorFinding(level, code, peers.count == 1 ? one(first) : several(names, first), remedy: remedy)
  }
}
