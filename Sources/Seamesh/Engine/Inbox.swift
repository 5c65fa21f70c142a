import Kernel
import Synchronization

/// What waits for the engine thread: what users of this node ask in one lane, all else in another, each in order of arrival.
///
/// Putting never blocks, and there is no bound: those who put are bounded themselves, connections by ``FrameIntake``,
/// users by waiting for their answer.
final class Inbox: Sendable {
  private struct State {
    var users: [NodeJob] = []
    var peers: [NodeJob] = []
    var isAwaited = false
    var isClosed = false

    var isEmpty: Bool { users.isEmpty && peers.isEmpty }
  }

  private let state = Mutex(State())
  private let signal = TimedSemaphore()

  /// False, and the job is dropped, once nobody will take it.
  @discardableResult
  func put(_ job: NodeJob) -> Bool { put([job]) }

  /// All at once: nobody finds some of them and not the others.
  func put(_ jobs: [NodeJob]) -> Bool {
    let (isTaken, isAwaited) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      for job in jobs {
        switch job.lane {
        case .users: state.users.append(job)
        case .peers: state.peers.append(job)
        }
      }
      defer { state.isAwaited = false }
      return (true, state.isAwaited)
    }
    if isAwaited { signal.signal() }
    return isTaken
  }

  /// Until something waits in either lane, or the time is over.
  func wait(milliseconds: UInt64) {
    let isEmpty = state.withLock { state in
      state.isAwaited = state.isEmpty
      return state.isEmpty
    }
    if isEmpty { _ = signal.wait(milliseconds: milliseconds) }
  }

  /// What waits in a lane.
  func take(_ lane: NodeJob.Lane) -> [NodeJob] {
    state.withLock { state in
      var jobs: [NodeJob] = []
      switch lane {
      case .users: swap(&jobs, &state.users)
      case .peers: swap(&jobs, &state.peers)
      }
      return jobs
    }
  }

  /// How much waits in either lane.
  var counts: (users: Int, peers: Int) { state.withLock { ($0.users.count, $0.peers.count) } }

  /// The last that users asked; nothing is taken any more.
  func close() -> [NodeJob] {
    state.withLock { $0.isClosed = true }
    return take(.users)
  }
}

/// The answer to a request that another thread makes of the engine.
final class Reply<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)
  private let signal = TimedSemaphore()

  func fulfil(_ answer: Value) {
    value.withLock { $0 = $0 ?? answer }
    signal.signal()
  }

  /// Blocks until ``fulfil(_:)``.
  func wait() -> Value {
    while true { if let answer = wait(milliseconds: .max) { return answer } }
  }

  /// Nil once the time is over.
  func wait(milliseconds: UInt64) -> Value? {
    _ = signal.wait(milliseconds: milliseconds)
    return value.withLock { $0 }
  }
}
