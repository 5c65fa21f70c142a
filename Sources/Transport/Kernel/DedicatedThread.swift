import Glibc
import Replication
import Synchronization

/// A thread for code that blocks, outside any pool. It keeps itself alive until its body returns.
final class DedicatedThread: Sendable {

  private let body: @Sendable () -> Void
  private let finished = Mutex(false)
  private let signal: WakeSignal

  /// - Throws: ``SystemError`` where no thread or descriptor is left.
  static func start(_ body: @escaping @Sendable () -> Void) throws(SystemError) -> DedicatedThread {
    let thread = DedicatedThread(body, signal: try WakeSignal())
    let context = Unmanaged.passRetained(thread)
    var handle = pthread_t()
    let code = pthread_create(
      &handle, nil,
      { context in
        guard let context else { return nil }
        Unmanaged<DedicatedThread>.fromOpaque(context).takeRetainedValue().run()
        return nil
      }, context.toOpaque())
    guard code == 0 else {
      context.release()
      throw SystemError("pthread_create", code: code)
    }
    pthread_detach(handle)
    return thread
  }

  private init(_ body: @escaping @Sendable () -> Void, signal: WakeSignal) {
    (self.body, self.signal) = (body, signal)
  }

  private func run() {
    DedicatedThread.blockBrokenPipeSignal()
    body()
    finished.withLock { $0 = true }
    signal.wake()
  }

  /// Waits for the body's end; false when it still runs after that time. For one waiting thread.
  func wait(milliseconds: UInt64) -> Bool {
    let deadline = ElapsedClock.now().advanced(byMilliseconds: milliseconds)
    while !finished.withLock({ $0 }) {
      let now = ElapsedClock.now()
      guard now < deadline else { return false }
      var entry = pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0)
      poll(&entry, 1, Int32(clamping: deadline.millisecondsSince(now)))
    }
    return true
  }

  /// Writing to a connection that the peer closed must give EPIPE to the writer, not end the process.
  private static func blockBrokenPipeSignal() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
