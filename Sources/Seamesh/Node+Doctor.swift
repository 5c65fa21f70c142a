import Identity
import Replication
import Storage
import Transport

/// What discovery has noticed so far.
struct DiscoveryReport: Sendable {
  enum Responder: Sendable { case off, unknown, available, unavailable }

  var responder = Responder.unknown
  /// Any multicast of another host was heard since the start.
  var multicastHeard = false
  var since = MonotonicTime(milliseconds: 0)

  var text: String {
    switch responder {
    case .off: "off"
    case .unknown: "starting"
    case .available: "mDNS"
    case .unavailable: "beacon (no mDNS responder)"
    }
  }
}

extension Node {
  /// Free space below which a person should act.
  static let lowDiskBytes: Int64 = 512 * 1024 * 1024

  package func doctor() throws(NodeError) -> [DoctorFinding] {
    let (report, peers, refusedCodes, now, failure) = try onEngine { engine in
      (engine.discovery, engine.peerStatus(), engine.refusedJoins, NodeEngine.now, engine.failure)
    }
    var findings = discoveryFindings(report, peers, now)
    findings += peers.compactMap(Node.finding)
    if refusedCodes > 0 {
      findings.append(
        DoctorFinding(
          .warning, "wrong-join-code", "\(refusedCodes) devices asked to join with a code that is not this fleet's.",
          remedy: "Make a new code with seamesh invite and type it again, or check that it was made in this fleet."))
    }
    findings += diskFindings(failure)
    guard findings.allSatisfy({ $0.level == .ok }) else { return findings }
    return findings + [DoctorFinding(.ok, "healthy", "Nothing is wrong that this node can see.", remedy: "")]
  }

  private func discoveryFindings(
    _ report: DiscoveryReport, _ peers: [PeerStatus], _ now: MonotonicTime
  ) -> [DoctorFinding] {
    switch report.responder {
    case .off, .unknown: return []
    case .unavailable:
      return [
        DoctorFinding(
          .problem, "no-responder", "No mDNS responder answers on this machine; only the slower beacon finds peers.",
          remedy: "Start it: on Debian, systemctl start avahi-daemon, or as root dbus-daemon --system and avahi-daemon -D.")
      ]
    case .available:
      let isQuiet = !report.multicastHeard && !peers.contains { $0.state == "connected" }
      guard isQuiet, now.millisecondsSince(report.since) > 15_000 else { return [] }
      return [
        DoctorFinding(
          .warning, "multicast-not-heard", "No other node has been heard by multicast.",
          remedy: "If others are on this network, look for client isolation or multicast filtering in the access point, "
            + "or name a peer with --peer HOST:PORT.")
      ]
    }
  }

  private static func finding(_ peer: PeerStatus) -> DoctorFinding? {
    switch peer.state {
    case "other fleet":
      return DoctorFinding(
        .warning, "other-fleet", "The node at \(peer.address) belongs to another fleet.",
        remedy: "Nothing to do, unless it should be one of yours: then it must join with a code of this fleet.")
    case "unreachable":
      return DoctorFinding(
        .problem, "peer-unreachable", "A node is seen at \(peer.address) but cannot be reached: \(peer.detail).",
        remedy: "Look for a firewall on it, client isolation in the access point, or an address that has changed.")
    case "refused":
      return DoctorFinding(
        .warning, "not-a-member", "The node at \(peer.address) does not take this device for a member.",
        remedy: "If it is of this fleet it has not heard of this device yet: connect through a node that has.")
    case "connected" where peer.detail.hasPrefix("its clock"):
      return DoctorFinding(
        .warning, "clock-off", "The clocks of this device and \(peer.address) differ: \(peer.detail).",
        remedy: "Set the wrong one. Nothing is lost meanwhile, but of two edits at the same time the wrong one may be shown.")
    default: return nil
    }
  }

  private func diskFindings(_ failure: NodeError?) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if let failure {
      findings.append(
        DoctorFinding(
          .problem, "store-failed", "The store takes no writes any more: \(failure.message).",
          remedy: "Check the disk, then start the node again; it verifies what is there."))
    }
    guard let space = try? DiskSpace.of(files.directory.path) else { return findings }
    if space.isReadOnly {
      findings.append(
        DoctorFinding(
          .problem, "disk-read-only", "The file system of the data directory is mounted read-only.",
          remedy: "Look in the system's log for disk errors, then mount it for writing."))
    } else if space.availableBytes < Node.lowDiskBytes {
      findings.append(
        DoctorFinding(
          .problem, "disk-low", "Only \(space.availableBytes / 1_048_576) MiB are free for the data directory.",
          remedy: "Free some space: writes fail when it is used up; nothing written is lost."))
    }
    return findings
  }
}

extension Node: NodeInterface {}
