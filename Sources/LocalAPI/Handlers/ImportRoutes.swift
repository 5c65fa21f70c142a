import Replication
import Seamesh

let importRoutes: [Route] = [
  Route(
    method: .post, template: "/v1/partitions/{partition}/collections/{collection}/import", name: "importDocuments",
    summary: "Documents as JSON lines, each in a change of its own and answered by itself: a bad one stops no other. "
      + "An Idempotency-Key does nothing here, and is refused (422) where a document has no _id: one that has is told "
      + "apart by that when it is sent again.",
    body: .lines(of: .document),
    query: [keepAbsentParameter], result: .json(importResult), refusals: [.tooLarge, .unprocessable],
    answer: importDocuments)
]

private let importResult = Schema.object([
  .required("imported", .count), .required("failed", .count),
  .required(
    "results",
    .array(
      of: .any([
        .object([
          .required("line", .integer(from: 1)), .required("id", .documentID), .required("created", .boolean),
          .required("changed", .boolean), .required("etag", .nullable(.entityTag)),
        ]),
        .object([.required("line", .integer(from: 1)), .required("error", .problem)]),
      ]))),
])

/// A line's document with its id, or what is wrong with it.
private typealias Record = (line: Int, content: Result<DocumentRequest, Problem>)

private func importDocuments(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let partition = try request.partition()
  try DocumentLimits.check(collection: request.collection)
  let records = try records(request)
  let good = records.compactMap { try? $0.content.get() }
  if good.contains(where: { if case .insert = $0.action { true } else { false } }) { try refuseIdempotencyKey(request) }
  var receipts = good.isEmpty ? [] : try surroundings.node.writeEach(partition, good)
  receipts.reverse()
  var results: [Value] = []
  var imported: Int64 = 0
  for record in records {
    let result = record.content.mapError { $0 }.flatMap { document in
      (receipts.popLast() ?? .failure(NodeError(.failed, "the node gave no answer for this record")))
        .map { (document.id, $0) }.mapError { Problem($0) }
    }
    if case .success = result { imported += 1 }
    results.append(value(result, line: record.line))
  }
  return .json(
    .object([
      "imported": .int(imported), "failed": .int(Int64(results.count) - imported), "results": .array(results),
    ]))
}

private func records(_ request: Request) throws(Problem) -> [Record] {
  let keepAbsent = try request.flag(keepAbsentParameter.name)
  var records: [Record] = []
  let lines = request.body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  for (index, line) in lines.enumerated() where !line.allSatisfy({ $0 == 0x20 || $0 == 0x0d || $0 == 0x09 }) {
    guard records.count < BulkLimit.requests else {
      throw .limit(.unprocessable, "one import request", BulkLimit.requests, unit: "records")
    }
    records.append((index + 1, documentRequest(line, request.collection, keepAbsent: keepAbsent)))
  }
  return records
}

private func documentRequest(
  _ line: ArraySlice<UInt8>, _ collection: Text, keepAbsent: Bool
) -> Result<DocumentRequest, Problem> {
  Result { () throws(Problem) in
    var body = try JSON.document(line)
    guard let id = try takeID(from: &body) else {
      return DocumentRequest(collection: collection, id: .objectID(.make()), action: .insert(body: body))
    }
    return DocumentRequest(collection: collection, id: id, action: .put(body: body, keepAbsent: keepAbsent))
  }
}

private func value(_ result: Result<(Value, WriteReceipt), Problem>, line: Int) -> Value {
  switch result {
  case .success((let id, let receipt)):
    .object([
      "line": .int(Int64(line)), "id": id, "created": .bool(receipt.created.first ?? false),
      "changed": .bool(receipt.dot != nil), "etag": .optional(receipt.etags.first ?? nil),
    ])
  case .failure(let problem): .object(["line": .int(Int64(line)), "error": problem.value])
  }
}
