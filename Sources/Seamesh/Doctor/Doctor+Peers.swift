import Links

extension Doctor {
  /// Peers that one finding names; the others it counts. Anybody on the network can announce thousands of nodes, and what is
  /// wrong with them is said once.
  static let namedPeers = 3

  /// One for each thing that is wrong, whomever it concerns.
  ///
  /// - Parameter links: what links of each class may carry now.
  static func findings(_ peers: [PeerStatus], _ links: [LinkReport] = []) -> [DoctorFinding] {
    func those(_ state: PeerStatus.State) -> [PeerStatus] { peers.filter { $0.state == state } }
    // Who was met there before is listed as silent, and may be away for good.
    let missed = those(.unreachable).filter { $0.isFound || $0.device.isEmpty }
    let skewed = those(.connected).filter { $0.clockDifference != nil }
    let strangers = finding(
      those(.otherFleet), .warning, "other-fleet",
      remedy: "Nothing to do, unless it should be one of yours: then it must join with a code of this fleet.",
      one: { "The node at \($0.address) belongs to another fleet." },
      several: { names, _ in "The nodes at \(names) belong to another fleet, or to several." })
    return [strangers].compactMap(\.self) + linkFindings(missed, links)
      + [endedFinding(missed.filter { $0.link == .ended })].compactMap(\.self)
      + unreachableFindings(missed.filter { $0.link == nil })
      + [
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

  /// Where this node's own links keep it from a peer: no firewall does.
  private static func linkFindings(_ missed: [PeerStatus], _ links: [LinkReport]) -> [DoctorFinding] {
    let isChosen = links.contains { $0.isChosen && $0.passes == LinkPassage.nothing.name }
    let byWhom = isChosen ? "by seamesh links --use" : "by a rule of --link"
    return [
      finding(
        missed.filter { $0.link == .closed }, .warning, "peer-link-closed",
        remedy: isChosen
          ? "seamesh links shows it; seamesh links --use=auto has each link be of its own class again."
          : "seamesh links shows the classes; change the rule (link in seamesh.json) if the link should carry something.",
        one: { "\(Doctor.name($0)) is not dialled: the link that leads there is of the class none, \(byWhom)." },
        several: { names, _ in "\(names) are not dialled: the links that lead there are of the class none, \(byWhom)." }
      ),
      finding(
        missed.filter { $0.link == .moved }, .warning, "peer-link-moved",
        remedy: "It begins anew by itself with what may pass now; seamesh links shows what that is.",
        one: {
          "The session with \(Doctor.name($0)) was ended: its link lets something else pass than before\(limits(links))."
        },
        several: { names, _ in
          "The sessions with \(names) were ended: their links let something else pass than before\(limits(links))."
        }),
    ].compactMap(\.self)
  }

  /// Classes whose bytes of today are used up.
  private static func limits(_ links: [LinkReport]) -> String {
    let used = links.filter { $0.passes == LinkPassage.authority.name }.map(\.linkClass)
    return used.isEmpty ? "" : "; the bytes of today are used up of the class \(used.joined(separator: ", "))"
  }

  /// Somebody took the connection: no firewall stands between.
  private static func endedFinding(_ missed: [PeerStatus]) -> DoctorFinding? {
    finding(
      missed, .warning, "peer-ended",
      remedy:
        "It is tried again by itself. If that goes on, see whether it is a node of this version that listens there, and look into "
        + "its log, and here with --log-level=debug.",
      one: { "Somebody answers at \(Doctor.name($0)), but no session comes of it or stays\(reason($0))." },
      several: { names, first in
        "Somebody answers at \(names), but no session comes of it or stays\(reason(first, isFirst: true))."
      })
  }

  private static func unreachableFindings(_ missed: [PeerStatus]) -> [DoctorFinding] {
    [true, false].flatMap { isExplained in
      let those = missed.filter { $0.detail.isEmpty != isExplained }
      return [
        finding(
          those.filter(\.isFound), .problem, "peer-unreachable",
          remedy: isExplained
            ? "Look for a firewall on it, client isolation in the access point, or an address that has changed."
            : unexplainedRemedy,
          one: { "A node is seen at \(Doctor.name($0)) but cannot be reached\(reason($0))." },
          several: { names, first in "Nodes are seen at \(names) but cannot be reached\(reason(first, isFirst: true))."
          }),
        finding(
          those.filter { !$0.isFound }, .warning, "peer-away",
          remedy: isExplained
            ? "Nothing to do while it is switched off or away. Otherwise look at the address, and for a firewall."
            : unexplainedRemedy,
          one: { "Nobody answers at \(Doctor.name($0)), where a node is expected\(reason($0))." },
          several: { names, first in
            "Nobody answers at \(names), where nodes are expected\(reason(first, isFirst: true))."
          }),
      ].compactMap(\.self)
    }
  }

  private static let unexplainedRemedy =
    "It is tried again by itself. If that goes on, look into the log there, and here with --log-level=debug."

  private static func reason(_ peer: PeerStatus, isFirst: Bool = false) -> String {
    if peer.detail.isEmpty { return "; no reason is known" }
    return isFirst ? "; at the first: \(peer.detail)" : ": \(peer.detail)"
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
