import LocalAPI
import Replication
import Seamesh
import Wire

/// A line of a file that ``AsideFile`` wrote, read again: a person has mended the record inside, or gives a partition that it
/// lacked. What is meant is that record, and never the line around it.
struct AsideLine {
  /// The record as its file had it, or mended since; its beginning alone where it is cut.
  let bytes: [UInt8]
  /// Of the whole record.
  let byteCount: Int
  let isCut: Bool
  /// The record stands in it as an object, and the file is not named as those of records put aside: it may be a document like that.
  let isInDoubt: Bool

  /// Nil where the record is a document of its own: that has an _id, another field, or not all of these.
  init?(_ record: JSONRecordReader.Record, in path: String) {
    guard AsideLine.mayBegin(record.bytes), let map = try? record.value(limits: AsideLine.limits) else { return nil }
    guard case .string? = map["file"], case .int? = map["line"], case .string? = map["reason"] else { return nil }
    var count = 4
    for name in ["lastLine", "recordBytes"] as [Text] {
      guard let value = map[name] else { continue }
      guard case .int = value else { return nil }
      count += 1
    }
    guard map.count == count else { return nil }
    switch map["record"] {
    case .string(let text): bytes = Array(text.utf8)
    case .bytes(let kept): bytes = kept
    // Whoever mends it may well take the quotation marks away.
    case .map(let document): bytes = Array(ExtendedJSON.text(.map(document)).utf8)
    default: return nil
    }
    isCut = map["recordBytes"] != nil
    if case .map? = map["record"] { isInDoubt = !AsideLine.isNamedAside(path) } else { isInDoubt = false }
    byteCount = isCut ? Int(clamping: map.number("recordBytes")) : bytes.count
  }

  /// A line of a file that is named as such files are, which was one before somebody took a field away or added one.
  static func isBroken(_ record: JSONRecordReader.Record, in path: String) -> Bool {
    guard AsideLine.isNamedAside(path), let map = try? record.value(limits: AsideLine.limits)
    else { return false }
    return map["record"] != nil && (map["line"] != nil || map["reason"] != nil)
  }

  private static func isNamedAside(_ path: String) -> Bool {
    path.split(separator: "/").last?.hasPrefix(WipeLimits.asidePrefix) == true
  }

  /// What is in it. A mended record may have become several, or none.
  func items(line: Int) -> [JSONRecordReader.Item] {
    var reader = JSONRecordReader()
    reader.append(bytes)
    reader.finish()
    var items: [JSONRecordReader.Item] = []
    while let item = reader.next() { items.append(item.keptInLine(line)) }
    return items
  }

  static let doubt =
    "this looks like a record put aside without its quotation marks: name the file \(WipeLimits.asidePrefix)…, or give it an _id, if it is a "
    + "document of its own"

  private static let limits = ExtendedJSON.Limits(
    byteCount: JSONRecordReader.recordByteLimit, valueCount: ServerLimit.documentValues)
  /// Each with the quotation mark behind it.
  private static let names = ["file", "line", "lastLine", "reason", "record", "recordBytes"].map {
    Array("\($0)\"".utf8)
  }

  /// Looks at the first key alone: reading every document twice would cost an import much of its speed.
  private static func mayBegin(_ bytes: [UInt8]) -> Bool {
    let afterQuote = bytes.drop { $0 != UInt8(ascii: "\"") }.dropFirst()
    return names.contains { afterQuote.starts(with: $0) }
  }
}
