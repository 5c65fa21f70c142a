import Engine
import Identity
import Replication

// What members did, and what is held of those that were ended.
extension Doctor {
  static func findings(_ spenders: [Spender]) -> [DoctorFinding] {
    spenders.map { spender in
      DoctorFinding(
        .problem, "allowance-spent",
        "\(spender.name) (device \(spender.device)) has signed \(spender.statements) of \(Allowance.statementLimit) "
          + "statements, \(spender.statementBytes / 1_024) of \(Allowance.byteLimit / 1_024) KiB of them, "
          + "\(spender.replicas) for replica ids. It writes in \(spender.take.partitions) of "
          + "\(DeviceTakeLimits.standard.partitions) partitions, under \(spender.take.chains) of \(DeviceTakeLimits.standard.chains) chains; "
          + "\(spender.take.heldChanges) of \(DeviceTakeLimits.standard.heldChanges) changes that may be held one by one are here, and "
          + "\(counted(spender.take.leftOutRuns, "run was", "runs were")) left out since this node started.",
        remedy: "No app does that: look at the device. An admin ends it with seamesh revoke.")
    }
  }

  static func findings(undeletable documents: Set<String>) -> [DoctorFinding] {
    guard !documents.isEmpty else { return [] }
    return [
      DoctorFinding(
        .warning, "document-undeletable",
        "Some change gave documents the last generation there is, so nobody can delete them: "
          + "\(documents.sorted().joined(separator: "; ")).",
        remedy: "Empty the document by an edit. No app gives such generations: look at who may write there.")
    ]
  }

  /// What a member did. Strangers are in the log alone: anybody can send nonsense.
  static func finding(_ entry: ConductBook.Entry) -> DoctorFinding? {
    guard case .device(let device, let user) = entry.source else { return nil }
    let place = entry.place.map { place in
      let change = place.change.map { ", change \($0.sequence) of replica \($0.replica.text)" }
      return ", last in \(place.partition.text.string)\(change ?? "")"
    }
    let times = entry.count == 1 ? "once" : "\(entry.count) times"
    return DoctorFinding(
      .warning, "rule-broken",
      "Device \(device.shortText) of \(user.string) broke the protocol \(times): \(entry.reason)\(place ?? "").",
      remedy:
        "Nothing of it was taken. If it is no old or changed program there, look at the device; what it passes on may be "
        + "another's.")
  }

  static func findings(_ work: HeldWork) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if let end = work.ownEnd { findings.append(ended(by: end, held: work.own)) }
    if work.ownEnd == nil, !work.changes.isEmpty {
      let list = work.changes.sorted { $0.key < $1.key }.map { "\(counted($0.value, "change")) of \($0.key)" }.joined(
        separator: ", ")
      findings.append(
        DoctorFinding(
          .warning, "held-of-ended-devices", "Held, because the device was ended: \(list).",
          remedy: "If it is good work, give it back with seamesh raise DEVICE; nothing needs to be done otherwise."))
    }
    return findings + work.unheard.map(unheardFinding) + work.lowered.map(finding)
  }

  private static func unheardFinding(_ device: String) -> DoctorFinding {
    DoctorFinding(
      .warning, "ended-device-unheard",
      "\(device) was ended before anybody had heard of a replica id of its: what it may have written under that is on it alone.",
      remedy:
        "If it is good work, give it back with seamesh raise DEVICE: it hands that over at the next meeting. Nothing needs to be "
        + "done otherwise.")
  }

  private static func finding(_ work: LoweredWork) -> DoctorFinding {
    let by = work.words.isEmpty ? "" : ", by \(work.words.joined(separator: " and "))"
    let raises = work.narrowings.map { "seamesh raise \($0)" }.joined(separator: " and ")
    return DoctorFinding(
      .warning, "held-of-lowered-rights",
      "Held, because a right to write was taken away before others had them: \(counted(work.changes, "change")) of \(work.device)\(by).",
      remedy: raises.isEmpty
        ? "If it is good work, whoever gave the right lets it count by giving it again; nothing needs to be done otherwise."
        : "If it is good work, an admin lets it count with \(raises), and with it all that this holds of others: --dry-run shows "
          + "how much; nothing needs to be done otherwise.")
  }

  private static func ended(by end: String, held: Int64) -> DoctorFinding {
    let words = "This device is no member of its fleet any more, by \(end)"
    let rejoining = "a device can join anew in a new directory."
    return held == 0
      ? DoctorFinding(.problem, "device-ended", words + ".", remedy: "Ask an admin for a new code: " + rejoining)
      : DoctorFinding(
        .problem, "device-ended", words + "; \(counted(held, "change of its own is", "changes of its own are")) held.",
        remedy: "Ask an admin: what is held can be given back with seamesh raise, and " + rejoining)
  }
}
