import Seamesh
import Synchronization

/// Gives out what is pushed.
package final class FakeWatch: WatchSubscription {
  private let events = Mutex<[Result<WatchEvent, NodeError>]>([])
  private let pushed = TimedSemaphore()
  private let cancelled = Mutex(false)

  package var isCancelled: Bool { cancelled.withLock { $0 } }

  package func push(_ event: WatchEvent) { push(.success(event)) }
  /// The next thing that is asked for is answered with this.
  package func fail(_ error: NodeError) { push(.failure(error)) }

  private func push(_ result: Result<WatchEvent, NodeError>) {
    events.withLock { $0.append(result) }
    pushed.signal()
  }

  package func next(timeoutMilliseconds: Int) throws(NodeError) -> WatchEvent? {
    guard pushed.wait(milliseconds: UInt64(max(0, timeoutMilliseconds))) else { return nil }
    return try events.withLock { $0.isEmpty ? nil : $0.removeFirst() }?.get()
  }

  package func cancel() { cancelled.withLock { $0 = true } }
}
