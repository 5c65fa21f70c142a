package struct ForwardingStatus: Sendable, Equatable {
  /// Without a secret.
  package var backend = ""
  package var state = State.lagging
  /// Why it does not go on, and what to do about it; empty where it does.
  package var reason = ""
  package var remedy = ""
  /// What the backend lacks.
  package var lagChanges: Int64 = 0
  package var lagBytes: Int64 = 0
  package var lagMilliseconds: Int64 = 0
  /// Until the backend has all, as it has gone of late; nil where that cannot be said.
  package var remainingMilliseconds: Int64?
  /// Changes since the start of the node.
  package var forwardedChanges: Int64 = 0
  package var forwardedBytes: Int64 = 0
  /// Changes of the log, and those of them that are in the backend.
  package var logChanges: Int64 = 0
  package var backendChanges: Int64 = 0
  /// Chains left out, since the backend refuses something of them.
  package var putAside: Int64 = 0
  /// Documents that the backend holds without their body.
  package var deadLetters: Int64 = 0
  /// Documents that the backend left as another relay wrote them, which may know more.
  package var staleDocuments: Int64 = 0
  /// Changes that the backend had and then lacked.
  package var lostChanges: Int64 = 0
  /// Nil where no edits of the office are brought home.
  package var edits: Edits?
  package init() {}

  /// The office's edits since the start of the node.
  package struct Edits: Sendable, Equatable {
    package let written: Int
    package let refused: Int
    /// Why none are brought home; empty where they are.
    package let reason: String

    package init(written: Int, refused: Int, reason: String) {
      (self.written, self.refused, self.reason) = (written, refused, reason)
    }
  }

  package enum State: String, Sendable, CaseIterable {
    case noRoute = "no-route"
    case refused, auth, tls, schema
    case lagging
    case caughtUp = "caught-up"
  }
}

extension ForwardingStatus {
  /// Lines of Prometheus' text format.
  var metrics: [String] {
    var lines = [
      "# HELP seamesh_forward_state How forwarding does: 1 for the state it is in.",
      "# TYPE seamesh_forward_state gauge",
    ]
    lines += State.allCases.map { "seamesh_forward_state{state=\"\($0.rawValue)\"} \($0 == state ? 1 : 0)" }
    let gauges: [(String, String, Int64)] = [
      ("lag_changes", "Changes that the backend lacks.", lagChanges),
      ("lag_bytes", "Bytes of changes that the backend lacks.", lagBytes),
      ("lag_seconds", "Seconds that the oldest of them has waited.", lagMilliseconds / 1_000),
      ("put_aside", "Chains of which the backend refuses something.", putAside),
      ("lost_changes", "Changes that the backend had and then lacked.", lostChanges),
      ("dead_letters", "Documents that the backend holds without their body.", deadLetters),
      ("stale_documents", "Documents that the backend left as another relay wrote them.", staleDocuments),
    ]
    for (name, help, value) in gauges {
      lines += [
        "# HELP seamesh_forward_\(name) \(help)", "# TYPE seamesh_forward_\(name) gauge",
        "seamesh_forward_\(name) \(value)",
      ]
    }
    lines += [
      "# HELP seamesh_forwarded_changes_total Changes that this node forwarded.",
      "# TYPE seamesh_forwarded_changes_total counter", "seamesh_forwarded_changes_total \(forwardedChanges)",
    ]
    return lines
  }
}
