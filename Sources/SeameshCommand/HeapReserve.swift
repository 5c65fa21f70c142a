import CLinux
import Glibc
import Replication
import Seamesh

/// Lets the heap keep some of what was freed.
///
/// A catch-up frees and takes tens of megabytes with every message and every commit. By itself glibc returns them to the
/// kernel each time, which then hands them out zeroed, page by page: about a tenth of the time of a first sync.
enum HeapReserve {
  /// Kept at the end of each heap at the most; the rest goes back.
  private static let byteCount = 32 * 1024 * 1024
  /// No heap grows for a block of so much: it stands by itself, and is the kernel's again when it is freed. Messages are smaller;
  /// what is larger is a table that has grown, and would leave a hole of half its size each time.
  static let largeByteCount = 1024 * 1024
  /// Where there is little memory, such a part of it: a process has many heaps, and what one keeps is no use to the others.
  private static let share = 64
  private static let leastByteCount = 128 * 1024
  /// Threads share them where there is little: each has one of its own otherwise, up to eight times the processors.
  private static let fewHeaps: Int32 = 2

  static func keep() {
    let memory = MemoryBudget.ofProcess
    let kept = Int32(clamping: min(byteCount, max(leastByteCount, memory.byteCount / share)))
    if memory.isLittle { _ = mallopt(M_ARENA_MAX, fewHeaps) }
    _ = mallopt(M_TRIM_THRESHOLD, kept)
    _ = mallopt(M_MMAP_THRESHOLD, min(kept, Int32(clamping: largeByteCount)))
  }
  /// Gives back what was freed in the midst of heaps, too. That takes milliseconds, and the next sync takes pages anew.
  static func giveBack() { malloc_trim(0) }
}

/// When a process rests, so that what is kept of the heap is better given back to others: what a busy hour needed may be
/// tens of megabytes.
struct HeapRest {
  /// Between two looks.
  static let intervalMilliseconds: UInt64 = 30_000
  /// Of the processor in such an interval, by who rests: some three hundredths.
  static let restingMilliseconds: UInt64 = 1_000

  private var lookedAt: MonotonicTime
  private var used: UInt64

  /// - Parameter used: milliseconds of processor that the process has used.
  init(now: MonotonicTime, used: UInt64) { (lookedAt, self.used) = (now, used) }

  /// Answers whether to give back now: nothing much was done since the last look.
  mutating func rests(now: MonotonicTime, used: UInt64) -> Bool {
    guard now.millisecondsSince(lookedAt) >= HeapRest.intervalMilliseconds else { return false }
    let isResting = used < self.used + HeapRest.restingMilliseconds
    (lookedAt, self.used) = (now, used)
    return isResting
  }

  /// Of this process, on all of its threads.
  static var processorMilliseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
  }
}
