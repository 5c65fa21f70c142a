import Replication
import Seamesh

let subscriptionRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/subscriptions", name: "listSubscriptions",
    summary: "What this node wants: names of partitions, and prefixes with * at their end.",
    result: .json(.listing("subscriptions", of: .string))
  ) { _, surroundings in
    .json(.object(["subscriptions": .list(try surroundings.node.subscriptions()) { .string($0) }]))
  },
  Route(
    method: .put, template: "/v1/subscriptions/{pattern}", name: "subscribe",
    summary: "Wants a partition, or with a * at the end all whose names begin so; `notes` tell what stands in the way.",
    result: .json(
      .object([
        .required("pattern", .string), .required("subscribed", .boolean), .required("notes", .array(of: .string)),
      ])), refusals: [.unprocessable]
  ) { request, surroundings in
    let pattern = try checkedPattern(request)
    let notes = try surroundings.node.subscribe(pattern)
    return .json(
      .object(["pattern": .string(pattern), "subscribed": .bool(true), "notes": .list(notes) { .text($0) }]))
  },
  Route(
    method: .delete, template: "/v1/subscriptions/{pattern}", name: "unsubscribe",
    summary: "Wants it no longer; what is held stays.",
    result: .json(.object([.required("pattern", .string), .required("subscribed", .boolean)])),
    refusals: [.notFound, .unprocessable]
  ) { request, surroundings in
    let pattern = try checkedPattern(request)
    try surroundings.node.unsubscribe(pattern)
    return .json(.object(["pattern": .string(pattern), "subscribed": .bool(false)]))
  },
]

private func checkedPattern(_ request: Request) throws(Problem) -> Text {
  let pattern = request.parameter("pattern")
  guard pattern.utf8.count <= PartitionName.byteLimit else {
    throw .limit(.unprocessable, "the pattern", PartitionName.byteLimit, unit: "bytes")
  }
  return pattern
}
