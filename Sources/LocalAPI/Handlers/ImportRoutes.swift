import Replication
import Seamesh
import Wire

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

private func importDocuments(_ request: Request, _ surroundings: Surroundings) throws -> Response {
  let partition = try request.partition()
  try DocumentLimits.check(collection: request.collection)
  let keepAbsent = try request.flag(keepAbsentParameter.name)
  try RecordLines.check(request.body)
  let read = { (line: ArraySlice<UInt8>) in documentRequest(line, request.collection, keepAbsent: keepAbsent) }
  if !request.headers.all("idempotency-key").isEmpty {
    for line in RecordLines(request.body) where isInsert(read(line.bytes)) { try refuseIdempotencyKey(request) }
  }
  var batch = ImportBatch(partition, surroundings.node)
  for line in RecordLines(request.body) {
    try batch.makeRoom(for: ExtendedJSON.valueCountAtMost(in: line.bytes))
    batch.append(line.number, read(line.bytes))
  }
  try batch.write()
  let failed = Int64(batch.results.count) - batch.imported
  return .json(
    .object(["imported": .int(batch.imported), "failed": .int(failed), "results": .array(batch.results)]))
}

/// Records on their way into a node, a part of so many values after another: all of one request, read at once, could take some
/// thirty times the memory of its body.
private struct ImportBatch {
  /// A line's document with its id, or what is wrong with it.
  typealias Record = (line: Int, content: Result<DocumentRequest, Problem>)

  private(set) var results: [Value] = []
  private(set) var imported: Int64 = 0
  private let partition: PartitionName
  private let node: any NodeInterface
  private var part: [Record] = []
  private var values = 0
  /// Why the node took nothing more of it.
  private var failure: NodeError?

  init(_ partition: PartitionName, _ node: any NodeInterface) { (self.partition, self.node) = (partition, node) }

  /// Before a record of at most so many values is read.
  mutating func makeRoom(for count: Int) throws(NodeError) {
    if !part.isEmpty, values + count > ServerLimit.documentValues { try write() }
    values += count
  }

  mutating func append(_ line: Int, _ content: Result<DocumentRequest, Problem>) { part.append((line, content)) }

  mutating func write() throws(NodeError) {
    let good = part.compactMap { try? $0.content.get() }
    var receipts = good.isEmpty ? [] : try receipts(good)
    receipts.reverse()
    for record in part {
      let result = record.content.mapError { $0 }.flatMap { document in
        (receipts.popLast() ?? .failure(failure ?? NodeError(.failed, "the node gave no answer for this record")))
          .map { (document.id, $0) }.mapError { Problem($0) }
      }
      if case .success = result { imported += 1 }
      results.append(value(result, line: record.line))
    }
    (part, values) = ([], 0)
  }

  /// A node in trouble refuses the whole batch, as long as nothing of it went in; later it is told of each record that did not.
  private mutating func receipts(
    _ documents: [DocumentRequest]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    guard failure == nil else { return [] }
    do throws(NodeError) {
      return try node.writeEach(partition, documents)
    } catch {
      guard imported > 0 else { throw error }
      failure = error
      return []
    }
  }
}

private func isInsert(_ content: Result<DocumentRequest, Problem>) -> Bool {
  if case .success(let document) = content, case .insert = document.action { true } else { false }
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
