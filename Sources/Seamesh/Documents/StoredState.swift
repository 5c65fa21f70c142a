import Engine
import Replication
import Wire

/// Limits of what is written here; what comes from others is bound by the protocol's own.
package enum DocumentLimits {
  /// Bytes of a document's body, encoded.
  package static let bodyBytes = 1024 * 1024
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
    let extent = Value.map(body).extent
    if extent.bytesAtMost > bodyBytes { try checkByteCount(of: body, inPlaceOf: old) }
    guard extent.levels <= Value.depthLimit else {
      throw NodeError(
        .unprocessable, "a document nests at most \(Value.depthLimit) levels", limit: .init(Value.depthLimit, "levels"))
    }
  }

  private static func checkByteCount(of body: ValueMap, inPlaceOf old: ValueMap?) throws(NodeError) {
    let count = byteCount(of: body)
    guard count <= bodyBytes || old.map({ count < byteCount(of: $0) }) ?? false else {
      throw NodeError(
        .tooLarge, "a document has at most \(bodyBytes) bytes, this has \(count)", limit: .init(bodyBytes, "bytes"))
    }
  }

  private static func byteCount(of body: ValueMap) -> Int {
    var writer = CBORWriter()
    writer.value(.map(body))
    return writer.bytes.count
  }
}

/// How large a value is, as one walk tells without encoding it.
private struct ValueExtent {
  /// Bytes of its encoding; a little more than there will be.
  var bytesAtMost: Int
  /// Of maps and arrays, the value's own included.
  var levels = 0

  /// What stands before a value that has a length, and all of a number.
  static let headBytes = 9
  /// Tag, head and bytes of an object id, a UUID or a date.
  static let taggedBytes = 32
  /// The same of a blob's reference, with two hashes, but for its media type.
  static let blobBytes = 2 * (Digest.byteCount + headBytes) + 4 * headBytes
}

extension Value {
  fileprivate var extent: ValueExtent {
    switch self {
    case .null, .bool, .int, .double: ValueExtent(bytesAtMost: ValueExtent.headBytes)
    case .date, .objectID, .uuid: ValueExtent(bytesAtMost: ValueExtent.taggedBytes)
    case .string(let text): ValueExtent(bytesAtMost: ValueExtent.headBytes + text.utf8.count)
    case .bytes(let bytes): ValueExtent(bytesAtMost: ValueExtent.headBytes + bytes.count)
    case .array(let items): Value.extent(of: items.lazy.map { (0, $0.extent) })
    case .map(let map):
      Value.extent(of: map.entries.lazy.map { ($0.key.utf8.count + ValueExtent.headBytes, $0.value.extent) })
    case .blob(let blob): ValueExtent(bytesAtMost: ValueExtent.blobBytes + blob.type.utf8.count)
    }
  }

  private static func extent(of items: some Sequence<(beside: Int, item: ValueExtent)>) -> ValueExtent {
    var whole = ValueExtent(bytesAtMost: ValueExtent.headBytes)
    for (beside, item) in items {
      whole.bytesAtMost += beside + item.bytesAtMost
      whole.levels = max(whole.levels, item.levels)
    }
    whole.levels += 1
    return whole
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
