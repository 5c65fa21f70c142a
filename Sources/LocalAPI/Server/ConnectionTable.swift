import Dispatch
import Glibc
import Synchronization

/// The connections of one listener. Those whose next request does not come are ended, however steadily its headers trickle (the
/// library's own patience begins anew with every byte); and where the house is full, those that ask for nothing make room for
/// whoever comes. Only where that many requests are under way is one refused, over a few connections kept back for it.
///
/// `@unchecked Sendable`: `timer` is set once in `init` and cancelled in `deinit`.
final class ConnectionTable: @unchecked Sendable {
  /// Whether a request is served.
  enum Verdict { case serve, refuse }

  fileprivate enum Phase {
    /// The headers of a request are awaited, until a time in monotonic milliseconds. `order` grows with each wait.
    case waiting(deadline: Int64, wasAnswered: Bool, order: UInt64)
    case asking
    /// Cut off; the thread has yet to notice.
    case ending
  }

  fileprivate struct State {
    /// By socket.
    var phases: [Int32: Phase] = [:]
    var lastOrder: UInt64 = 0
  }

  private let state = Mutex(State())
  private let timer: any DispatchSourceTimer
  private let patience: LocalServerConfiguration.Patience
  /// Requests that may be under way at once.
  private let requestLimit: Int
  /// Connections that may stand: with one more, one that waits gives way. The rest is for those that are about to end, since
  /// the library closes what is beyond its limit without an answer.
  private let standingLimit: Int

  /// - Parameter limit: connections that the library takes.
  init(limit: Int, _ patience: LocalServerConfiguration.Patience) {
    self.patience = patience
    (requestLimit, standingLimit) = (ServerLimit.requests(of: limit), max(1, limit * 9 / 10))
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "seamesh.api.deadlines"))
    timer.setEventHandler { [weak self] in self?.endOverdue() }
    let interval = DispatchTimeInterval.milliseconds(Int(min(1_000, max(10, patience.requestMilliseconds / 4))))
    timer.schedule(deadline: .now() + interval, repeating: interval)
    timer.resume()
  }

  deinit { timer.cancel() }

  func opened(_ socket: Int32) {
    state.withLock { state in
      state.wait(socket, milliseconds: patience.requestMilliseconds, wasAnswered: false)
      if state.standing > standingLimit { state.endOne(besides: socket) }
    }
  }

  /// Headers are in: from here on it is the exchange that counts the time.
  func begun(_ socket: Int32) -> Verdict {
    state.withLock { state in
      if case .ending? = state.phases[socket] { return .refuse }
      let verdict: Verdict = state.asking < requestLimit ? .serve : .refuse
      state.phases[socket] = .asking
      return verdict
    }
  }

  /// It was answered, and the next one may take its time to begin.
  func answered(_ socket: Int32) {
    let milliseconds = Int64(patience.idleSeconds) * 1_000 + patience.requestMilliseconds
    state.withLock { state in
      if case .ending? = state.phases[socket] { return }
      state.wait(socket, milliseconds: milliseconds, wasAnswered: true)
    }
  }

  /// Told before the socket is closed: its number may be another connection's at once.
  func closed(_ socket: Int32) { state.withLock { $0.phases[socket] = nil } }

  private func endOverdue() {
    let now = monotonicMilliseconds()
    state.withLock { state in
      for (socket, phase) in state.phases {
        if case .waiting(let deadline, _, _) = phase, deadline <= now { state.end(socket) }
      }
      // What those who wait had sent was not looked at yet when the house became full.
      while state.standing > standingLimit, state.endOne(besides: nil) {}
    }
  }
}

extension ConnectionTable.State {
  fileprivate var asking: Int { phases.values.count { if case .asking = $0 { true } else { false } } }
  fileprivate var standing: Int { phases.values.count { if case .ending = $0 { false } else { true } } }

  fileprivate mutating func wait(_ socket: Int32, milliseconds: Int64, wasAnswered: Bool) {
    lastOrder += 1
    let deadline = monotonicMilliseconds() + milliseconds
    phases[socket] = .waiting(deadline: deadline, wasAnswered: wasAnswered, order: lastOrder)
  }

  /// Whoever never asked goes before who did, and of them who has waited for longest. Nobody goes whose request is there and
  /// has yet to be looked at.
  ///
  /// Answers whether somebody goes.
  @discardableResult
  fileprivate mutating func endOne(besides newcomer: Int32?) -> Bool {
    var first: (socket: Int32, rank: (Int, UInt64))?
    for (socket, phase) in phases where socket != newcomer {
      guard case .waiting(_, let wasAnswered, let order) = phase, !hasUnread(socket) else { continue }
      let rank = (wasAnswered ? 1 : 0, order)
      if first.map({ rank < $0.rank }) ?? true { first = (socket, rank) }
    }
    guard let first else { return false }
    end(first.socket)
    return true
  }

  fileprivate mutating func end(_ socket: Int32) {
    phases[socket] = .ending
    shutdown(socket, Int32(SHUT_RDWR))
  }
}

private func hasUnread(_ socket: Int32) -> Bool {
  var byte: UInt8 = 0
  return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
}
