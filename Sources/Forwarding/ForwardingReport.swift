import Replication

/// How forwarding does, for people and figures. Nothing in it is secret.
package struct ForwardingReport: Equatable, Sendable {
  package var backend = ""
  package var state = ForwardingState.lagging
  /// Why it does not go on, and what to do about it; empty where it does.
  package var sentence = ""
  package var remedy = ""
  /// What the backend lacks.
  package var lag = LogAmount()
  /// How long the oldest change has waited that the backend lacks.
  package var lagMilliseconds: Int64 = 0
  /// Until the backend has all, as it has gone of late; nil where that cannot be said.
  package var remainingMilliseconds: Int64?
  /// Since the start of the node.
  package var forwarded = LogAmount()
  /// Changes of the log that are in the backend, of all.
  package var inBackend: Int64 = 0
  package var inLog: Int64 = 0
  /// Chains left out, with what the backend refuses of them.
  package var aside: [ChainKey: RefusedRow] = [:]
  /// Statements that it refuses, by their ids.
  package var refusedStatements: [Digest: RefusedStatement] = [:]
  /// Documents that the backend holds without their body, as far as they are known here.
  package var deadLetters = 0
  /// Documents that the backend left as another relay wrote them.
  package var staleDocuments = 0
  /// Changes that the ledger had and then lacked.
  package var lost: UInt64 = 0
  /// Of edits from the backend, since the start; nil where none are brought home.
  package var edits: HomeBound.Counts?
  /// Why no edits are brought home; empty where they are.
  package var editsSentence = ""
  package init() {}

  /// What came to the log since the forwarder looked at it, which may be waiting for its backend.
  mutating func add(_ news: LogAmount, of log: LogAmount) {
    guard news.changes > 0 || inLog == 0 else { return }
    lag += news
    (inLog, inBackend) = (log.changes, max(0, log.changes - lag.changes))
    if lag.changes > 0, state == .caughtUp { state = .lagging }
  }
}
