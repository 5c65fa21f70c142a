import Replication

/// A store ashore that keeps the ledger. One thread uses it; calls return when their outcome is known, or throw
/// ``BackendProblem`` where it is not.
///
/// What it promises: ``append(_:)`` takes all of a batch or nothing of it, keeps what is there already as it is, and returns
/// once the batch is durable. It never takes a run whose predecessor it lacks.
package protocol Backend: AnyObject, Sendable {
  /// For people: without a secret.
  var name: String { get }
  /// Which ledger it is, once it was connected: copies of it say the same.
  var ledgerID: String { get }
  /// Connects and looks whether it is this fleet's ledger, and may be written.
  func connect() throws(BackendProblem)
  func disconnect()
  func statementIDs() throws(BackendProblem) -> Set<Digest>
  /// The first bytes of those of these that it has: of each at least its head, or all of it.
  func statementHeads(of ids: [Digest]) throws(BackendProblem) -> [(id: Digest, head: [UInt8])]
  /// One answer per question, in their order.
  func answers(to questions: [ChainQuestion]) throws(BackendProblem) -> [ChainAnswer]
  /// - Parameter process: of this relay's, the one that asks.
  func documentStart(of process: String) throws(BackendProblem) -> DocumentStart
  func documentNews(of process: String) throws(BackendProblem) -> DocumentNews
  /// A document that another relay wrote stays as it is where the ledger has what this relay does not know. A document that
  /// such a relay writes nevertheless, since there is none or it is its own, is told to others as unsure.
  func append(_ batch: LedgerBatch) throws(BackendProblem) -> AppendOutcome
  /// Makes a running call, and every later one, fail soon. From any thread.
  func interrupt()
}
