import Replication
import Wire

/// Ids of documents, in paths and in bodies.
package enum DocumentID {
  /// A path segment that begins with `{` or `"` is Extended JSON, such as `{"$oid":"…"}`; any other is a string id, as
  /// it stands. A string id that begins so itself is written as a JSON string.
  static func parse(segment: Text) throws(Problem) -> Value {
    switch segment.utf8.first {
    case UInt8(ascii: "{"), UInt8(ascii: "\""): try checked(try JSON.value(segment))
    default: try checked(.string(segment))
    }
  }

  /// The segment, not yet percent-encoded, that ``parse(segment:)`` reads as `id`.
  package static func segment(_ id: Value) -> Text {
    if case .string(let text) = id, let first = text.utf8.first, first != UInt8(ascii: "{"),
      first != UInt8(ascii: "\"")
    {
      return text
    }
    // A number, which needs a wrapper to begin with a brace.
    if case .int(let number) = id { return Text(#"{"$numberLong":"\#(number)"}"#) }
    if case .double(let number) = id { return Text(#"{"$numberDouble":"\#(number)"}"#) }
    return Text(ExtendedJSON.text(id))
  }

  static func checked(_ id: Value) throws(Problem) -> Value {
    let count: Int
    switch id {
    case .string(let text): count = text.utf8.count
    case .bytes(let bytes): count = bytes.count
    case .int, .double, .date, .objectID, .uuid: return id
    case .null, .bool, .array, .map, .blob:
      throw .unprocessable("an id is a string, a number, a date, an ObjectId, a UUID or bytes")
    }
    guard count > 0 else { throw .unprocessable("an id has at least one byte") }
    guard count <= ServerLimit.idBytes else {
      throw .limit(.unprocessable, "the id", ServerLimit.idBytes, unit: "bytes")
    }
    return id
  }
}
