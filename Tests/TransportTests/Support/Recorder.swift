import Foundation
import Replication
import Synchronization

@testable import Transport

/// Keeps what a transport tells, and lets a test wait for it.
final class Recorder: TransportHandler {
  struct State {
    var opened: [OpenedConnection] = []
    var frames: [ConnectionID: [[UInt8]]] = [:]
    var closed: [ConnectionID: CloseReason] = [:]
    var drained: [ConnectionID] = []
    var failed: [UInt64: DialFailure] = [:]
    /// Of frames without their end, over all connections: now and at the most.
    var unfinished = (now: 0, most: 0)
  }

  private let state = Mutex(State())
  private let changed = NSCondition()
  /// Called on the IO thread for every frame, before it is kept.
  private let onFrame: Mutex<(@Sendable (ConnectionID, [UInt8]) -> Void)?> = Mutex(nil)
  private let onOpened: Mutex<(@Sendable (OpenedConnection) -> Void)?> = Mutex(nil)

  func whenFrame(_ body: @escaping @Sendable (ConnectionID, [UInt8]) -> Void) { onFrame.withLock { $0 = body } }
  func whenOpened(_ body: @escaping @Sendable (OpenedConnection) -> Void) { onOpened.withLock { $0 = body } }

  var now: State { state.withLock { $0 } }

  func opened(_ connection: OpenedConnection) {
    onOpened.withLock { $0 }?(connection)
    change { $0.opened.append(connection) }
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {
    onFrame.withLock { $0 }?(connection, frame)
    change { $0.frames[connection, default: []].append(frame) }
  }

  func closed(_ connection: ConnectionID, reason: CloseReason) { change { $0.closed[connection] = reason } }
  func unfinished(byteCount: Int) {
    change { $0.unfinished = (byteCount, max(byteCount, $0.unfinished.most)) }
  }
  func drained(_ connection: ConnectionID, queuedBytes: Int) { change { $0.drained.append(connection) } }
  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) { change { $0.failed[tag] = reason } }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    changed.lock()
    changed.broadcast()
    changed.unlock()
  }

  /// Waits until `condition` gives a value; nil when it did not within the time.
  func wait<T>(seconds: Double = 20, for condition: (State) -> T?) -> T? {
    let deadline = Date(timeIntervalSinceNow: seconds)
    changed.lock()
    defer { changed.unlock() }
    while true {
      if let value = condition(now) { return value }
      guard changed.wait(until: deadline) else { return condition(now) }
    }
  }

  func wait(seconds: Double = 20, until condition: (State) -> Bool) -> Bool {
    wait(seconds: seconds) { condition($0) ? true : nil } ?? false
  }
}
