import Glibc
import Kernel
import Storage
import Synchronization

/// For a verb that has a store of its own for the time of its work: a signal that ends the process takes that away first.
enum ScratchGuard {
  private static let isEnding = Atomic(false)

  /// From now on until the process ends; to be called on the main thread before there are others.
  static func begin() {
    var set = sigset_t()
    sigemptyset(&set)
    // What the process was told to overlook stays so, as under nohup.
    for number in [SIGINT, SIGTERM, SIGHUP] where !isIgnored(number) { sigaddset(&set, number) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let signals = set
    // Where there is no thread the signals end the process at once, and the next process takes the directory away.
    do throws(SystemError) {
      try DedicatedThread.start("seamesh signals") { endWithFirst(of: signals) }
    } catch {
      pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }
  }

  /// Work that uses the store: what it throws once that is taken away tells nobody anything. `waits`: for a signal.
  static func whileNotEnding<Answer>(
    _ work: () throws(Failure) -> Answer,
    isEnding: () -> Bool = { ScratchGuard.isEnding.load(ordering: .sequentiallyConsistent) },
    waits: () -> Void = { pause() }
  ) throws(Failure) -> Answer {
    do throws(Failure) {
      return try work()
    } catch {
      while isEnding() { waits() }
      throw error
    }
  }

  private static func endWithFirst(of signals: sigset_t) {
    var (signals, number) = (signals, Int32(0))
    while sigwait(&signals, &number) != 0 {}
    isEnding.store(true, ordering: .sequentiallyConsistent)
    ScratchDirectory.removeAll()
    // So that whoever started the process hears what it ended of.
    signal(number, SIG_DFL)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    kill(getpid(), number)
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
