import CLinux
import Glibc
import Seamesh

/// Lets the heap keep some of what was freed.
///
/// A catch-up frees and takes tens of megabytes with every message and every commit. By itself glibc returns them to the
/// kernel each time, which then hands them out zeroed, page by page: about a tenth of the time of a first sync.
enum HeapReserve {
  /// Kept at the end of each heap at the most; the rest goes back.
  private static let byteCount = 32 * 1024 * 1024
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
    _ = mallopt(M_MMAP_THRESHOLD, kept)
  }
}
