import LocalAPI
import Replication
import Seamesh
import Wire

/// A line of an export of a whole partition, read again: beside the document it says in which collection that stands.
struct ExportedLine {
  let collection: String
  /// The document alone, as JSON.
  let document: [UInt8]

  /// Nil where the record is a document of its own: that has an _id, another field, or not both of these. An exported document has
  /// an _id within.
  init?(_ record: JSONRecordReader.Record) {
    guard ExportedLine.mayBegin(record.bytes), let map = try? record.value(limits: ExportedLine.limits),
      map.count == 2, case .string(let name)? = map["collection"], case .map(let content)? = map["document"],
      content["_id"] != nil,
      (try? DocumentLimits.check(collection: name)) != nil
    else { return nil }
    (collection, document) = (name.string, Array(ExtendedJSON.text(.map(content)).utf8))
  }

  /// A document may be as deep in a line as one that stands alone.
  private static let limits = ExtendedJSON.Limits(
    byteCount: JSONRecordReader.recordByteLimit, depth: Value.depthLimit + 1, valueCount: ServerLimit.documentValues)
  /// Each with the quotation mark behind it.
  private static let names = ["collection", "document"].map { Array("\($0)\"".utf8) }

  /// Looks at the first key alone: reading every document twice would cost an import much of its speed.
  private static func mayBegin(_ bytes: [UInt8]) -> Bool {
    let afterQuote = bytes.drop { $0 != UInt8(ascii: "\"") }.dropFirst()
    return names.contains { afterQuote.starts(with: $0) }
  }
}
