extension Doctor {
  static func findings(_ status: ForwardingStatus) -> [DoctorFinding] {
    [state(status), restored(status), putAside(status), deadLetters(status), homeBound(status)].compactMap { $0 }
  }

  /// Whatever it is.
  private static func state(_ status: ForwardingStatus) -> DoctorFinding {
    let code = "forward-\(status.state.rawValue)"
    switch status.state {
    case .caughtUp:
      return DoctorFinding(.ok, code, "The backend \(status.backend) has all that this node holds.", remedy: "")
    case .lagging:
      let reason = status.reason.isEmpty ? "" : ": \(status.reason)"
      return DoctorFinding(
        .ok, code, "The backend \(status.backend) lacks \(counted(status.lagChanges, "change"))\(reason).", remedy: "")
    case .noRoute, .refused, .auth, .tls, .schema:
      return DoctorFinding(
        .problem, code,
        "Nothing reaches the backend\(status.lagChanges > 0 ? ", which lacks \(counted(status.lagChanges, "change"))" : ""): \(status.reason).",
        remedy: status.remedy)
    }
  }

  private static func restored(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.lostChanges > 0, status.state == .caughtUp || status.state == .lagging else { return nil }
    return DoctorFinding(
      .warning, "forward-restored",
      "The backend \(status.backend) lacked \(counted(status.lostChanges, "change")) that it had had: it was put back from a copy.",
      remedy: "What this node holds of them is forwarded again. Look whether other relays held more.")
  }

  private static func putAside(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.putAside > 0, status.state == .lagging else { return nil }
    let edits = status.edits == nil ? "" : " Until then this node brings no edits of the office home."
    return DoctorFinding(
      .warning, "forward-put-aside",
      "Changes or statements are put aside, and are not at the backend \(status.backend): \(status.reason).\(edits)",
      remedy: "See which: seamesh forward --dead-letters. Once they may stand there: seamesh forward --now.")
  }

  private static func deadLetters(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.deadLetters > 0 else { return nil }
    return DoctorFinding(
      .warning, "forward-dead-letters",
      "The backend \(status.backend) holds \(counted(status.deadLetters, "document without its", "documents without their")) content.",
      remedy: "Look at the reasons: seamesh forward --dead-letters.")
  }

  private static func homeBound(_ status: ForwardingStatus) -> DoctorFinding? {
    guard status.state == .caughtUp, let reason = status.edits?.reason, !reason.isEmpty else { return nil }
    return DoctorFinding(
      .warning, "home-bound", "Edits of the office do not come home: \(reason).",
      remedy: "As the owner of the tables: seamesh forward --set-up --home-bound-to=ROLE.")
  }
}
