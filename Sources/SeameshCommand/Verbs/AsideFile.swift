import Glibc
import Replication
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

  /// `record`: its bytes, or the beginning of them where `byteCount` says that there were more.
  func add(
    _ record: [UInt8], file: String, lines: ClosedRange<Int>, byteCount: Int, reason: String
  ) throws(Failure) {
    count += 1
    let place = lines.count == 1 ? "line \(lines.lowerBound)" : "lines \(lines.lowerBound) to \(lines.upperBound)"
    if count <= AsideFile.shownReasons {
      let phrase = reason.hasSuffix(".") ? String(reason.dropLast()) : reason
      terminal.warn("\(shown(file)), \(place): \(shown(phrase)); put aside")
    }
    if count == Int64(AsideFile.shownReasons) + 1 {
      terminal.warn("more records are put aside without being named here")
    }
    var entry = ValueMap()
    entry["file"] = .string(Text(file))
    entry["line"] = .int(Int64(lines.lowerBound))
    entry["lastLine"] = lines.count == 1 ? nil : .int(Int64(lines.upperBound))
    entry["reason"] = .string(Text(reason))
    // Bytes as they were: as text where they are UTF-8, so that a person can mend and import them.
    entry["record"] = String(validating: record, as: UTF8.self).map { .string(Text($0)) } ?? .bytes(record)
    entry["recordBytes"] = byteCount == record.count ? nil : .int(Int64(byteCount))
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
    let path = "\(directory)/import-aside-\(name)-\(getpid()).jsonl"
    descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw fileFailure("cannot make \(path)") }
    self.path = path
  }
}
