import CLinux
import Glibc

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
  /// Below it threads share a few heaps: each has one of its own otherwise, up to eight times the processors.
  private static let littleMemory = 512 * 1024 * 1024
  private static let fewHeaps: Int32 = 2

  static func keep() {
    let available = availableBytes
    let kept = Int32(clamping: min(byteCount, max(leastByteCount, available / share)))
    if available < littleMemory { _ = mallopt(M_ARENA_MAX, fewHeaps) }
    _ = mallopt(M_TRIM_THRESHOLD, kept)
    _ = mallopt(M_MMAP_THRESHOLD, kept)
  }

  /// Of the machine, or what the process's control group may use of it.
  private static var availableBytes: Int {
    let machine = sysconf(Int32(_SC_PHYS_PAGES)).multipliedReportingOverflow(by: sysconf(Int32(_SC_PAGESIZE)))
    let group = content("/proc/self/cgroup").flatMap { groupLimits($0).compactMap(limit).min() }
    return min(machine.overflow ? .max : machine.partialValue, group ?? .max)
  }

  /// Files that hold a limit, by the lines `NUMBER:CONTROLLERS:PATH` of `/proc/self/cgroup`; in version 2 there are no
  /// controllers.
  static func groupLimits(_ lines: String) -> [String] {
    lines.split(separator: "\n").compactMap { line in
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { return nil }
      if fields[1].isEmpty { return "/sys/fs/cgroup\(fields[2])/memory.max" }
      guard fields[1].split(separator: ",").contains("memory") else { return nil }
      return "/sys/fs/cgroup/memory\(fields[2])/memory.limit_in_bytes"
    }
  }

  private static func limit(_ path: String) -> Int? {
    content(path).flatMap { Int($0.prefix { $0.isNumber }) }.flatMap { $0 > 0 ? $0 : nil }
  }

  private static func content(_ path: String) -> String? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = fread(&buffer, 1, buffer.count, file)
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }
}
