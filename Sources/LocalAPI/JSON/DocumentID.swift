import Replication
import Wire

/// Ids of documents, in paths and in bodies.
package enum DocumentID {
  /// A path segment that begins with `{` or `"` is Extended JSON, such as `{"$oid":"…"}`; any other is a string id, as
  /// it stands. A string id that begins so itself is written as a JSON string.
  package static func parse(segment: Text) throws(Problem) -> Value {
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
    return Text(ExtendedJSON.text(id))
  }

  static func checked(_ id: Value) throws(Problem) -> Value {
    switch id {
    case .string(let text):
      guard !text.utf8.isEmpty else { throw .unprocessable("an id has at least one byte") }
      guard text.utf8.count <= ServerLimit.idBytes else {
        throw .limit(.unprocessable, "the id", ServerLimit.idBytes, unit: "bytes")
      }
    case .int, .objectID, .uuid: break
    default: throw .unprocessable("an id is a string, an integer, an ObjectId or a UUID")
    }
    return id
  }
}
