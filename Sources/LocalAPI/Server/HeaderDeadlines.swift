import Dispatch
import Glibc
import Synchronization

/// Ends connections whose next request does not come, however steadily its headers trickle: the library's own patience begins
/// anew with every byte. Bounded by the listener's limit of connections.
///
/// `@unchecked Sendable`: `timer` is set once in `init` and cancelled in `deinit`.
final class HeaderDeadlines: @unchecked Sendable {
  /// By socket, for connections whose headers are awaited: monotonic milliseconds.
  private let deadlines = Mutex<[Int32: Int64]>([:])
  private let timer: any DispatchSourceTimer
  private let patience: LocalServerConfiguration.Patience

  init(_ patience: LocalServerConfiguration.Patience) {
    self.patience = patience
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "seamesh.api.deadlines"))
    timer.setEventHandler { [weak self] in self?.endOverdue() }
    let interval = DispatchTimeInterval.milliseconds(Int(min(1_000, max(10, patience.requestMilliseconds / 4))))
    timer.schedule(deadline: .now() + interval, repeating: interval)
    timer.resume()
  }

  deinit { timer.cancel() }

  func opened(_ socket: Int32) { expect(socket, milliseconds: patience.requestMilliseconds) }

  /// Headers are in: from here on it is the exchange that counts the time.
  func begun(_ socket: Int32) { deadlines.withLock { $0[socket] = nil } }

  /// It was answered, and the next one may take its time to begin.
  func answered(_ socket: Int32) {
    expect(socket, milliseconds: Int64(patience.idleSeconds) * 1_000 + patience.requestMilliseconds)
  }

  /// Told before the socket is closed: its number may be another connection's at once.
  func closed(_ socket: Int32) { begun(socket) }

  private func expect(_ socket: Int32, milliseconds: Int64) {
    deadlines.withLock { $0[socket] = monotonicMilliseconds() + milliseconds }
  }

  private func endOverdue() {
    let now = monotonicMilliseconds()
    deadlines.withLock { deadlines in
      for (socket, deadline) in deadlines where deadline <= now {
        deadlines[socket] = nil
        shutdown(socket, Int32(SHUT_RDWR))
      }
    }
  }
}
