import Replication

/// What the core asks of the log and has not been answered yet, and the answers.
final class LogQuestions {
  private let state: EngineState
  private let journal: any EngineJournal
  private let keeper: ReplicaKeeper
  /// Those on whose answer the core's next step depends.
  private var urgent = Queue<LogQuestion>()
  /// Those of peers, which can wait for the end of the turn.
  private var loads = Queue<LogQuestion>()

  init(_ state: EngineState, _ journal: any EngineJournal, _ keeper: ReplicaKeeper) {
    (self.state, self.journal, self.keeper) = (state, journal, keeper)
  }

  func put(_ question: LogQuestion) {
    if case .lacking = question { loads.put(question) } else { urgent.put(question) }
  }

  func take() -> LogQuestion? { urgent.take() }
  func takeLoad() -> LogQuestion? { loads.take() }
  var hasLoads: Bool { !loads.isEmpty }
  func removeAll() { (urgent, loads) = (Queue(), Queue()) }

  /// What the core is to be told. `hasFailed`: nothing is stored any more.
  func answer(_ question: LogQuestion, hasFailed: Bool) -> Mesh.Event {
    let log = LogReader(state)
    switch question {
    case .lacking(let id, let partition, let have, let byteLimit):
      let (runs, hasMore) = attempt(([], false)) {
        try log.runs(partition, lackedBy: have, byteLimit: byteLimit)
      }
      return .loaded(id, partition, runs, hasMore: hasMore)
    case .chain(let partition, let replica, let first, let purpose):
      let runs = attempt([]) { try log.summaries(partition, replica, from: first) }
      return .chainLoaded(partition, replica, runs, purpose)
    case .evidence(let id, let partition, let replica, let above):
      let runs = attempt([]) { try log.evidence(partition, replica, above: above) }
      return .evidenceLoaded(id, partition, runs)
    case .isAdmitted(let id, let device, let acceptance):
      let isMember = !hasFailed && state.mesh.authority.member(of: device) != nil
      return .joinJudged(id, isMember ? .accepted(acceptance) : .refused(.busy))
    }
  }

  /// Reading failed: say so and go on with nothing; a damaged store is a reason for a new replica.
  func attempt<Result>(_ otherwise: Result, _ body: () throws -> Result) -> Result {
    do {
      return try body()
    } catch {
      journal.note(.error, "reading the store failed", ["reason": .text("\(error)")])
      if let error = error as? any StoreFailure, error.isFatal { keeper.demandRenewal(.inputOutputError) }
      return otherwise
    }
  }
}
