import Engine
import Synchronization

/// The way to the engine's thread: what is handed in there, and answers that are waited for. Others than the engine have
/// nothing else of it.
final class EngineLine: Sendable {
  let inbox = Inbox()
  let board = EngineBoard()
  private let replyMilliseconds: UInt64
  private let isClosed = Mutex(false)

  static var stopping: NodeError { NodeError(.stopping, "the node is stopping") }

  init(_ limits: ReadLimits) { replyMilliseconds = limits.replyMilliseconds }

  var isStopping: Bool { isClosed.withLock { $0 } }

  func checkIsOpen() throws(NodeError) { if isStopping { throw EngineLine.stopping } }

  /// Nothing is handed in any more. Answers whether it was so already.
  func close() -> Bool {
    isClosed.withLock { isClosed in
      defer { isClosed = true }
      return isClosed
    }
  }

  /// Runs `body` on the engine thread and waits for its answer.
  func ask<Answer: Sendable>(
    _ body: @escaping @Sendable (NodeEngine) -> Answer
  ) throws(NodeError) -> Answer {
    try checkIsOpen()
    let reply = Reply<Answer>()
    let isTaken = inbox.put(
      .event(
        .call { [board] engine in
          let answer = body(engine)
          board.noteAnswer()
          reply.fulfil(answer)
        }))
    guard isTaken else { throw EngineLine.stopping }
    return try answer(of: reply)
  }

  /// Waits for it no longer than ``ReadLimits/replyMilliseconds``: whoever asked is not to hang with a disk that hangs.
  /// `isPatient`: or for as long as it takes.
  func answer<Answer: Sendable>(of reply: Reply<Answer>, isPatient: Bool = false) throws(NodeError) -> Answer {
    let milliseconds = isPatient ? .max : replyMilliseconds
    guard let answer = reply.wait(milliseconds: milliseconds) else {
      throw NodeError(
        .unanswered,
        "the node has not answered for \(milliseconds / 1_000) s: what was asked may still be done; look before asking "
          + "again, and at seamesh doctor")
    }
    return answer
  }

  /// How the engine does; where it is busy, how it did when it was looked at last.
  func view(judgesWipe: Bool = false) throws(NodeError) -> EngineView {
    guard !isStopping,
      let view = board.view(
        judgesWipe: judgesWipe,
        { [inbox, board] in
          inbox.put(
            .event(
              .look { engine in
                let judgesWipe = board.isWipeAsked
                board.publish(EngineView(engine, judgesWipe: judgesWipe), judgesWipe: judgesWipe)
              }))
        })
    else { throw EngineLine.stopping }
    return view
  }
}
