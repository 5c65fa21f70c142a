import CLinux

/// Lets the heap keep some of what was freed.
///
/// A catch-up frees and takes tens of megabytes with every message and every commit. By itself glibc returns them to the
/// kernel each time, which then hands them out zeroed, page by page: about a tenth of the time of a first sync.
enum HeapReserve {
  /// Kept at the end of each heap at the most; the rest goes back.
  private static let byteCount: Int32 = 32 * 1024 * 1024

  static func keep() {
    _ = mallopt(M_TRIM_THRESHOLD, byteCount)
    _ = mallopt(M_MMAP_THRESHOLD, byteCount)
  }
}
