import Replication
import Seamesh

private let documents = "/v1/partitions/{partition}/collections/{collection}/documents"

let documentRoutes: [Route] = [
  Route(
    method: .get, template: documents + "/{id}", name: "getDocument",
    summary: "One document, with its causal version as ETag.", headers: [ifNoneMatch], result: .json(.document),
    statuses: [200, 304],
    refusals: [.notFound, .notPermitted, .unprocessable, .damagedDocument], answer: getDocument),
  Route(
    method: .put, template: documents + "/{id}", name: "putDocument",
    summary:
      "Replaces or creates a document; only what differs from the present version is recorded, so that it may be sent "
      + "again without an Idempotency-Key, which does nothing here.",
    body: .json(byteLimit: ServerLimit.documentBodyBytes, .document), query: [keepAbsentParameter],
    headers: conditions, result: .json(writeReceipt), statuses: [200, 201],
    refusals: [.preconditionFailed, .notPermitted, .tooLarge, .unprocessable],
    answer: putDocument),
  Route(
    method: .patch, template: documents + "/{id}", name: "patchDocument",
    summary:
      "Changes fields of a document: a merge patch (RFC 7396), or MongoDB update operators. An Idempotency-Key does "
      + "nothing here: what counts or appends, such as $inc, is sent again with If-Match alone.", body: .patch,
    query: [.flag("upsert", "true: a document that is not there is made, from an empty one")], headers: conditions,
    result: .json(writeReceipt), statuses: [200, 201],
    refusals: [.notFound, .preconditionFailed, .notPermitted, .tooLarge, .unprocessable, .damagedDocument],
    answer: patchDocument),
  Route(
    method: .delete, template: documents + "/{id}", name: "deleteDocument", summary: "Deletes a document.",
    headers: conditions, result: .json(writeReceipt),
    refusals: [.notFound, .preconditionFailed, .notPermitted, .unprocessable], answer: deleteDocument),
  Route(
    method: .post, template: documents, name: "insertDocument",
    summary:
      "Inserts a document with the _id of the body, or a new ObjectId. Sent again with the same Idempotency-Key and body "
      + "it makes no second one: 200 and the id that the first request made, 412 where that was deleted since, 422 where "
      + "the key made a document of another body. Ids that are made under a key are not in the order of time. A body with an _id is told apart by that: the key does nothing.",
    body: .json(byteLimit: ServerLimit.documentBodyBytes, .document), headers: [idempotencyKeyHeader],
    result: .json(writeReceipt), statuses: [200, 201],
    refusals: [.preconditionFailed, .notPermitted, .tooLarge, .unprocessable], answer: insertDocument),
]

let keepAbsentParameter = Route.QueryParameter.flag(
  "keepAbsent", "true: fields that the body leaves out stay; otherwise they are taken away")

private let tagsPattern = #"^(\*|(W/)?"[!#-~]*"( ?, ?(W/)?"[!#-~]*"){0,3})$"#
private let ifMatch = Route.Header(
  "If-Match", "*, or the ETags of which the document must have one", .string(pattern: tagsPattern))
private let ifNoneMatch = Route.Header(
  "If-None-Match", "*, or the ETags of which the document must have none", .string(pattern: tagsPattern))
private let idempotencyKeyHeader = Route.Header(
  "Idempotency-Key", "names this insert on this node; of no use where the body has an _id",
  .string(pattern: "^[!#-~][!-~]{0,\(idempotencyKeyBytes - 1)}$"))
private let conditions = [ifMatch, ifNoneMatch]

private let writeReceipt = Schema.object([
  .required("id", .documentID), .required("dot", .nullable(Dot.schema)), .required("safety", .string),
  .required("etag", .nullable(.entityTag)), .required("created", .boolean),
])

private func getDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let (partition, id) = (try request.partition(), try request.documentID())
  guard let document = try surroundings.node.read(partition, request.collection, id: id) else {
    throw Problem(.notFound, "there is no such document in \(partition.text.string)")
  }
  let etag = "\"\(document.etag)\""
  let known = EntityTags(request.headers.all("if-none-match"))
  guard known != .any, known?.all.contains(document.etag) != true else {
    return Response(status: 304, type: nil, body: .bytes([])).with("ETag", etag)
  }
  return Response.json(.map(document.withID)).with("ETag", etag)
}

private func putDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let id = try request.documentID()
  let body = try withoutID(JSON.document(request.body), mustBe: id)
  let action = DocumentRequest.Action.put(body: body, keepAbsent: try request.flag(keepAbsentParameter.name))
  return try write(action, id, try request.condition(), request, surroundings)
}

private func patchDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let (id, upsert) = (try request.documentID(), try request.flag("upsert"))
  let action: DocumentRequest.Action
  if request.contentType == .mergePatch {
    action = .mergePatch(try withoutID(JSON.document(request.body), mustBe: id), upsert: upsert)
  } else {
    action = .update(try updateOperators(JSON.envelope(request.body)), upsert: upsert)
  }
  return try write(action, id, try request.condition(), request, surroundings)
}

private func deleteDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  try write(.delete, request.documentID(), try request.condition(), request, surroundings)
}

private func insertDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  var body = try JSON.document(request.body)
  let (own, key) = (try takeID(from: &body), try idempotencyKey(request))
  if own == nil, let key {
    let made = try surroundings.node.insert(body, under: key, try request.partition(), request.collection)
    let id = Value.objectID(made.id)
    return try response(made.receipt, id, request).with("Location", location(of: id, request))
  }
  let id = own ?? .objectID(.make())
  return try write(.insert(body: body), id, nil, request, surroundings).with("Location", location(of: id, request))
}

private func location(of id: Value, _ request: Request) -> String {
  "/v1/partitions/\(percentEncoded(request.parameter("partition")))/collections/"
    + "\(percentEncoded(request.collection))/documents/\(percentEncoded(DocumentID.segment(id)))"
}

private let idempotencyKeyBytes = 255

/// As it stands, or within quotes as the draft of the header has it. Nil where there is none.
private func idempotencyKey(_ request: Request) throws(Problem) -> Text? {
  let values = request.headers.all("idempotency-key")
  guard let value = values.first else { return nil }
  let isQuoted = value.utf8.count >= 2 && value.hasPrefix("\"") && value.hasSuffix("\"")
  let key = isQuoted ? String(value.dropFirst().dropLast()) : value
  guard values.count == 1, (1...idempotencyKeyBytes).contains(key.utf8.count), key.utf8.allSatisfy({ 33...126 ~= $0 })
  else {
    throw .badRequest("Idempotency-Key is one text of 1 to \(idempotencyKeyBytes) bytes of ASCII without spaces")
  }
  return Text(key)
}

/// Several documents are no one thing that a key could name. Who sends one relies on it, and would write twice.
func refuseIdempotencyKey(_ request: Request) throws(Problem) {
  guard request.headers.all("idempotency-key").isEmpty else {
    throw .unprocessable(
      "Idempotency-Key does nothing here: give each inserted document an _id, by which it is told apart when it is sent "
        + "again")
  }
}

/// The operators of an update; a body with plain fields is not taken for a replacement.
func updateOperators(_ map: ValueMap) throws(Problem) -> ValueMap {
  guard !map.isEmpty, map.entries.allSatisfy({ $0.key.utf8.first == UInt8(ascii: "$") }) else {
    throw .unprocessable(
      "application/json takes update operators such as {\"$set\":{…}}; for a merge patch send Content-Type: "
        + MediaType.mergePatch.rawValue)
  }
  return map
}

private func write(
  _ action: DocumentRequest.Action, _ id: Value, _ condition: DocumentRequest.Condition?, _ request: Request,
  _ surroundings: Surroundings
) throws -> Response {
  let receipt = try surroundings.node.write(
    try request.partition(),
    [DocumentRequest(collection: request.collection, id: id, action: action, condition: condition)])
  return try response(receipt, id, request)
}

private func response(_ receipt: WriteReceipt, _ id: Value, _ request: Request) throws -> Response {
  let partition = try request.partition()
  let (etag, created) = (receipt.etags.first ?? nil, receipt.created.first ?? false)
  let response = Response.json(
    .object([
      "id": id, "dot": receipt.dot?.value(in: partition) ?? .null, "safety": .text(receipt.safety),
      "etag": .optional(etag), "created": .bool(created),
    ]), status: created ? 201 : 200)
  return etag.map { response.with("ETag", "\"\($0)\"") } ?? response
}

extension Request {
  /// A query parameter that is `true`, `false` or absent.
  func flag(_ name: String, default standard: Bool = false) throws(Problem) -> Bool {
    switch target[parameter: Text(name)] {
    case nil: standard
    case "true": true
    case "false": false
    default: throw .badRequest("the query parameter \(name) is true or false")
    }
  }
}
