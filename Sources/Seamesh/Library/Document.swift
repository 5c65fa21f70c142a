import Replication
import Wire

/// A document as it was read.
public struct Document: Sendable, Equatable, Identifiable {
  /// A document's id within its collection.
  public enum ID: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case string(String)
    case int(Int64)
    /// Any other kind of id in Extended JSON, such as `{"$oid":"…"}`.
    case extendedJSON(String)

    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .int(value) }
  }

  public let id: ID
  /// The whole document with its `_id`, as relaxed MongoDB Extended JSON.
  public let json: String
  /// Names this causal version: the same on every node with the same changes of the document.
  public let etag: String

  init(_ stored: StoredDocument) {
    id = ID(stored.id)
    json = ExtendedJSON.text(.map(stored.withID))
    etag = stored.etag
  }
}

/// The documents that a query found.
public struct Documents: Sendable, Equatable, RandomAccessCollection {
  private let documents: [Document]
  /// Those that may belong to the result and do not read on this device: each can be written whole, or read on another.
  public let damaged: [Document.ID]
  /// All of them are as they were at one moment; false only for large results of collections that are written to meanwhile.
  public let isOneState: Bool

  init(_ found: FoundDocuments) {
    documents = found.documents.map(Document.init)
    damaged = found.damaged.map(Document.ID.init)
    isOneState = found.isOneState
  }

  public var startIndex: Int { documents.startIndex }
  public var endIndex: Int { documents.endIndex }
  public subscript(index: Int) -> Document { documents[index] }
}

extension Document.ID {
  init(_ value: Value) {
    self =
      switch value {
      case .string(let text): .string(text.string)
      case .int(let number): .int(number)
      default: .extendedJSON(ExtendedJSON.text(value))
      }
  }

  func value() throws(NodeError) -> Value {
    switch self {
    case .string(let text): .string(Text(text))
    case .int(let number): .int(number)
    case .extendedJSON(let text): try parsed { () throws(JSONError) in try ExtendedJSON.parse(Array(text.utf8)) }
    }
  }
}

/// What a person wrote as JSON; an error tells its place.
func parsed<Answer>(_ body: () throws(JSONError) -> Answer) throws(NodeError) -> Answer {
  do throws(JSONError) { return try body() } catch { throw NodeError(.badRequest, error.message) }
}
