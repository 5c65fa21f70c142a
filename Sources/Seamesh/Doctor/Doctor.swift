import Engine
import Identity
import Replication
import Storage
import Transport

/// What is wrong with a node, and what to do about it, by what is known of it at one moment.
struct Doctor {
  let view: EngineView
  let discovery: DiscoveryState
  let links: [LinkReport]
  let forwarding: ForwardingStatus?
  /// Partitions in which something waits for a decision, as far as that is known.
  let conflicts: [String]
  let history: StoreHistory
  let figures: NodeGauges.Figures
  let descriptors: DescriptorBudget
  let directory: String
  let uptimeMilliseconds: UInt64

  /// Free space below which a person should act.
  static let lowDiskBytes: Int64 = 512 * 1024 * 1024

  var findings: [DoctorFinding] {
    let (peers, refusedCodes) = (view.peers.rows(metBefore: [], [:]), view.refusedJoins)
    var findings = [Doctor.finding(engineSilentFor: view.age)].compactMap { $0 }
    findings += discoveryFindings(peers)
    findings += Doctor.findings(peers, links)
    if refusedCodes > 0 {
      findings.append(
        DoctorFinding(
          .warning, "wrong-join-code",
          "This node was asked \(refusedCodes == 1 ? "once" : "\(refusedCodes) times") to let a device join by a code that it did not make.",
          remedy: "Make a new code with seamesh invite. Where nobody tries to join, somebody guesses codes in vain."))
    }
    findings += Doctor.findings(view.held)
    findings += Doctor.findings(view.spenders) + view.conduct.compactMap(Doctor.finding)
    findings += Doctor.findings(undeletable: view.undeletable)
    findings += [Doctor.finding(view.ownKey, at: view.taken)].compactMap { $0 }
    findings += Doctor.findings(view.damaged, mended: view.mended.documents, view.mended.count)
    findings += Doctor.findings(damagedRuns: view.runs.damaged, mended: view.runs.mended)
    findings += Doctor.findings(unreadLog: view.runs.unread)
    if let forwarding { findings += Doctor.findings(forwarding) }
    findings += links.compactMap(Doctor.finding)
    findings += Doctor.finding(conflicts: conflicts).map { [$0] } ?? []
    findings += historyFindings()
    findings += diskFindings(view.failure)
    // A directory that cannot be read is found out by what the store meets.
    findings += Doctor.findings(try? FilesSetAside(directory))
    findings += figures.findings + [descriptors.finding(figures)].compactMap { $0 }
    guard findings.allSatisfy({ $0.level == .ok }) else { return findings }
    return findings + [
      DoctorFinding(.ok, "healthy", "Nothing is wrong that this node can see.\(Doctor.wipeSentence(view))", remedy: "")
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

  static func finding(conflicts names: [String]) -> DoctorFinding? {
    guard !names.isEmpty else { return nil }
    return DoctorFinding(
      .warning, "open-conflicts", "What several wrote at once waits for a decision in \(LevelSentences.list(names)).",
      remedy: "Look with seamesh conflicts PARTITION, and decide with seamesh resolve.")
  }

  private static func wipeSentence(_ view: EngineView) -> String {
    guard let lost = view.status.lostIfWiped else { return "" }
    return lost == 0
      ? " All that is here is known to be elsewhere."
      : " \(counted(lost, "change is", "changes are")) not known to be in the backend or on two other devices: see "
        + "seamesh safe-to-wipe."
  }

  /// So long may the first peers take to be heard.
  static let quietMilliseconds: UInt64 = 15_000

  private func discoveryFindings(_ peers: [PeerStatus]) -> [DoctorFinding] {
    switch discovery.responder {
    case .disabled, .unknown: return []
    case .absent, .hung:
      let what = discovery.responder == .absent ? "No mDNS responder runs" : "The mDNS responder does not answer"
      return [
        DoctorFinding(
          .problem, "no-responder", "\(what) on this machine; only the slower beacon finds peers.",
          remedy:
            "Start it: on Debian systemctl restart avahi-daemon, or as root dbus-daemon --system and avahi-daemon -D.")
      ]
    case .available:
      let isQuiet = !discovery.hasHeardMulticast && !peers.contains { $0.state == .connected }
      guard isQuiet, uptimeMilliseconds > Doctor.quietMilliseconds else { return [] }
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
    guard let space = try? DiskSpace.of(directory) else { return findings }
    if space.isReadOnly {
      findings.append(
        DoctorFinding(
          .problem, "disk-read-only", "The file system of the data directory is mounted read-only.",
          remedy: "Look in the system's log for disk errors, then mount it for writing."))
    } else if space.availableBytes < Doctor.lowDiskBytes {
      findings.append(
        DoctorFinding(
          .problem, "disk-low", "Only \(space.availableBytes / 1_048_576) MiB are free for the data directory.",
          remedy: "Free some space: writes fail when it is used up; nothing written is lost."))
    }
    return findings
  }
}
