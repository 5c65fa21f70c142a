import Replication
import Storage
import Synchronization

/// Tells live results which documents a commit changed. The engine never waits for a watcher.
final class WatchHub: Sendable {
  private struct State {
    var watchers: [UInt64: Watcher] = [:]
    var next: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Each costs a thread of the local interface while it is open.
  static let watcherLimit = 64

  var isWatched: Bool { state.withLock { !$0.watchers.isEmpty } }

  /// Nil where there are too many.
  func add() -> Watcher? {
    state.withLock { state in
      guard state.watchers.count < WatchHub.watcherLimit else { return nil }
      state.next += 1
      let watcher = Watcher(number: state.next)
      state.watchers[state.next] = watcher
      return watcher
    }
  }

  func remove(_ watcher: Watcher) { state.withLock { $0.watchers[watcher.number] = nil } }

  func publish(_ changes: DocumentChanges) {
    guard !changes.isEmpty else { return }
    for watcher in state.withLock({ Array($0.watchers.values) }) { watcher.notify(changes) }
  }

  func stop() { for watcher in state.withLock({ Array($0.watchers.values) }) { watcher.stop() } }
}

/// What one live result has still to look at.
final class Watcher: Sendable {
  enum Wake: Sendable {
    case changed([DocumentChanges.Place: Set<[UInt8]>])
    /// More changed than is remembered: look at everything again.
    case overrun
    case nothing
    case stopped
  }

  private struct State {
    var keys: [DocumentChanges.Place: Set<[UInt8]>] = [:]
    var count = 0
    var isOverrun = false
    var isStopped = false
  }

  let number: UInt64
  private let state = Mutex(State())
  private let signal = TimedSemaphore()

  /// Keys remembered for a slow watcher; beyond, it reads its whole result again.
  static let keyLimit = 10_000

  init(number: UInt64) { self.number = number }

  func notify(_ changes: DocumentChanges) {
    state.withLock { state in
      for (place, keys) in changes.keys {
        state.keys[place, default: []].formUnion(keys)
        state.count += keys.count
      }
      if state.count > Watcher.keyLimit { (state.keys, state.isOverrun) = ([:], true) }
    }
    signal.signal()
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    signal.signal()
  }

  func wait(timeoutMilliseconds: Int) -> Wake {
    if let wake = take() { return wake }
    _ = signal.wait(milliseconds: UInt64(max(0, timeoutMilliseconds)))
    return take() ?? .nothing
  }

  private func take() -> Wake? {
    state.withLock { state in
      if state.isStopped { return .stopped }
      guard state.isOverrun || !state.keys.isEmpty else { return nil }
      let wake: Wake = state.isOverrun ? .overrun : .changed(state.keys)
      (state.keys, state.count, state.isOverrun) = ([:], 0, false)
      return wake
    }
  }
}
