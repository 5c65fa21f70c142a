import Glibc
import Storage

/// How the memory that this process may use is shared out (K5): where there is little, caches are small.
package struct MemoryBudget: Sendable, Equatable {
  /// Of the machine, or what the process's control groups may use of it.
  package let byteCount: Int

  package init(byteCount: Int) { self.byteCount = byteCount }

  /// Looked up once: a limit that is changed later is not noticed.
  package static let ofProcess: MemoryBudget = {
    let machine = sysconf(Int32(_SC_PHYS_PAGES)).multipliedReportingOverflow(by: sysconf(Int32(_SC_PAGESIZE)))
    let group = content("/proc/self/cgroup").flatMap { groupLimits($0).compactMap(limit).min() }
    return MemoryBudget(byteCount: min(machine.overflow ? .max : machine.partialValue, group ?? .max))
  }()

  /// Below it a process is careful with what it keeps.
  package static let little = 512 * 1024 * 1024
  package var isLittle: Bool { byteCount < MemoryBudget.little }

  /// Such a part of it for the store's writer. Eight readers may have a quarter of that each.
  private static let cacheShare = 16
  private static let leastCacheBytes = 1024 * 1024

  var storeOptions: StoreOptions {
    var options = StoreOptions()
    options.cacheBytes = min(options.cacheBytes, max(MemoryBudget.leastCacheBytes, byteCount / MemoryBudget.cacheShare))
    return options
  }

  /// Of each of as many as can be connected.
  var smallResultBytes: Int { isLittle ? 64 * 1024 : 256 * 1024 }

  /// Files that may hold a limit, by the lines `NUMBER:CONTROLLERS:PATH` of `/proc/self/cgroup`; in version 2 there are no
  /// controllers. A group's limit holds for those inside it, too, and a container may see its own group as the root.
  static func groupLimits(_ lines: String) -> [String] {
    lines.split(separator: "\n").flatMap { line -> [String] in
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { return [] }
      if fields[1].isEmpty { return groups(fields[2]).map { "/sys/fs/cgroup\($0)/memory.max" } }
      guard fields[1].split(separator: ",").contains("memory") else { return [] }
      return groups(fields[2]).map { "/sys/fs/cgroup/memory\($0)/memory.limit_in_bytes" }
    }
  }

  /// A group and those around it, up to the root, which is empty.
  private static func groups(_ path: Substring) -> [String] {
    let names = path.split(separator: "/")
    return (0...names.count).reversed().map { names.prefix($0).map { "/" + $0 }.joined() }
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

extension StoreOptions {
  static var ofProcess: StoreOptions { MemoryBudget.ofProcess.storeOptions }
}
