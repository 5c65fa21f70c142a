import Replication
import Seamesh

extension Request {
  func partition() throws(Problem) -> PartitionName { try partitionName(parameter("partition")) }

  var collection: Text { parameter("collection") }

  func documentID() throws(Problem) -> Value { try DocumentID.parse(segment: parameter("id")) }

  /// What a write asks of the document as it stands: `If-Match` and `If-None-Match`.
  func condition() throws(Problem) -> DocumentRequest.Condition? {
    let conditions: [DocumentRequest.Condition] = [
      // Weak tags never match here: a write stands on one version, byte for byte (RFC 9110 §13.1.1).
      try entityTags("If-Match").map { $0 == .any ? .exists : .isOneOf($0.strong) },
      try entityTags("If-None-Match").map { $0 == .any ? .isAbsent : .isNoneOf($0.all) },
    ].compactMap(\.self)
    return conditions.count > 1 ? .all(conditions) : conditions.first
  }

  private func entityTags(_ name: String) throws(Problem) -> EntityTags? {
    let values = headers.all(name.lowercased())
    guard !values.isEmpty else { return nil }
    guard let tags = EntityTags(values) else {
      throw .badRequest("\(name) takes *, or ETags in double quotes as a read or a write answered them")
    }
    return tags
  }
}

func partitionName(_ text: Text) throws(Problem) -> PartitionName {
  do throws(PartitionName.Invalid) {
    return try PartitionName(text)
  } catch .tooLong {
    throw .limit(.unprocessable, "the partition's name", PartitionName.byteLimit, unit: "bytes")
  } catch {
    throw .unprocessable("a partition's name has at least one byte and no control characters")
  }
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
