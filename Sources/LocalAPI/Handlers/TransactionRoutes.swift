import Replication
import Seamesh

let transactionRoutes: [Route] = [
  Route(
    method: .post, template: "/v1/partitions/{partition}/transaction", name: "transact",
    summary: "Several documents in one change: all of it, or nothing. One change holds at most "
      + "\(Run.changePayloadByteLimit) bytes as they are stored and writes at most \(Run.operationLimit) values, over all its documents: "
      + "413 where it is more. The operation is named for which all are refused. An Idempotency-Key does nothing here, and is refused (422) "
      + "where an insert has no _id: one that has is told apart by that when it is sent again.",
    body: .json(
      byteLimit: ServerLimit.transactionBodyBytes, valueLimit: ServerLimit.transactionValues, transactionSchema),
    result: .json(transactionResult),
    refusals: [.notFound, .preconditionFailed, .notPermitted, .tooLarge, .unprocessable], answer: transact)
]

private let transactionSchema = Schema.object([
  .required("operations", .array(of: .any(operationSchemas), from: 1, to: BulkLimit.requests))
])

private let ifMatch = Schema.string(pattern: #"^([!#-~]+|"[!#-~]+")$"#).describing(
  "*, or the ETag that the document must have, with or without the quotes of the header.")

private let operationSchemas: [Schema] = {
  func operation(_ name: String, id: Schema.Property, _ own: [Schema.Property], isConditional: Bool = true) -> Schema {
    .object(
      [.required("op", .constant(.text(name))), .required("collection", .collectionName), id] + own
        + (isConditional ? [.nullable("ifMatch", ifMatch)] : []))
  }
  let (id, upsert) = (Schema.Property.required("id", .documentID), Schema.Property.nullable("upsert", .boolean))
  let identified = Schema.documentWithID
  return [
    operation("put", id: id, [.required("document", .document), .nullable("keepAbsent", .boolean)]),
    operation(
      "put", id: .nullable("id", .documentID), [.required("document", identified), .nullable("keepAbsent", .boolean)]),
    operation(
      "insert", id: .nullable("id", .documentID), [.required("document", .document)], isConditional: false),
    operation("patch", id: id, [.required("patch", .mergePatch), upsert]),
    operation("update", id: id, [.required("update", .updateOperators), upsert]),
    operation("delete", id: id, []),
  ]
}()

private let transactionResult = Schema.object([
  .required("dot", .nullable(Dot.schema)), .required("safety", .string),
  .required(
    "results",
    .array(
      of: .object([
        .required("collection", .collectionName), .required("id", .documentID),
        .required("etag", .nullable(.entityTag)), .required("created", .boolean),
      ]))),
])

private func transact(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let partition = try request.partition()
  let members = try Members(
    JSON.envelope(request.body, valueLimit: ServerLimit.transactionValues), of: "a transaction", allowed: ["operations"]
  )
  let operations = try members.array("operations")
  guard !operations.isEmpty else { throw Problem.unprocessable("operations is empty: a transaction has one at least") }
  guard operations.count <= BulkLimit.requests else {
    throw Problem.limit(.unprocessable, "one transaction", BulkLimit.requests, unit: "operations")
  }
  let requests = try operations.enumerated().map { index, operation throws(Problem) in
    do throws(Problem) {
      return try documentRequest(operation, number: index + 1)
    } catch {
      throw error.of("operation \(index + 1)", operation: index + 1)
    }
  }
  if operations.contains(where: isInsertWithoutID) { try refuseIdempotencyKey(request) }
  let receipt = try write(requests, partition, surroundings)
  let results = requests.enumerated().map { index, request in
    Value.object([
      "collection": .string(request.collection), "id": request.id,
      "etag": .optional(index < receipt.etags.count ? receipt.etags[index] : nil),
      "created": .bool(index < receipt.created.count && receipt.created[index]),
    ])
  }
  return .json(
    .object([
      "dot": receipt.dot?.value(in: partition) ?? .null, "safety": .text(receipt.safety),
      "results": .array(results),
    ]))
}

/// A node numbers the operations of several alone; whoever sends a list is told in one form, however long it is.
private func write(
  _ requests: [DocumentRequest], _ partition: PartitionName, _ surroundings: Surroundings
) throws -> WriteReceipt {
  do throws(NodeError) {
    return try surroundings.node.write(partition, requests)
  } catch {
    guard let only = requests.first, requests.count == 1, error.operation == nil, error.code.isOfOperation else {
      throw error
    }
    throw Problem(error).of("operation 1 (\(only.place))", operation: 1)
  }
}

extension NodeError.Code {
  /// It is about what was asked of a document, and not about the node or the partition.
  fileprivate var isOfOperation: Bool {
    switch self {
    case .notFound, .preconditionFailed, .tooLarge, .unprocessable, .damaged: true
    case .badRequest, .notPermitted, .storeFailed, .otherVersion, .diskFull, .readOnly, .busy, .unanswered, .stopping,
      .failed:
      false
    }
  }
}

/// Sent again it makes another document.
private func isInsertWithoutID(_ operation: Value) -> Bool {
  guard case .map(let map) = operation, map["op"] == .string("insert"), case .map(let document)? = map["document"]
  else { return false }
  return map["id"].map { $0 == .null } ?? true && document["_id"] == nil
}

private func documentRequest(_ operation: Value, number: Int) throws(Problem) -> DocumentRequest {
  let what = "operation \(number)"
  guard case .map(let map) = operation else { throw .unprocessable("\(what) must be an object") }
  guard case .string(let name)? = map["op"], let own = operationMembers[name] else {
    throw .unprocessable("\(what): op is put, insert, patch, update or delete")
  }
  let members = try Members(map, of: "\(what), a \(name.string),", allowed: ["op", "collection", "id"] + own)
  let collection = try members.string("collection")
  var id = try members["id"].map { value throws(Problem) in try DocumentID.checked(value) }
  if id == nil, name == "put" || name == "insert" {
    var document = try members.object("document")
    id = try takeID(from: &document) ?? (name == "insert" ? .objectID(.make()) : nil)
  }
  guard let id else { throw .unprocessable("\(what) needs the member id") }
  return DocumentRequest(
    collection: collection, id: id, action: try action(name, id, members, what),
    condition: try members.optionalString("ifMatch").map { text throws(Problem) in try condition(text) })
}

/// An ETag has no quotes in it: where some stand, they are those of the header that it was taken from.
private func condition(_ text: Text) throws(Problem) -> DocumentRequest.Condition {
  guard text != "*" else { return .exists }
  guard text.utf8.contains(UInt8(ascii: "\"")) else { return .isOneOf([text.string]) }
  guard case .list(let tags)? = EntityTags([text.string]), tags.count == 1, !tags[0].isWeak else {
    throw .unprocessable("ifMatch takes *, or one ETag, which is not weak")
  }
  return .isOneOf([tags[0].text])
}

/// What each operation takes beside `op`, `collection` and `id`. A member of another one would silently do nothing.
private let operationMembers: [Text: [Text]] = [
  "put": ["document", "keepAbsent", "ifMatch"], "insert": ["document"], "patch": ["patch", "upsert", "ifMatch"],
  "update": ["update", "upsert", "ifMatch"], "delete": ["ifMatch"],
]

private func action(
  _ name: Text, _ id: Value, _ members: Members, _ what: String
) throws(Problem) -> DocumentRequest.Action {
  switch name {
  case "put":
    .put(body: try body("document", id, members, what), keepAbsent: try members.flag("keepAbsent"))
  case "insert": .insert(body: try body("document", id, members, what))
  case "patch": .mergePatch(try body("patch", id, members, what), upsert: try members.flag("upsert"))
  case "update": .update(try updateOperators(members.object("update")), upsert: try members.flag("upsert"))
  default: .delete
  }
}

/// A document inside an envelope keeps the rules of one that stands alone.
private func body(_ name: Text, _ id: Value, _ members: Members, _ what: String) throws(Problem) -> ValueMap {
  let map = try withoutID(members.object(name), mustBe: id)
  if let key = map.entries.first(where: { $0.key.utf8.first == UInt8(ascii: "$") })?.key {
    throw .unprocessable("\(what): the operator \(key.string) cannot be a field of a document")
  }
  return map
}
