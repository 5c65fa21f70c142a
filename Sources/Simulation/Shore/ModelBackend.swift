import Forwarding
import Replication

/// One relay's way to the shore's ledger. Calls of it fail as the shore says: before they take effect, or after.
///
/// `@unchecked Sendable`: a world has one thread.
final class ModelBackend: Backend, EditStore, @unchecked Sendable {
  private unowned let shore: Shore
  private unowned let node: SimulatedNode
  /// Of the shore's connections, those among which this one is; nil: it is none.
  private var connection: Int?

  init(_ shore: Shore, _ node: SimulatedNode) { (self.shore, self.node) = (shore, node) }

  private var relay: DeviceID { node.key.device }

  var name: String { "model" }
  var ledgerID: String { shore.ledger.id }

  func connect() throws(BackendProblem) {
    connection = nil
    guard shore.isReachable else { throw BackendProblem(.noRoute, "nobody answers") }
    if shore.losesCall() { throw BackendProblem(.refused, "too many connections") }
    connection = shore.connections
  }

  func disconnect() { connection = nil }
  func interrupt() {}

  func statementIDs() throws(BackendProblem) -> Set<Digest> {
    try call { shore throws(BackendProblem) in Set(shore.ledger.statements.keys) }
  }

  func statementHeads(of ids: [Digest]) throws(BackendProblem) -> [(id: Digest, head: [UInt8])] {
    try call { shore throws(BackendProblem) in ids.compactMap { id in shore.ledger.statements[id].map { (id, $0) } } }
  }

  func answers(to questions: [ChainQuestion]) throws(BackendProblem) -> [ChainAnswer] {
    try call { shore throws(BackendProblem) in shore.answers(to: questions) }
  }

  func documentStart(of process: String) throws(BackendProblem) -> DocumentStart {
    try call { [relay] shore throws(BackendProblem) in
      try shore.hold(relay, process)
      return shore.ledger.documentStart(of: relay, process)
    }
  }

  func documentNews(of process: String) throws(BackendProblem) -> DocumentNews {
    try call { [relay] shore throws(BackendProblem) in
      try shore.hold(relay, process)
      return shore.ledger.documentNews(of: relay, process)
    }
  }

  func append(_ batch: LedgerBatch) throws(BackendProblem) -> AppendOutcome {
    if shore.ledger.bug == .lossTakenForDone, shore.random.chance(60) { return AppendOutcome() }
    return try call(whenLost: { [node] shore in shore.hasLost(batch, by: node) }) {
      [node] shore throws(BackendProblem) in try shore.append(batch, by: node)
    }
  }

  /// No world has a link that carries some partitions alone.
  func claimEdits(most: Int, of patterns: [Text]?) throws(BackendProblem) -> [OfficeEdit] {
    try call { [relay] shore throws(BackendProblem) in shore.claimEdits(most: most, by: relay) }
  }

  func confirm(_ edits: [UUIDValue], reaching chains: [ChainReach]) throws(BackendProblem) -> ClaimAnswer {
    try call { [relay] shore throws(BackendProblem) in shore.confirm(edits, reaching: chains, by: relay) }
  }

  func settle(_ outcomes: [(edit: UUIDValue, outcome: EditOutcome)]) throws(BackendProblem) {
    try call { [relay] shore throws(BackendProblem) in shore.ledger.office.settle(outcomes, by: relay) }
  }

  /// One call over the connection: lost on its way there, or done and its answer lost, each of which ends the connection.
  private func call<Result>(
    whenLost: (Shore) -> Void = { _ in }, _ body: (Shore) throws(BackendProblem) -> Result
  ) throws(BackendProblem) -> Result {
    guard connection == shore.connections, shore.isReachable else { throw lost() }
    shore.catchUp()
    if shore.losesCall() {
      whenLost(shore)
      throw lost()
    }
    let result = try body(shore)
    guard shore.losesAnswer() else { return result }
    throw lost()
  }

  private func lost() -> BackendProblem {
    connection = nil
    return BackendProblem(.refused, "the connection is lost")
  }
}
