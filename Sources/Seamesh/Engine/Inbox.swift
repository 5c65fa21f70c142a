import Dispatch
import Synchronization

/// What waits for the engine thread, in order of arrival.
///
/// Putting never blocks, and there is no bound: those who put are bounded themselves, connections by ``FrameIntake``,
/// writers by waiting for their answer.
final class Inbox<Item: Sendable>: Sendable {
  private struct State {
    var items: [Item] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let signal = TimedSemaphore()

  /// False, and the item is dropped, once nobody will take it.
  @discardableResult
  func put(_ item: Item) -> Bool {
    let (isTaken, isFirst) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      state.items.append(item)
      return (true, state.items.count == 1)
    }
    if isFirst { signal.signal() }
    return isTaken
  }

  /// Everything that waits, or nothing once the time is over.
  func take(timeoutMilliseconds: UInt64) -> [Item] {
    let first = takeNow()
    guard first.isEmpty else { return first }
    _ = signal.wait(milliseconds: timeoutMilliseconds)
    return takeNow()
  }

  /// The last that is taken.
  func close() -> [Item] {
    state.withLock { $0.isClosed = true }
    return takeNow()
  }

  private func takeNow() -> [Item] {
    state.withLock { state in
      let items = state.items
      state.items = []
      return items
    }
  }
}

/// The answer to a request that another thread makes of the engine.
final class Reply<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)
  private let signal = DispatchSemaphore(value: 0)

  func fulfil(_ answer: Value) {
    value.withLock { $0 = $0 ?? answer }
    signal.signal()
  }

  /// Blocks until ``fulfil(_:)``.
  func wait() -> Value {
    while true {
      signal.wait()
      if let answer = value.withLock({ $0 }) { return answer }
    }
  }
}
