import Glibc
import Replication
import Seamesh
import Wire

/// Records that could not be stored, with the reasons: a file in the data directory, made when the first one comes.
final class AsideFile {
  /// Reasons shown on the terminal; the file has them all.
  private static let shownReasons = 20

  private(set) var path: String?
  private(set) var count: Int64 = 0
  private let directory: String
  private let terminal: Terminal
  private var descriptor: Int32 = -1

  init(directory: String, terminal: Terminal) { (self.directory, self.terminal) = (directory, terminal) }

  deinit { if descriptor >= 0 { close(descriptor) } }

  struct Record {
    /// The number and name of its file.
    let file: (number: Int, name: String)
    let lines: ClosedRange<Int>
    /// All of it, or the beginning where `byteCount` says that there was more.
    let bytes: [UInt8]
    let byteCount: Int
    let reason: Reason

    /// Lines count from 1 in each file.
    var order: (Int, Int) { (file.number, lines.lowerBound) }
  }

  enum Reason {
    case sentence(String)
    /// The mistake in its JSON, with its place in the file.
    case mistake(JSONError)
  }

  func add(_ record: Record) throws(Failure) {
    count += 1
    if count <= AsideFile.shownReasons {
      let place: [(Text, Value)] = [
        ("file", .string(Text(record.file.name))), ("line", .int(Int64(record.lines.lowerBound))),
      ]
      terminal.complain(shown(record.sentence) + "; put aside", place + [("reason", .string(Text(record.reason.text)))])
    }
    if count == Int64(AsideFile.shownReasons) + 1 {
      terminal.warn("more records are put aside without being named here")
    }
    var entry = ValueMap()
    entry["file"] = .string(Text(record.file.name))
    entry["line"] = .int(Int64(record.lines.lowerBound))
    entry["lastLine"] = record.lines.count == 1 ? nil : .int(Int64(record.lines.upperBound))
    entry["reason"] = .string(Text(record.reason.text))
    // Bytes as they were: as text where they are UTF-8, so that a person can mend and import them.
    entry["record"] = String(validating: record.bytes, as: UTF8.self).map { .string(Text($0)) } ?? .bytes(record.bytes)
    entry["recordBytes"] = record.byteCount == record.bytes.count ? nil : .int(Int64(record.byteCount))
    try write(Array((ExtendedJSON.text(.map(entry)) + "\n").utf8))
  }

  private func write(_ line: [UInt8]) throws(Failure) {
    if descriptor < 0 { try open() }
    var rest = line[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard written > 0 else { throw fileFailure("cannot write \(path ?? directory)") }
      rest = rest.dropFirst(written)
    }
  }

  private func open() throws(Failure) {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    var stamp = [CChar](repeating: 0, count: 32)
    let length = strftime(&stamp, stamp.count, "%Y%m%dT%H%M%SZ", &parts)
    let name = String(decoding: stamp.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
    let path = "\(directory)/\(WipeLimits.asidePrefix)\(name)-\(getpid()).jsonl"
    descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw fileFailure("cannot make \(path)", missing: .failed) }
    self.path = path
  }
}

extension AsideFile.Reason {
  var text: String {
    switch self {
    case .sentence(let text): text
    case .mistake(let error): error.message
    }
  }
}

extension AsideFile.Record {
  /// File and lines, and what is wrong; a mistake is told with its own place, and no line twice.
  fileprivate var sentence: String {
    let (first, last) = (lines.lowerBound, lines.upperBound)
    let place = "\(file.name), " + (first == last ? "line \(first)" : "lines \(first) to \(last)")
    switch reason {
    case .sentence(let text): return "\(place): \(text.hasSuffix(".") ? String(text.dropLast()) : text)"
    case .mistake(let error):
      let column = "column \(error.column)"
      let rest = error.message.dropFirst("Line \(error.line), \(column)".count).dropLast()
      return "\(place), \(first == last && error.line == first ? "" : "at line \(error.line), ")\(column)\(rest)"
    }
  }
}
