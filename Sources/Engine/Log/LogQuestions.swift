import Replication

/// What the core asks of the log and has not been answered yet, and the answers.
final class LogQuestions {
  private let state: EngineState
  private let journal: any EngineJournal
  /// The first read that failed for another reason than that one row does not read.
  private(set) var failure: (any Error)?
  /// Chains of which the log gave nothing, since it could not be read: what follows from that is no evidence of anything.
  private var unread: Set<ReplicaID> = []
  /// Those on whose answer the core's next step depends.
  private var urgent = Queue<LogQuestion>()
  /// Those of peers, which can wait for the end of the turn.
  private var loads = Queue<LogQuestion>()

  init(_ state: EngineState, _ journal: any EngineJournal) {
    (self.state, self.journal) = (state, journal)
  }

  /// Whether what the core was told of a chain was read from the log.
  func couldRead(_ replica: ReplicaID) -> Bool { !unread.contains(replica) }

  func put(_ question: LogQuestion) {
    switch question {
    case .lacking, .isSaid, .evidence(_, _, _, above: _, isRest: true): loads.put(question)
    case .chain, .evidence, .isAdmitted: urgent.put(question)
    }
  }

  func take() -> LogQuestion? { urgent.take() }
  func takeLoad() -> LogQuestion? { loads.take() }
  var hasLoads: Bool { !loads.isEmpty }
  func removeAll() { (urgent, loads) = (Queue(), Queue()) }

  /// What the core is to be told. `hasFailed`: nothing is stored any more.
  func answer(_ question: LogQuestion, hasFailed: Bool) -> Mesh.Event {
    let log = LogReader(state) { [self] in note($0, $1) }
    switch question {
    case .lacking(let id, let partition, let have, let byteLimit):
      let (runs, hasMore) = attempt(([], false), of: partition) {
        try log.runs(partition, lackedBy: have, byteLimit: byteLimit)
      }
      return .loaded(id, partition, runs, hasMore: hasMore)
    case .isSaid(let id): return .said(id)
    case .chain(let partition, let replica, let first, let purpose):
      unread.remove(replica)
      let log = LogReader(state) { [self] failure, partition in
        note(failure, partition)
        unread.insert(replica)
      }
      let runs = attempt(nil, of: partition) {
        try log.summaries(partition, replica, from: first, for: purpose)
      }
      if runs == nil { unread.insert(replica) }
      return .chainLoaded(partition, replica, runs ?? [], purpose)
    case .evidence(let id, let partition, let replica, let above, let isRest):
      let (runs, hasMore) = attempt(([], false), of: partition) {
        try log.evidence(partition, replica, above: above)
      }
      return .evidenceLoaded(id, partition, replica, runs, hasMore: hasMore, isRest: isRest)
    case .isAdmitted(let id, let device, let acceptance):
      let isMember = !hasFailed && state.mesh.ledger.authority.member(of: device) != nil
      return .joinJudged(id, isMember ? .accepted(acceptance) : .refused(.busy))
    }
  }

  /// Reading failed: say so and go on with nothing. It is no reason for a new replica id: nothing was written, and the same
  /// would be read again after each renewal.
  func attempt<Result>(_ otherwise: Result, of partition: PartitionID? = nil, _ body: () throws -> Result) -> Result {
    do {
      return try body()
    } catch let error as any StoreFailure where error.isOfOneRow {
      note(error, partition)
      return otherwise
    } catch {
      journal.note(.error, "reading the store failed", ["reason": .text("\(error)")])
      if let error = error as? any StoreFailure, error.isFatal { failure = failure ?? error }
      return otherwise
    }
  }

  /// A row does not read. Of a run that is said once, however often a peer asks for it.
  private func note(_ failure: any StoreFailure, _ partition: PartitionID?) {
    if let run = failure.runAtFault, let partition, !state.damagedRuns.note(run, in: partition) { return }
    journal.note(.error, "reading the store failed", ["reason": .text("\(failure)")])
  }
}
