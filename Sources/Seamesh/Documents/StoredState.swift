import Engine
import Replication
import Wire

/// Limits of what is written here; what comes from others is bound by the protocol's own.
package enum DocumentLimits {
  /// Bytes of a document's body, encoded.
  static let bodyBytes = 1024 * 1024
  static let collectionBytes = Payload.collectionByteLimit
  static let idBytes = Payload.idByteLimit

  package static func check(collection: Text) throws(NodeError) {
    let count = collection.utf8.count
    guard count > 0 else { throw NodeError(.unprocessable, "a collection needs a name") }
    guard count <= collectionBytes else {
      throw NodeError(
        .unprocessable, "a collection's name has at most \(collectionBytes) bytes, this has \(count)",
        limit: .init(collectionBytes, "bytes"))
    }
    guard !collection.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
      throw NodeError(.unprocessable, "a collection's name has no control characters")
    }
  }

  static func check(id: Value) throws(NodeError) {
    switch id {
    case .string(let text) where text.utf8.isEmpty: throw NodeError(.unprocessable, "a document's id is not empty")
    case .string, .int, .objectID, .uuid: break
    default:
      throw NodeError(.unprocessable, "a document's id is a string, an integer, an object id or a UUID")
    }
    let count = id.canonicalBytes.count
    guard count <= idBytes else {
      throw NodeError(
        .unprocessable, "a document's id has at most \(idBytes) bytes, this has \(count)",
        limit: .init(idBytes, "bytes"))
    }
  }

  /// A document that came from others may be larger: then it may be made smaller, in as many steps as that takes.
  static func check(body: ValueMap, inPlaceOf old: ValueMap? = nil) throws(NodeError) {
    guard body["_id"] == nil else { throw NodeError(.unprocessable, "the id stands outside of the body") }
    let count = byteCount(of: body)
    guard count <= bodyBytes || old.map({ count < byteCount(of: $0) }) ?? false else {
      throw NodeError(
        .tooLarge, "a document has at most \(bodyBytes) bytes, this has \(count)", limit: .init(bodyBytes, "bytes"))
    }
    guard Value.map(body).depth <= Value.depthLimit else {
      throw NodeError(
        .unprocessable, "a document nests at most \(Value.depthLimit) levels", limit: .init(Value.depthLimit, "levels"))
    }
  }

  private static func byteCount(of body: ValueMap) -> Int {
    var writer = CBORWriter()
    writer.value(.map(body))
    return writer.bytes.count
  }
}

extension Value {
  /// Levels of maps and arrays, this one included.
  fileprivate var depth: Int {
    switch self {
    case .map(let map): 1 + (map.entries.lazy.map(\.value.depth).max() ?? 0)
    case .array(let items): 1 + (items.lazy.map(\.depth).max() ?? 0)
    default: 0
    }
  }
}

extension ValueMap {
  /// `new` over this: maps within maps likewise, everything else replaced; absent keys stay.
  func overlaid(with new: ValueMap) -> ValueMap {
    var result = self
    for entry in new.entries {
      if case .map(let inner) = entry.value, case .map(let old)? = result[entry.key] {
        result[entry.key] = .map(old.overlaid(with: inner))
      } else {
        result[entry.key] = entry.value
      }
    }
    return result
  }
}
