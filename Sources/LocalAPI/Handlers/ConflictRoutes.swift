import Replication
import Seamesh

private let conflicts = "/v1/partitions/{partition}/conflicts"
private let choices: [Text] = ["keep", "take", "value"]

let conflictRoutes: [Route] = [
  Route(
    method: .get, template: conflicts, name: "listConflicts",
    summary:
      "Documents with values that are not shown because others were written beside them, unread. Looks at some thousand documents: "
      + "where there are more, `next` says where to go on.",
    query: [
      .count(
        "limit", "so many conflicts, \(ConflictQuery.standardLimit) where it is not said; one document may bring more"),
      .text("after", "next of the answer before"),
    ], refusals: [.badRequest, .notPermitted, .unprocessable]
  ) { request, surroundings in
    var query = ConflictQuery(after: request.target[parameter: "after"]?.string)
    if let text = request.target[parameter: "limit"] {
      guard let limit = Int(text.string), (1...ConflictQuery.greatestLimit).contains(limit) else {
        throw Problem.badRequest("the query parameter limit is a whole number from 1 to \(ConflictQuery.greatestLimit)")
      }
      query.limit = limit
    }
    return .json(try surroundings.node.conflicts(try request.partition(), query).value)
  },
  Route(
    method: .post, template: conflicts + "/{id}/resolve", name: "resolveConflict",
    summary:
      "Decides a conflict: keep, true: what is shown stays; take, numbers of its values; or value, another one. 412 where the "
      + "document is not as the list showed it.",
    body: .json(byteLimit: ServerLimit.documentBodyBytes, members: choices.map(\.string)),
    refusals: [.notFound, .preconditionFailed, .notPermitted, .tooLarge, .unprocessable], answer: resolve),
]

private func resolve(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let partition = try request.partition()
  let choice = try choice(JSON.envelope(request.body))
  let receipt = try surroundings.node.resolve(partition, conflict: request.parameter("id").string, choice)
  let etag = receipt.etags.first ?? nil
  let response = Response.json(
    .object([
      "dot": receipt.dot?.value(in: partition) ?? .null, "safety": .text(receipt.safety), "etag": .optional(etag),
    ]))
  return etag.map { response.with("ETag", "\"\($0)\"") } ?? response
}

private func choice(_ body: ValueMap) throws(Problem) -> ConflictChoice {
  let members = try Members(body, of: "a decision", allowed: choices)
  guard body.count == 1 else { throw .unprocessable("a decision has one of the members keep, take and value") }
  // null is a value like any other.
  if let value = body["value"] { return .value(value) }
  if body["keep"] != nil {
    guard try members.flag("keep") else { throw .unprocessable("the member keep of a decision must be true") }
    return .keep
  }
  let numbers = try members.array("take").map { item throws(Problem) in
    guard case .int(let number) = item, let number = Int(exactly: number) else {
      throw Problem.unprocessable("the member take of a decision must be an array of whole numbers")
    }
    return number
  }
  return .take(numbers)
}

extension ConflictPage {
  var value: Value {
    .object([
      "conflicts": .list(conflicts, \.value), "next": .optional(next), "examined": .int(Int64(examined)),
      "untold": .int(Int64(untold)),
    ])
  }
}

extension ConflictStatus {
  fileprivate var value: Value {
    var map = ValueMap(members: [
      "id": .text(id), "collection": .text(collection), "document": document, "deleted": .bool(isDeleted),
      "place": .text(place),
      "values": .list(values.enumerated().map { $0 }) { $0.element.value(number: $0.offset + 1) },
    ])
    // Absent is nothing, null is a value.
    if let shown { map["shown"] = shown }
    return .map(map)
  }
}

extension ConflictStatus.Candidate {
  fileprivate func value(number: Int) -> Value {
    var map = ValueMap(members: [
      "number": .int(Int64(number)), "path": .text(path), "kind": .text(kind), "replica": .text(replica),
      "sequence": .int(Int64(clamping: sequence)), "device": .text(device), "label": .text(label), "user": .text(user),
      "written": .date(writtenMilliseconds),
    ])
    if let value { map["value"] = value }
    return .map(map)
  }
}
