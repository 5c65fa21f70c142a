import Glibc
import Replication

/// Time that counts through suspension (`CLOCK_BOOTTIME`), so that a timeout means elapsed time (K7, T7).
package enum ElapsedClock {
  package static func now() -> MonotonicTime { MonotonicTime(milliseconds: milliseconds(CLOCK_BOOTTIME)) }

  /// How long this machine was suspended since boot. A rise between two readings means that it slept in between.
  static func suspended() -> UInt64 {
    let awake = milliseconds(CLOCK_MONOTONIC)
    let all = milliseconds(CLOCK_BOOTTIME)
    return all > awake ? all - awake : 0
  }

  private static func milliseconds(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
  }
}
