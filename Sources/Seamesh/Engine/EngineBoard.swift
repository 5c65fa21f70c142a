import Engine
import Synchronization

/// The latest look at the engine, for those who ask how the node does, while it is busy and where it hangs, too.
///
/// Who asks is shown how things are now, or else how they were when the engine was looked at last, with the documents that
/// were written since: one that was acknowledged is counted. What users changed otherwise they see, too.
final class EngineBoard: Sendable {
  private struct Look {
    let view: EngineView
    /// To users, before it was taken.
    let answers: UInt64
  }

  private struct State {
    var latest: Look?
    /// The latest one that tells what would be lost, which looks without that do not take away.
    var judged: Look?
    /// After the latest commit.
    var totals: LogTotals?
    /// To users until now.
    var answers: UInt64 = 0
    /// Those who wait for one look, which all of them share, and whether it was asked for.
    var waiting: [Waiting] = []
    var isAsked = false
    /// Somebody wants to know what would be lost.
    var isWipeAsked = false
  }

  private struct Waiting {
    let reply: Reply<EngineView>
    /// What would be lost is to be in what is shown.
    let wantsWipe: Bool
  }

  private let state = Mutex(State())

  /// So long a fresh look is waited for: who watches a node wants an answer within 50 ms.
  static let patienceMilliseconds: UInt64 = 40
  /// And so long where the latest one lacks what users had been answered.
  static let longPatienceMilliseconds: UInt64 = 2_000
  /// A look is taken this often where nobody asks.
  static let renewalMilliseconds: UInt64 = 10_000

  /// After a commit, before anybody is told of it.
  func note(_ totals: LogTotals) { state.withLock { $0.totals = totals } }

  /// Somebody who asked for something other than a write is answered now, on the engine's thread.
  func noteAnswer() { state.withLock { $0.answers += 1 } }

  /// On the engine's thread. Who wants to know what would be lost, and asked when a look had begun without, waits for the next
  /// one, which is asked for already.
  func publish(_ view: EngineView, judgesWipe: Bool) {
    let served = state.withLock { state in
      let served = state.waiting.filter { judgesWipe || !$0.wantsWipe }
      state.waiting.removeAll { judgesWipe || !$0.wantsWipe }
      let isOneLeft = !state.waiting.isEmpty
      (state.isAsked, state.isWipeAsked) = (isOneLeft, isOneLeft)
      state.latest = Look(view: view, answers: state.answers)
      if judgesWipe { state.judged = state.latest }
      return served
    }
    for one in served { one.reply.fulfil(view) }
  }

  /// Nobody has looked at all of it for a while.
  var isDue: Bool { state.withLock { ($0.judged?.view.age ?? .max) >= EngineBoard.renewalMilliseconds } }

  /// On the engine's thread: whether who waits wants to know what would be lost, which costs more than the rest.
  var isWipeAsked: Bool { state.withLock { $0.isWipeAsked } }

  /// - Parameters:
  ///   - judgesWipe: whether what would be lost is to be in it.
  ///   - look: asks the engine to ``publish(_:judgesWipe:)``; false where nobody would hear.
  /// - Returns: nil where the engine has stopped or never was looked at.
  func view(judgesWipe: Bool, _ look: () -> Bool) -> EngineView? {
    let reply = Reply<EngineView>()
    let (isFirst, answers) = state.withLock { state in
      // A look that is under way may have been begun without.
      let isUnderWay = state.isAsked && (state.isWipeAsked || !judgesWipe)
      (state.isAsked, state.isWipeAsked) = (true, state.isWipeAsked || judgesWipe)
      state.waiting.append(Waiting(reply: reply, wantsWipe: judgesWipe))
      return (!isUnderWay, state.answers)
    }
    // Nobody who has given up is waited for.
    defer { state.withLock { $0.waiting.removeAll { $0.reply === reply } } }
    if isFirst, !look() { return nil }
    if let view = reply.wait(milliseconds: EngineBoard.patienceMilliseconds) { return view }
    if let view = shown(judgesWipe: judgesWipe, since: answers) { return view }
    return reply.wait(milliseconds: EngineBoard.longPatienceMilliseconds)
      ?? shown(judgesWipe: judgesWipe, since: answers) ?? shown(judgesWipe: false, since: 0)
  }

  /// After the latest commit, or as the engine was when it was looked at; nil where neither was.
  var totals: LogTotals? {
    let (totals, status) = state.withLock { ($0.totals, $0.latest?.view.status) }
    return totals
      ?? status.map { LogTotals(documents: $0.documents, changes: $0.changes, logBytes: $0.logBytes) }
  }

  /// The latest look, where it has what users had been answered. What would be lost is taken from an earlier one, where nothing
  /// has been written since: a word that was taken back or grew too old between the two, which lie about
  /// ``renewalMilliseconds`` apart at the most, is counted still.
  private func shown(judgesWipe: Bool, since answers: UInt64) -> EngineView? {
    state.withLock { state in
      guard let look = state.latest, look.answers >= answers else { return nil }
      var view = look.view
      if judgesWipe, view.status.lostIfWiped == nil {
        guard let judged = state.judged, judged.answers >= answers,
          let whole = view.judged(as: judged.view)
        else { return nil }
        view = whole
      }
      return state.totals.map { view.counting($0) } ?? view
    }
  }
}
