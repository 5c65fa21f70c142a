import Replication
import Seamesh

extension Request {
  func partition() throws(Problem) -> PartitionName {
    do throws(PartitionName.Invalid) {
      return try PartitionName(parameter("partition"))
    } catch .tooLong {
      throw .limit(.unprocessable, "the partition's name", PartitionName.byteLimit, unit: "bytes")
    } catch {
      throw .unprocessable("a partition's name has at least one byte and no control characters")
    }
  }

  var collection: Text { parameter("collection") }

  func documentID() throws(Problem) -> Value { try DocumentID.parse(segment: parameter("id")) }

  /// The ETag of `If-Match`, without its quotes.
  func ifMatch() throws(Problem) -> String? { try etag(of: "if-match") }

  /// Whether the document must not exist yet.
  func mustBeNew() throws(Problem) -> Bool {
    let values = headers.all("if-none-match")
    guard values.isEmpty || values == ["*"] else {
      throw .unprocessable("a write takes If-None-Match: * (the document must be new) and no other")
    }
    return !values.isEmpty
  }

  private func etag(of name: String) throws(Problem) -> String? {
    let values = headers.all(name)
    guard let value = values.first else { return nil }
    // Weak tags never match strongly (RFC 9110 §13.1.1), and a list or `*` has no meaning for one causal version.
    guard values.count == 1, let tag = unquoted(value) else {
      throw .unprocessable("If-Match takes one ETag in double quotes, as a read or a write answered it")
    }
    return tag
  }
}

/// Nil unless `value` is one strong entity tag.
func unquoted(_ value: String) -> String? {
  guard value.utf8.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") else { return nil }
  let tag = value.dropFirst().dropLast()
  return tag.contains("\"") ? nil : String(tag)
}

/// Takes `_id` out of a body. Nil where it has none.
func takeID(from body: inout ValueMap) throws(Problem) -> Value? {
  guard let id = body["_id"] else { return nil }
  body["_id"] = nil
  return try DocumentID.checked(id)
}

/// The body without `_id`, which must be `id` where it stands.
func withoutID(_ body: ValueMap, mustBe id: Value) throws(Problem) -> ValueMap {
  var body = body
  guard let own = try takeID(from: &body) else { return body }
  guard own == id else { throw .unprocessable("the document's _id is not the id that the request names") }
  return body
}
