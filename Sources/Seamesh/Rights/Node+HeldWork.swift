import Engine
import Replication

/// What devices wrote that were ended, and is held for that.
struct HeldWork: Sendable {
  /// Changes by the label of the device; only whom this device may see: itself, and as an admin everybody.
  var changes: [String: Int64] = [:]
  /// What ended this very device, in words.
  var ownEnd: String?
  var own: Int64 = 0
}

extension NodeEngine {
  func heldWork() -> HeldWork {
    let (authority, own) = (state.mesh.authority, state.identity.device)
    let words = RightsWords(authority)
    let isAdmin = authority.isAdmin(own)
    var work = HeldWork()
    let memberships = authority.members(of: own)
    if !memberships.isEmpty, authority.standingMemberships(of: own).isEmpty {
      let ends = memberships.flatMap { authority.ends(of: .membership($0.id)) }
      work.ownEnd = ends.map { words.words(of: $0) }.joined(separator: " and ")
    }
    for held in state.mesh.partitions.values.lazy.flatMap(\.log.held) {
      guard let member = authority.membership(for: held.dot.replica),
        !authority.ends(of: .membership(member.id)).isEmpty, isAdmin || member.device == own
      else { continue }
      work.changes[words.name(of: member.device), default: 0] += 1
      if member.device == own { work.own += 1 }
    }
    return work
  }
}

extension Node {
  static func findings(_ work: HeldWork) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if let end = work.ownEnd {
      findings.append(
        DoctorFinding(
          .problem, "device-ended",
          "This device is no member of its fleet any more, by \(end); \(counted(work.own)) of its own are held.",
          remedy:
            "Ask an admin: what is held can be given back with seamesh raise, and a device can join anew in a new "
            + "directory."))
    }
    if work.ownEnd == nil, !work.changes.isEmpty {
      let list = work.changes.sorted { $0.key < $1.key }.map { "\(counted($0.value)) of \($0.key)" }.joined(
        separator: ", ")
      findings.append(
        DoctorFinding(
          .warning, "held-of-ended-devices", "Held, because the device was ended: \(list).",
          remedy: "If it is good work, give it back with seamesh raise DEVICE; nothing needs to be done otherwise."))
    }
    return findings
  }

  private static func counted(_ changes: Int64) -> String { changes == 1 ? "1 change" : "\(changes) changes" }
}
