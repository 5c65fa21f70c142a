import Replication
import Seamesh

private let collection = "/v1/partitions/{partition}/collections/{collection}"

let queryRoutes: [Route] = [
  Route(
    method: .post, template: collection + "/find", name: "findDocuments",
    summary: "The documents that a MongoDB-style filter finds; 413 where they are more than an answer holds. Ids of "
      + "documents that may belong to them and are damaged on this device stand in damaged, where there are any. All are as "
      + "they were at one moment, but where oneState is false: then some were written while the others were read.",
    body: .json(byteLimit: ServerLimit.smallBodyBytes, FindRequest.schema),
    result: .json(
      .object([
        .required("documents", .array(of: .document)), .optional("damaged", .array(of: .documentID)),
        .optional("oneState", .boolean),
      ])),
    refusals: [.notPermitted, .tooLarge, .unprocessable], onlyReads: true
  ) { request, surroundings in
    let find = try FindRequest(body: request.body)
    let showsID = try find.projection.map { fields throws(NodeError) in try Projection(fields).showsID } ?? true
    let found = try surroundings.node.find(request.partition(), request.collection, find)
    var list = DocumentList(found, showsIDs: showsID)
    return list.response()
  },
  Route(
    method: .get, template: collection + "/watch", name: "watchDocuments",
    summary:
      "A live result as server-sent events: snapshot, then insert, update and delete with position; 413 where it "
      + "is larger than a node follows, and an event error where it comes to be.",
    query: [
      .json("filter", "as in find", .filter), .json("sort", "as in find", .sort), .count("limit", "as in find"),
      .count("skip", "as in find"), .json("projection", "as in find", .projection),
    ],
    headers: [
      Route.Header(
        "Last-Event-ID",
        "id of the last event that was read: while nothing has changed since, no snapshot comes again; otherwise a new one does",
        .string(pattern: "^[!-~]*$"))
    ], result: .events(DocumentEvents.described), refusals: [.notPermitted, .tooLarge, .unprocessable]
  ) { request, surroundings in
    let subscription = try surroundings.node.watch(
      request.partition(), request.collection, FindRequest(target: request.target))
    return try .events(
      DocumentEvents(subscription, lastEventID: request.headers["last-event-id"]), request, surroundings)
  },
]

/// `{"documents":[…]}` in pieces, each document written as the root that it is, so that its keys with `$` are marked as data.
struct DocumentList {
  private let found: FoundDocuments
  private let showsIDs: Bool
  private var next = 0
  private var isOver = false

  init(_ found: FoundDocuments, showsIDs: Bool = true) { (self.found, self.showsIDs) = (found, showsIDs) }

  /// About `byteCount` bytes, all that is left where it is not said; nil at the end.
  mutating func piece(of byteCount: Int = .max) -> [UInt8]? {
    guard !isOver else { return nil }
    var out = next == 0 ? Array("{\"documents\":[".utf8) : []
    while next < found.count, out.count < byteCount {
      if next > 0 { out.append(UInt8(ascii: ",")) }
      out += JSON.render(.map(showsIDs ? found[next].withID : found[next].body))
      next += 1
    }
    guard next == found.count else { return out }
    isOver = true
    out.append(UInt8(ascii: "]"))
    if !found.damaged.isEmpty { out += Array(",\"damaged\":".utf8) + JSON.render(.array(found.damaged)) }
    if !found.isOneState { out += Array(",\"oneState\":false".utf8) }
    out.append(UInt8(ascii: "}"))
    return out
  }

  /// Small ones as they are, so that their length can be told; others as a stream, without a copy of the whole.
  mutating func response() -> Response {
    let first = piece(of: ServerLimit.pipeChunkBytes) ?? []
    guard !isOver else { return Response(type: .json, body: .bytes(first + [UInt8(ascii: "\n")])) }
    return .stream(DocumentListStream(first, self), type: .json)
  }
}

/// A large result has its turn until it is written out, so that a client that takes it a byte at a time is cut in the end.
final class DocumentListStream: ResponseStream {
  private var first: [UInt8]?
  private var list: DocumentList
  private let deadline: Int64

  init(_ first: [UInt8], _ list: DocumentList, within milliseconds: Int64 = ServerLimit.resultMilliseconds) {
    (self.first, self.list, deadline) = (first, list, monotonicMilliseconds() + milliseconds)
  }

  func next() -> StreamChunk {
    defer { first = nil }
    guard monotonicMilliseconds() <= deadline else { return .broken }
    return (first ?? list.piece(of: ServerLimit.pipeChunkBytes)).map { .bytes($0) } ?? .end
  }

  func close() {}
}
