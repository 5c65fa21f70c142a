import Engine
import Identity
import Replication

/// A device that takes much of what every node has to keep of it.
struct Spender: Sendable {
  let name: String
  let device: String
  let statements: Int
  let statementBytes: Int
  let replicas: Int
  let take: DeviceTake
}

extension NodeEngine {
  /// Devices that have said, or made this node keep, half of what they may.
  func spenders() -> [Spender] {
    let authority = state.mesh.authority
    let words = RightsWords(authority)
    let takes = state.mesh.takes
    let allowances = Dictionary(authority.allowances.map { ($0.device, $0) }) { first, _ in first }
    let devices = Set(allowances.keys).union(takes.keys).filter {
      allowances[$0]?.isNearlySpent == true || takes[$0]?.isNearlySpent == true && !authority.isAdmin($0)
    }
    return devices.sorted().map { device in
      let allowance = allowances[device]
      return Spender(
        name: words.name(of: device), device: DeviceID(device).shortText,
        statements: allowance?.statements ?? 0, statementBytes: allowance?.statementBytes ?? 0,
        replicas: allowance?.replicas ?? 0, take: takes[device] ?? .nothing)
    }
  }
}

extension Node {
  static func findings(_ spenders: [Spender]) -> [DoctorFinding] {
    spenders.map { spender in
      DoctorFinding(
        .problem, "allowance-spent",
        "\(spender.name) (device \(spender.device)) has signed \(spender.statements) of \(Allowance.statementLimit) "
          + "statements, \(spender.statementBytes / 1_024) of \(Allowance.byteLimit / 1_024) KiB of them, "
          + "\(spender.replicas) for replica ids. It writes in \(spender.take.partitions) of "
          + "\(DeviceTakeLimits.standard.partitions) partitions, under \(spender.take.chains) of \(DeviceTakeLimits.standard.chains) chains; "
          + "\(spender.take.heldChanges) of \(DeviceTakeLimits.standard.heldChanges) changes are held one by one, and "
          + "\(spender.take.leftOutRuns) runs were left out since this node started.",
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
}
