extension Doctor {
  /// Peers that one finding names; the others it counts. Anybody on the network can announce thousands of nodes, and what is
  /// wrong with them is said once.
  static let namedPeers = 3

  /// One for each thing that is wrong, whomever it concerns.
  static func findings(_ peers: [PeerStatus]) -> [DoctorFinding] {
    func those(_ state: PeerStatus.State) -> [PeerStatus] { peers.filter { $0.state == state } }
    let skewed = those(.connected).filter { $0.clockDifference != nil }
    return [
      finding(
        those(.otherFleet), .warning, "other-fleet",
        remedy: "Nothing to do, unless it should be one of yours: then it must join with a code of this fleet.",
        one: { "The node at \($0.address) belongs to another fleet." },
        several: { names, _ in "The nodes at \(names) belong to another fleet, or to several." }),
      finding(
        those(.unreachable), .problem, "peer-unreachable",
        remedy: "Look for a firewall on it, client isolation in the access point, or an address that has changed.",
        one: { "A node is seen at \($0.address) but cannot be reached: \($0.detail)." },
        several: { names, first in
          "Nodes are seen at \(names) but cannot be reached; at the first: \(first.detail)."
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
        one: { "The clocks of this device and \($0.address) differ: \($0.detail)." },
        several: { names, first in
          "The clocks of this device and those at \(names) differ; the first: \(first.detail)."
        }),
    ].compactMap(\.self)
  }

  private static func finding(
    _ peers: [PeerStatus], _ level: DoctorFinding.Level, _ code: String, remedy: String,
    one: (PeerStatus) -> String, several: (_ names: String, PeerStatus) -> String
  ) -> DoctorFinding? {
    guard let first = peers.first else { return nil }
    let named = peers.prefix(namedPeers).map(\.address).joined(separator: ", ")
    let names = peers.count > namedPeers ? "\(named) and \(peers.count - namedPeers) more" : named
    return DoctorFinding(level, code, peers.count == 1 ? one(first) : several(names, first), remedy: remedy)
  }
}
