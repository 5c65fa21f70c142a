import Glibc

/// A counting semaphore whose patience is elapsed time. Dispatch's, on Linux, waits for an hour of the wall clock: were
/// that set back, the engine would sleep on through all its timers (T1, T5).
///
/// `@unchecked Sendable`: `count` is guarded by `mutex`; the pointers never change.
package final class TimedSemaphore: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var count = 0

  package init() {
    (mutex, condition) = (.allocate(capacity: 1), .allocate(capacity: 1))
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  package func signal() {
    pthread_mutex_lock(mutex)
    count += 1
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
  }

  /// False once the time is over.
  package func wait(milliseconds: UInt64) -> Bool {
    var deadline = TimedSemaphore.time(in: milliseconds)
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while count == 0 {
      guard pthread_cond_timedwait(condition, mutex, &deadline) == 0 else { break }
    }
    guard count > 0 else { return false }
    count -= 1
    return true
  }

  private static func time(in milliseconds: UInt64) -> timespec {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    // A year is as good as for ever, and far from any overflow.
    let patience = Int(min(milliseconds, 365 * 86_400_000))
    let nanoseconds = time.tv_nsec + patience % 1_000 * 1_000_000
    time.tv_sec += patience / 1_000 + nanoseconds / 1_000_000_000
    time.tv_nsec = nanoseconds % 1_000_000_000
    return time
  }
}
