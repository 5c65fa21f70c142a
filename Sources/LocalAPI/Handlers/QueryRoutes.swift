import Replication
import Seamesh

private let collection = "/v1/partitions/{partition}/collections/{collection}"

let queryRoutes: [Route] = [
  Route(
    method: .post, template: collection + "/find", name: "findDocuments",
    summary: "The documents that a MongoDB-style filter finds; 413 where they are more than an answer holds. Ids of "
      + "documents that may belong to them and are damaged on this device stand in damaged, where there are any.",
    body: .json(byteLimit: ServerLimit.smallBodyBytes, members: FindRequest.memberNames.map(\.string)),
    refusals: [.notPermitted, .unprocessable]
  ) { request, surroundings in
    let find = try FindRequest(body: request.body)
    let showsID = try find.projection.map { fields throws(NodeError) in try Projection(fields).showsID } ?? true
    let found = try surroundings.node.find(request.partition(), request.collection, find)
    let list = documentList(found.documents, damaged: found.damaged, showsIDs: showsID)
    return Response(type: .json, body: .bytes(list + [UInt8(ascii: "\n")]))
  },
  Route(
    method: .get, template: collection + "/watch", name: "watchDocuments",
    summary:
      "A live result as server-sent events: snapshot, then insert, update and delete with position; 413 where it "
      + "is larger than a node follows, and an event error where it comes to be.",
    query: [
      .json("filter", "as in find"), .json("sort", "as in find"), .count("limit", "as in find"),
      .count("skip", "as in find"), .json("projection", "as in find"),
    ], headers: ["Last-Event-ID"], answers: .events, refusals: [.notPermitted, .unprocessable]
  ) { request, surroundings in
    let subscription = try surroundings.node.watch(
      request.partition(), request.collection, FindRequest(target: request.target))
    let stream = WatchStream(
      subscription, lastEventID: request.headers["last-event-id"], socket: request.socket,
      supervisor: surroundings.streams)
    try stream.begin()
    return .stream(stream, type: .events)
  },
]

/// `{"documents":[…]}`, each document written as the root that it is, so that its keys with `$` are marked as data.
func documentList(_ documents: [StoredDocument], damaged: [Value] = [], showsIDs: Bool = true) -> [UInt8] {
  var out = Array("{\"documents\":[".utf8)
  for (index, document) in documents.enumerated() {
    if index > 0 { out.append(UInt8(ascii: ",")) }
    out += JSON.render(.map(showsIDs ? document.withID : document.body))
  }
  out.append(UInt8(ascii: "]"))
  if !damaged.isEmpty { out += Array(",\"damaged\":".utf8) + JSON.render(.array(damaged)) }
  return out + Array("}".utf8)
}
