import Replication
import Synchronization

/// What callers of other threads ask of the IO thread, and the little that both must see.
final class Mailbox: Sendable {
  enum Command: Sendable {
    case listen(ListeningSocket)
    case dial(UInt64, tag: UInt64, [SocketAddress])
    case send(UInt64, [[UInt8]])
    case close(UInt64, afterFlush: Bool)
    case authenticate(UInt64)
    case keepShort(UInt64)
    case pauseReading(UInt64)
    case resumeReading(UInt64)
    case closeStranded
    case reviewLinks
    case stop
  }

  fileprivate struct State {
    var commands: [Command] = []
    /// Live connections with what waits for each, from the call of `send` on.
    var queued: [UInt64: QueueCost] = [:]
    /// Connections from which nothing more is to be read: known here before the command is carried out.
    var paused: Set<UInt64> = []
    /// The IO thread waits in the kernel and must be woken.
    var isAsleep = false
    var isStopped = false
    var nextNumber = Poller.lastReservedToken + 1
    var statistics = TransportStatistics()
  }

  private let state = Mutex(State())
  let signal: WakeSignal

  init() throws(SystemError) { self.signal = try WakeSignal() }

  func nextNumber() -> UInt64 {
    state.withLock { state in
      defer { state.nextNumber += 1 }
      return state.nextNumber
    }
  }

  /// False once the loop is stopping.
  @discardableResult
  func post(_ command: Command) -> Bool {
    let (accepted, mustWake) = state.withLock { state in
      guard !state.isStopped else { return (false, false) }
      State.note(command, in: &state)
      return (true, State.append(command, to: &state))
    }
    if mustWake { signal.wake() }
    return accepted
  }

  /// Counts the frames before the IO thread sees them, so that a fast caller cannot outrun the limit.
  func send(_ connection: UInt64, _ frames: [[UInt8]], limits: TransportConfiguration) -> SendResult {
    let (result, mustWake) = state.withLock { state -> (SendResult, Bool) in
      guard !state.isStopped, var queued = state.queued[connection] else { return (.closed, false) }
      guard queued.byteCount < limits.sendQueueByteLimit, queued.frameCount < limits.sendQueueFrameLimit else {
        return (.full, false)
      }
      for frame in frames { queued += QueueCost(SendQueue.wireByteCount(frame), frameCount: 1) }
      state.queued[connection] = queued
      return (.queued, State.append(.send(connection, frames), to: &state))
    }
    if mustWake { signal.wake() }
    return result
  }

  func queued(for connection: UInt64) -> QueueCost? { state.withLock { $0.queued[connection] } }

  var queuedByteCount: Int { state.withLock { $0.queued.values.reduce(0) { $0 + $1.byteCount } } }

  var statistics: TransportStatistics { state.withLock { $0.statistics } }

  // MARK: The IO thread's side

  func takeCommands() -> [Command] {
    state.withLock { state in
      let commands = state.commands
      state.commands = []
      state.isAsleep = false
      return commands
    }
  }

  /// Whether the thread may wait in the kernel. If so, callers wake it from now on; else they rely on its coming back.
  func maySleep(workWaits: Bool) -> Bool {
    state.withLock { state in
      state.isAsleep = !workWaits && state.commands.isEmpty
      return state.isAsleep
    }
  }

  func noteAlive(_ connection: UInt64) {
    state.withLock { $0.queued[connection] = $0.queued[connection] ?? QueueCost() }
  }

  func noteGone(_ connection: UInt64) {
    state.withLock { state in
      state.queued[connection] = nil
      state.paused.remove(connection)
    }
  }

  func isReadingPaused(_ connection: UInt64) -> Bool { state.withLock { $0.paused.contains(connection) } }

  /// So many bytes of the stream, with which so many frames are through.
  func noteWritten(_ connection: UInt64, _ byteCount: Int, frameCount: Int) {
    state.withLock { state in
      state.queued[connection]? -= QueueCost(byteCount, frameCount: frameCount)
      state.statistics.sentBytes += UInt64(byteCount)
    }
  }

  func count(_ change: (inout TransportStatistics) -> Void) { state.withLock { change(&$0.statistics) } }
}

extension Mailbox.State {
  /// What takes effect before the command is carried out.
  fileprivate static func note(_ command: Mailbox.Command, in state: inout Mailbox.State) {
    switch command {
    case .stop: state.isStopped = true
    case .pauseReading(let connection): if state.queued[connection] != nil { state.paused.insert(connection) }
    case .resumeReading(let connection): state.paused.remove(connection)
    default: break
    }
  }

  /// Answers whether the IO thread must be woken.
  fileprivate static func append(_ command: Mailbox.Command, to state: inout Mailbox.State) -> Bool {
    state.commands.append(command)
    defer { state.isAsleep = false }
    return state.isAsleep
  }
}

/// A bound socket on its way to the IO thread, which alone owns it from then on.
struct ListeningSocket: @unchecked Sendable {
  let descriptor: Descriptor
}
