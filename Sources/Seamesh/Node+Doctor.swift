import Engine
import Identity
import Replication
import Storage
import Transport

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

extension Node {
  /// Free space below which a person should act.
  static let lowDiskBytes: Int64 = 512 * 1024 * 1024

  package func doctor() throws(NodeError) -> [DoctorFinding] {
    let view = try view(judgesWipe: true)
    let (peers, refusedCodes) = (view.peers.rows(metBefore: [], [:]), view.refusedJoins)
    var findings = [Node.finding(engineSilentFor: view.age)].compactMap { $0 }
    findings += discoveryFindings(discovery.state, peers, uptimeMilliseconds)
    findings += Node.findings(peers)
    if refusedCodes > 0 {
      findings.append(
        DoctorFinding(
          .warning, "wrong-join-code",
          "This node was asked \(refusedCodes) times to let a device join by a code that it did not make.",
          remedy: "Make a new code with seamesh invite. Where nobody tries to join, somebody guesses codes in vain."))
    }
    findings += Node.findings(view.held)
    findings += Node.findings(view.spenders) + view.conduct.compactMap(Node.finding)
    findings += Node.findings(undeletable: view.undeletable)
    findings += Node.findings(view.damaged, mended: view.mended.documents, view.mended.count)
    findings += Node.findings(damagedRuns: view.runs.damaged, mended: view.runs.mended)
    if let forwarding = forwardingStatus { findings += Node.findings(forwarding) }
    findings += links(view).compactMap(Node.finding)
    findings += historyFindings()
    findings += diskFindings(view.failure)
    let figures = gauges.figures
    findings += figures.findings + [descriptors.finding(figures)].compactMap { $0 }
    guard findings.allSatisfy({ $0.level == .ok }) else { return findings }
    return findings + [
      DoctorFinding(.ok, "healthy", "Nothing is wrong that this node can see.\(Node.wipeSentence(view))", remedy: "")
    ]
  }

  /// Above this age of the latest look at the engine somebody should know.
  static let busyMilliseconds: UInt64 = 5_000

  /// - Parameter age: milliseconds.
  static func finding(engineSilentFor age: UInt64) -> DoctorFinding? {
    guard age > busyMilliseconds else { return nil }
    return DoctorFinding(
      .problem, "engine-busy",
      "The node has not answered for \(age / 1_000) s; what is said here is of the time before.",
      remedy: "Wait: it may be writing a lot. If it goes on, the disk may hang: look in the system's log.")
  }

  private static func wipeSentence(_ view: EngineView) -> String {
    guard let lost = view.status.lostIfWiped else { return "" }
    return lost == 0
      ? " All that is here is known to be elsewhere."
      : " \(lost) change\(lost == 1 ? " is" : "s are") not known to be elsewhere: see seamesh safe-to-wipe."
  }

  /// So long may the first peers take to be heard.
  static let quietMilliseconds: UInt64 = 15_000

  private func discoveryFindings(
    _ state: DiscoveryState, _ peers: [PeerStatus], _ uptimeMilliseconds: UInt64
  ) -> [DoctorFinding] {
    switch state.responder {
    case .disabled, .unknown: return []
    case .absent, .hung:
      let what = state.responder == .absent ? "No mDNS responder runs" : "The mDNS responder does not answer"
      return [
        DoctorFinding(
          .problem, "no-responder", "\(what) on this machine; only the slower beacon finds peers.",
          remedy:
            "Start it: on Debian systemctl restart avahi-daemon, or as root dbus-daemon --system and avahi-daemon -D.")
      ]
    case .available:
      let isQuiet = !state.hasHeardMulticast && !peers.contains { $0.state == .connected }
      guard isQuiet, uptimeMilliseconds > Node.quietMilliseconds else { return [] }
      return [
        DoctorFinding(
          .warning, "multicast-not-heard", "No other node has been heard by multicast.",
          remedy:
            "If others are on this network, look for client isolation or multicast filtering in the access point, "
            + "or name a peer with --peer HOST:PORT.")
      ]
    }
  }

  /// What was lost before this start, as far as it can be known, and what was done about it.
  private func historyFindings() -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    let remedy =
      "Let it meet the nodes that it was last in touch with: what they hold of its writes comes back by itself."
    if history.wasFetched {
      findings.append(
        DoctorFinding(
          .warning, "store-fetched",
          "The store had gone at the start: everything is fetched anew from the fleet, under a new replica id.",
          remedy: remedy
            + " Writes that no other node held are lost. It wants every partition that it may hold; to want "
            + "fewer, subscribe to those and unsubscribe from '*'."))
    }
    // Whoever put a backup in place knows what it lacks.
    guard history.causes.isDisjoint(with: [.restored]) else { return findings }
    if history.causes.contains(.log) {
      findings.append(
        DoctorFinding(
          .problem, "log-lost",
          "The node was not stopped cleanly, and seamesh.db-wal was missing or empty at the next start: writes that were "
            + "acknowledged before may be lost here. The node goes on under a new replica id.",
          remedy: remedy + " If nobody moved the file, check the disk."))
    }
    if history.causes.contains(.reached) {
      findings.append(
        DoctorFinding(
          .problem, "store-rolled-back",
          "seamesh.db held less at the start than this device had written: an older copy came back, or its log was lost. "
            + "The node goes on under a new replica id.",
          remedy: remedy))
    }
    return findings
  }

  private func diskFindings(_ failure: NodeError?) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if let failure {
      findings.append(
        DoctorFinding(
          .problem, "store-failed", "The store takes no writes any more: \(failure.message).",
          remedy: "Check the disk and the data directory, then start the node again; it verifies what is there."))
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
