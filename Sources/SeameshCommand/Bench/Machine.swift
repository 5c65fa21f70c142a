import CSQLite
import Glibc
import Identity
import Seamesh

/// What figures were measured on.
struct Machine: Sendable, Equatable {
  let rows: [(name: String, value: String)]

  static func == (a: Machine, b: Machine) -> Bool { a.rows.elementsEqual(b.rows, by: ==) }

  /// `directory`: on the disk that is measured.
  init(measuring directory: String) {
    let processor = SystemFile.fields("/proc/cpuinfo")
    let memory = SystemFile.fields("/proc/meminfo")["MemTotal"]?.split(separator: " ").first.flatMap { Int64($0) } ?? 0
    var kernel = utsname()
    uname(&kernel)
    rows = [
      ("processor", "\(processor["model name"] ?? "unknown"), \(sysconf(Int32(_SC_NPROCESSORS_ONLN))) cores online"),
      ("memory", "\(memory / 1_024) MiB"),
      ("disk", Machine.disk(of: directory)),
      ("system", "\(Machine.text(kernel.sysname)) \(Machine.text(kernel.release)) \(Machine.text(kernel.machine))"),
      ("load before", SystemFile.text("/proc/loadavg").split(separator: " ").prefix(3).joined(separator: " ")),
      ("seamesh", "\(Node.version), \(Machine.build)"),
      ("libraries", "SQLite \(String(cString: sqlite3_libversion())), \(SHA256.libraryVersion)"),
    ]
  }

  private static var build: String {
    #if DEBUG
      "debug build: figures say nothing"
    #else
      "release build"
    #endif
  }

  /// Kind of file system and device of the mount that holds `directory`.
  private static func disk(of directory: String) -> String {
    guard let resolved = realpath(directory, nil) else { return "unknown" }
    defer { free(resolved) }
    let path = String(cString: resolved)
    let mounts = SystemFile.text("/proc/self/mounts").split(separator: "\n").map { $0.split(separator: " ") }
    let holding = mounts.filter { $0.count > 2 && ($0[1] == "/" || path == $0[1] || path.hasPrefix($0[1] + "/")) }
    guard let mount = holding.max(by: { $0[1].utf8.count < $1[1].utf8.count }) else { return "unknown" }
    return "\(mount[2]) on \(mount[0])"
  }

  private static func text<Field>(_ field: Field) -> String {
    withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
  }
}

/// Small files in which the kernel tells about itself.
enum SystemFile {
  private static let byteLimit = 1 << 20

  static func text(_ path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var (content, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 16_384))
    while content.count < byteLimit {
      let count = read(descriptor, &buffer, buffer.count)
      guard count > 0 else { break }
      content += buffer.prefix(count)
    }
    return String(decoding: content, as: UTF8.self)
  }

  /// Lines of the form `name: value`, the first of each name.
  static func fields(_ path: String) -> [String: String] {
    var fields: [String: String] = [:]
    for line in text(path).split(separator: "\n") {
      let sides = line.split(separator: ":", maxSplits: 1).map { $0.trimming { $0 == " " || $0 == "\t" } }
      if sides.count == 2, fields[String(sides[0])] == nil { fields[String(sides[0])] = String(sides[1]) }
    }
    return fields
  }
}

extension Substring {
  fileprivate func trimming(_ isBlank: (Character) -> Bool) -> Substring {
    var rest = drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    return rest
  }
}
