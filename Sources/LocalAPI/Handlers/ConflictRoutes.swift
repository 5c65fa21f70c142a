import Replication
import Seamesh

private let conflicts = "/v1/partitions/{partition}/conflicts"

/// One of its members.
private let decision = Schema.any([
  .object([.required("keep", .constant(.bool(true)))]),
  .object([.required("take", .array(of: .integer(from: 1), from: 1))]),
  .object([.required("value", .documentValue)]),
])
private let decisionMembers: [Text] = ["keep", "take", "value"]

let conflictRoutes: [Route] = [
  Route(
    method: .get, template: conflicts, name: "listConflicts",
    summary:
      "Documents with values that are not shown because others were written beside them, unread. Looks at some thousand documents: "
      + "where there are more, `next` says where to go on. shownBy is who last wrote what is shown; null of a deleted document, "
      + "which does not keep who deleted it.",
    query: [
      .count(
        "limit", from: 1, to: Int64(ConflictQuery.greatestLimit),
        "so many conflicts, \(ConflictQuery.standardLimit) where it is not said; one document may bring more"),
      .text("after", "next of the answer before"),
    ], result: .json(ConflictPage.schema), refusals: [.notPermitted, .unprocessable]
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
      + "document is not as the list showed it. created: a deleted document is there again, with what was decided and nothing "
      + "else of what it held.",
    body: .json(byteLimit: ServerLimit.documentBodyBytes, decision), result: .json(resolution),
    refusals: [.notFound, .preconditionFailed, .notPermitted, .tooLarge, .unprocessable], answer: resolve),
]

private let resolution = Schema.object([
  .required("dot", .nullable(Dot.schema)), .required("safety", .string), .required("etag", .nullable(.entityTag)),
  .required("created", .boolean),
])

private func resolve(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let partition = try request.partition()
  let choice = try choice(JSON.envelope(request.body))
  let receipt = try surroundings.node.resolve(partition, conflict: request.parameter("id").string, choice)
  let etag = receipt.etags.first ?? nil
  let response = Response.json(
    .object([
      "dot": receipt.dot?.value(in: partition) ?? .null, "safety": .text(receipt.safety), "etag": .optional(etag),
      "created": .bool(receipt.created.first ?? false),
    ]))
  return etag.map { response.with("ETag", "\"\($0)\"") } ?? response
}

private func choice(_ body: ValueMap) throws(Problem) -> ConflictChoice {
  let members = try Members(body, of: "a decision", allowed: decisionMembers)
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

extension ConflictPage: Tabled {
  static let table: [Member<ConflictPage>] = [
    Member("conflicts", \.conflicts), Member("next", \.next), Member("examined", \.examined, .count),
    Member("untold", \.untold, .count),
  ]
}

extension ConflictStatus: Tabled {
  static let table: [Member<ConflictStatus>] = [
    Member("id", \.id), Member("collection", \.collection), Member("document", \.document, .documentID),
    Member("deleted", \.isDeleted), Member("place", \.place), Member(absentable: "shown", \.shown),
    Member("shownBy", \.shownBy), Member("values", \.numberedValues),
  ]

  fileprivate var numberedValues: [NumberedCandidate] {
    values.enumerated().map { NumberedCandidate(number: $0.offset + 1, candidate: $0.element) }
  }
}

extension ConflictStatus.Writer: Tabled {
  static let table: [Member<ConflictStatus.Writer>] = [
    Member("replica", \.replica), Member("sequence", \.sequence), Member("device", \.device), Member("label", \.label),
    Member("user", \.user), Member("written", .documentValue) { .date($0.writtenMilliseconds) },
  ]
}

/// A value with its place in the list, by which it is chosen.
private struct NumberedCandidate: Tabled {
  let number: Int
  let candidate: ConflictStatus.Candidate

  static let table: [Member<NumberedCandidate>] = [
    Member("number", \.number, .integer(from: 1)), Member("path", \.candidate.path),
    Member("kind", \.candidate.kind, .oneOf(["set", "remove", "increment", "add"])),
    Member("replica", \.candidate.writer.replica), Member("sequence", \.candidate.writer.sequence),
    Member("device", \.candidate.writer.device), Member("label", \.candidate.writer.label),
    Member("user", \.candidate.writer.user),
    Member("written", .documentValue) { .date($0.candidate.writer.writtenMilliseconds) },
    Member(absentable: "value", \.candidate.value),
  ]
}
