import Replication
import Seamesh

private let documents = "/v1/partitions/{partition}/collections/{collection}/documents"

let documentRoutes: [Route] = [
  Route(
    method: .get, template: documents + "/{id}", name: "getDocument",
    summary: "One document, with its causal version as ETag.", headers: ["If-None-Match"], statuses: [200, 304],
    answer: getDocument),
  Route(
    method: .put, template: documents + "/{id}", name: "putDocument",
    summary: "Replaces or creates a document; only real differences are recorded, and fields left out stay.",
    body: .json(byteLimit: ServerLimit.documentBodyBytes),
    query: [.init("eraseAbsent", "true: fields that the body leaves out are erased")],
    headers: ["If-Match", "If-None-Match"], statuses: [200, 201], answer: putDocument),
  Route(
    method: .patch, template: documents + "/{id}", name: "patchDocument",
    summary: "Changes fields: a merge patch (RFC 7396), or MongoDB update operators.", body: .patch,
    headers: ["If-Match"], statuses: [200, 201], answer: patchDocument),
  Route(
    method: .delete, template: documents + "/{id}", name: "deleteDocument", summary: "Deletes a document.",
    headers: ["If-Match"], answer: deleteDocument),
  Route(
    method: .post, template: documents, name: "insertDocument",
    summary: "Inserts a document with the _id of the body, or a new ObjectId.",
    body: .json(byteLimit: ServerLimit.documentBodyBytes), statuses: [201], answer: insertDocument),
]

private func getDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let (partition, id) = (try request.partition(), try request.documentID())
  guard let document = try surroundings.node.read(partition, request.collection, id: id) else {
    throw Problem(.notFound, "there is no such document in \(partition.text.string)")
  }
  let etag = "\"\(document.etag)\""
  let known = request.headers.all("if-none-match").flatMap { $0.split(separator: ",") }
    .map { $0.trimmingSpaces.hasPrefix("W/") ? $0.trimmingSpaces.dropFirst(2) : $0.trimmingSpaces }
  guard !known.contains(where: { $0 == etag || $0 == "*" }) else {
    return Response(status: 304, type: nil, body: .bytes([])).with("ETag", etag)
  }
  return Response.json(.map(document.withID)).with("ETag", etag)
}

private func putDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let id = try request.documentID()
  let body = try withoutID(JSON.document(request.body), mustBe: id)
  let (mustBeNew, ifMatch) = (try request.mustBeNew(), try request.ifMatch())
  guard !mustBeNew || ifMatch == nil else { throw Problem.badRequest("If-Match and If-None-Match exclude one another") }
  let action: DocumentRequest.Action =
    mustBeNew ? .insert(body: body) : .put(body: body, eraseAbsent: try request.flag("eraseAbsent"))
  return try write(action, id, ifMatch: ifMatch, request, surroundings)
}

private func patchDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let id = try request.documentID()
  let action: DocumentRequest.Action
  if request.contentType == .mergePatch {
    action = .mergePatch(try withoutID(JSON.document(request.body), mustBe: id))
  } else {
    action = .update(try updateOperators(JSON.envelope(request.body)))
  }
  return try write(action, id, ifMatch: try request.ifMatch(), request, surroundings)
}

private func deleteDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  try write(.delete, request.documentID(), ifMatch: try request.ifMatch(), request, surroundings)
}

private func insertDocument(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  var body = try JSON.document(request.body)
  let id = try takeID(from: &body) ?? .objectID(.make())
  let place =
    "/v1/partitions/\(percentEncoded(request.parameter("partition")))/collections/"
    + "\(percentEncoded(request.collection))/documents/\(percentEncoded(DocumentID.segment(id)))"
  return try write(.insert(body: body), id, ifMatch: nil, request, surroundings).with("Location", place)
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
  _ action: DocumentRequest.Action, _ id: Value, ifMatch: String?, _ request: Request, _ surroundings: Surroundings
) throws -> Response {
  let partition = try request.partition()
  let receipt = try surroundings.node.write(
    partition, [DocumentRequest(collection: request.collection, id: id, action: action, ifMatch: ifMatch)])
  let (etag, created) = (receipt.etags.first ?? nil, receipt.created.first ?? false)
  var response = Response.json(
    .object([
      "id": id, "dot": receipt.dot?.value(in: partition) ?? .null, "safety": .text(receipt.safety),
      "etag": .optional(etag), "created": .bool(created),
    ]), status: created ? 201 : 200)
  if let etag { response = response.with("ETag", "\"\(etag)\"") }
  return response
}

extension Request {
  /// A query parameter that is `true`, `false` or absent.
  func flag(_ name: Text, default standard: Bool = false) throws(Problem) -> Bool {
    switch target[parameter: name] {
    case nil: standard
    case "true": true
    case "false": false
    default: throw .badRequest("the query parameter \(name.string) is true or false")
    }
  }
}

extension Substring {
  var trimmingSpaces: Substring {
    var text = self[...]
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return text
  }
}
