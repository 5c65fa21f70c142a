import CLinux
import Glibc
import Synchronization

/// A thread for code that blocks, outside any pool. It keeps itself alive until its body returns.
package final class DedicatedThread: Sendable {
  /// Enough for code that calls itself for each level of what it reads: documents and filters have a limit of levels.
  package static let stackBytes = 8 * 1024 * 1024
  /// For code that calls a few functions deep.
  package static let smallStackBytes = 256 * 1024

  private let name: String
  private let body: @Sendable () -> Void
  private let isFinished = Mutex(false)
  private let end = TimedSemaphore()

  /// - Parameters:
  ///   - name: as the system's lists of threads show it, which keep 15 bytes.
  ///   - stackBytes: a multiple of a page.
  /// - Throws: ``SystemError`` where no thread is left.
  @discardableResult
  package static func start(
    _ name: String, stackBytes: Int = DedicatedThread.stackBytes, _ body: @escaping @Sendable () -> Void
  ) throws(SystemError) -> DedicatedThread {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let refusal = pthread_attr_setstacksize(&attributes, stackBytes)
    guard refusal == 0 else { throw SystemError("start a thread with this stack", code: refusal) }
    let thread = DedicatedThread(name, body)
    let context = Unmanaged.passRetained(thread)
    var handle = pthread_t()
    let code = pthread_create(
      &handle, &attributes,
      { context in
        guard let context else { return nil }
        Unmanaged<DedicatedThread>.fromOpaque(context).takeRetainedValue().run()
        return nil
      }, context.toOpaque())
    guard code == 0 else {
      context.release()
      throw SystemError("start a thread", code: code)
    }
    return thread
  }

  private init(_ name: String, _ body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }

  private func run() {
    seamesh_name_thread(name)
    DedicatedThread.blockBrokenPipeSignal()
    body()
    isFinished.withLock { $0 = true }
    end.signal()
  }

  /// Waits for the body's end; false when it still runs after that time. For one waiting thread.
  package func wait(milliseconds: UInt64) -> Bool {
    isFinished.withLock { $0 } || end.wait(milliseconds: milliseconds)
  }

  /// Writing to a connection that the peer closed must give EPIPE to the writer, not end the process.
  private static func blockBrokenPipeSignal() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
