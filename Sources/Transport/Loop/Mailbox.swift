import Kernel
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

  /// What waits for a connection.
  struct Waiting {
    fileprivate(set) var cost = QueueCost()
    /// More than this should not wait.
    fileprivate(set) var byteMark: Int
    /// It was more, and is not yet less than half of it: whoever sees this is told when that is over.
    fileprivate(set) var isLong = false
  }

  fileprivate struct State {
    var commands: [Command] = []
    /// Live connections with what waits for each, from the call of `send` on.
    var queued: [UInt64: Waiting] = [:]
    /// Connections from which nothing more is to be read: known here before the command is carried out.
    var paused: Set<UInt64> = []
    /// The IO thread waits in the kernel and must be woken.
    var isAsleep = false
    var isStopped = false
    var nextNumber = Poller.lastReservedToken + 1
    var statistics = TransportStatistics()
  }

  private let state = Mutex(State())
  private let limits: TransportConfiguration
  let signal: WakeSignal

  init(_ limits: TransportConfiguration) throws(SystemError) {
    self.limits = limits
    self.signal = try WakeSignal()
  }

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
  func send(_ connection: UInt64, _ frames: [[UInt8]]) -> SendResult {
    let (result, mustWake) = state.withLock { state -> (SendResult, Bool) in
      guard !state.isStopped, let queued = state.queued[connection]?.cost else { return (.closed, false) }
      guard queued.byteCount < limits.sendQueueByteLimit, queued.frameCount < limits.sendQueueFrameLimit else {
        state.queued[connection]?.isLong = true
        return (.full, false)
      }
      state.queued[connection]?.add(frames)
      return (.queued, State.append(.send(connection, frames), to: &state))
    }
    if mustWake { signal.wake() }
    return result
  }

  func queued(for connection: UInt64) -> Waiting? { state.withLock { $0.queued[connection] } }

  var queuedByteCount: Int { state.withLock { $0.queued.values.reduce(0) { $0 + $1.cost.byteCount } } }

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
    state.withLock { state in
      guard state.queued[connection] == nil else { return }
      state.queued[connection] = Waiting(byteMark: limits.leastQueueByteMark)
    }
  }

  func noteGone(_ connection: UInt64) {
    state.withLock { state in
      state.queued[connection] = nil
      state.paused.remove(connection)
    }
  }

  func isReadingPaused(_ connection: UInt64) -> Bool { state.withLock { $0.paused.contains(connection) } }

  /// So many bytes of the stream, with which so many frames are through. True where what waits is not long any more.
  func noteWritten(_ connection: UInt64, _ byteCount: Int, frameCount: Int) -> Bool {
    state.withLock { state in
      state.statistics.sentBytes += UInt64(byteCount)
      return state.queued[connection]?.remove(QueueCost(byteCount, frameCount: frameCount)) ?? false
    }
  }

  func setMark(_ connection: UInt64, _ byteMark: Int) {
    state.withLock { $0.queued[connection]?.byteMark = byteMark }
  }

  func count(_ change: (inout TransportStatistics) -> Void) { state.withLock { change(&$0.statistics) } }
}

extension Mailbox.Waiting {
  fileprivate mutating func add(_ frames: [[UInt8]]) {
    for frame in frames { cost += QueueCost(SendQueue.wireByteCount(frame), frameCount: 1) }
    if cost.byteCount > byteMark { isLong = true }
  }

  /// True where it is not long any more.
  fileprivate mutating func remove(_ gone: QueueCost) -> Bool {
    cost -= gone
    guard isLong, cost.byteCount < byteMark / 2 else { return false }
    isLong = false
    return true
  }
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
