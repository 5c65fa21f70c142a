import Replication
import Seamesh

private let askParameter = Route.QueryParameter.flag(
  "ask", "true: peers in reach say first what they hold now; takes up to two seconds")

let receiptRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/partitions/{partition}/collections/{collection}/documents/{id}/receipts",
    name: "getDocumentReceipts",
    summary:
      "How safe a document is, living or deleted: which devices hold the changes that it stands on, by their own "
      + "signed word, and how old that is.",
    query: [askParameter], refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    let report = try surroundings.node.receipts(
      try request.partition(), request.collection, id: try request.documentID(),
      asking: try request.flag(askParameter.name))
    return .json(report.value)
  },
  Route(
    method: .get, template: "/v1/partitions/{partition}/receipts", name: "getPartitionReceipts",
    summary: "How safe everything is that counts in a partition.", query: [askParameter],
    refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    .json(
      try surroundings.node.receipts(try request.partition(), asking: try request.flag(askParameter.name)).value)
  },
]

extension ReceiptReport {
  var value: Value {
    .object([
      "partition": .text(partition), "collection": .optional(collection), "id": id ?? .null,
      "changes": .list(changes) { change in
        .object(["replica": .text(change.replica), "sequence": .int(Int64(clamping: change.sequence))])
      },
      "ofWholePartition": .bool(isOfWholePartition),
      "rungs": .object([
        "localDurable": .bool(true), "peers": .int(Int64(holders.count)), "relays": .int(Int64(relays.count)),
        "backend": .bool(!forwarders.isEmpty), "photos": .text(ReceiptReport.photos),
      ]),
      "words": .list(words) { word in
        .object([
          "device": .text(word.device), "label": .text(word.label), "user": .text(word.user), "role": .text(word.role),
          "isSelf": .bool(word.isSelf), "of": .text(word.isOfBackend ? "backend" : "device"),
          "lacking": .int(Int64(clamping: word.lacking)), "standing": .text(word.standing),
          "counts": .bool(word.counts), "ageMilliseconds": .int(word.ageMilliseconds),
        ])
      },
    ])
  }
}
