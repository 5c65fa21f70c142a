import Kernel
import Seamesh
import Synchronization

package typealias FakeWatch = FakeSubscription<WatchEvent>
package typealias FakeReceiptWatch = FakeSubscription<ReceiptReport>

/// Gives out what is pushed.
package final class FakeSubscription<Event: Sendable>: Sendable {
  private let events = Mutex<[Result<Event, NodeError>]>([])
  private let pushed = TimedSemaphore()
  private let cancelled = Mutex(false)

  package var isCancelled: Bool { cancelled.withLock { $0 } }

  package func push(_ event: Event) { push(.success(event)) }
  /// The next thing that is asked for is answered with this.
  package func fail(_ error: NodeError) { push(.failure(error)) }

  private func push(_ result: Result<Event, NodeError>) {
    events.withLock { $0.append(result) }
    pushed.signal()
  }

  package func next(timeoutMilliseconds: Int) throws(NodeError) -> Event? {
    guard pushed.wait(milliseconds: UInt64(max(0, timeoutMilliseconds))) else { return nil }
    return try events.withLock { $0.isEmpty ? nil : $0.removeFirst() }?.get()
  }

  package func cancel() { cancelled.withLock { $0 = true } }
}

extension FakeSubscription: WatchSubscription where Event == WatchEvent {}
extension FakeSubscription: ReceiptSubscription where Event == ReceiptReport {}
