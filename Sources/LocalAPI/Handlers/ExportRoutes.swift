import Replication
import Seamesh

let exportRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/partitions/{partition}/documents", name: "exportPartition",
    summary:
      "Every document of a partition, in key order, as lines {\"collection\":…,\"document\":{…}}. Those that are "
      + "damaged on this device are left out; /v1/damaged names them.",
    result: .lines(
      of: .object([.required("collection", .string(from: 1)), .required("document", .document)])),
    refusals: [.notPermitted, .unprocessable]
  ) { request, surroundings in
    try export(request, surroundings, collection: nil)
  },
  Route(
    method: .get, template: "/v1/partitions/{partition}/collections/{collection}/documents", name: "exportCollection",
    summary:
      "Every document of a collection, in key order, as JSON lines. Those that are damaged on this device are left "
      + "out; /v1/damaged names them.", result: .lines(of: .document),
    refusals: [.notPermitted, .unprocessable]
  ) { request, surroundings in
    try export(request, surroundings, collection: request.collection)
  },
]

private func export(_ request: Request, _ surroundings: Surroundings, collection: Text?) throws -> Response {
  let (partition, node) = (try request.partition(), surroundings.node)
  return try piped("export", request, surroundings) { lines throws(NodeError) in
    try node.export(partition, collection: collection) { name, document in
      lines.append(JSON.render(collection == nil ? named(name, document) : .map(document.withID)))
    }
  }
}

private func named(_ collection: Text, _ document: StoredDocument) -> Value {
  .object(["collection": .string(collection), "document": .map(document.withID)])
}

/// Answers with lines while they are made. What fails before the first chunk is a problem; what fails after it cuts the
/// connection, so that nobody takes half an answer for a whole one.
func piped(
  _ label: String, _ request: Request, _ surroundings: Surroundings,
  _ work: @escaping @Sendable (inout LineBuffer) throws(NodeError) -> Void
) throws(NodeError) -> Response {
  let pipe = ChunkPipe()
  surroundings.streams.produce(label) {
    var lines = LineBuffer(pipe)
    do throws(NodeError) {
      try work(&lines)
      pipe.finish(lines.flush() ? .complete : .broken(nil))
    } catch {
      pipe.finish(.broken(error))
    }
  }
  let stream = PipedStream(pipe, socket: request.socket, supervisor: surroundings.streams)
  try stream.begin()
  return .stream(stream, type: .lines)
}
