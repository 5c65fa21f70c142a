import Replication
import Seamesh

private let askParameter = Route.QueryParameter.flag(
  "ask", "true: peers in reach say first what they hold now; takes up to two seconds")

private let watchAskParameter = Route.QueryParameter.flag(
  "ask", "true: peers in reach are asked what they hold, every two seconds as long as one of them lacks something")

private let partitionTemplate = "/v1/partitions/{partition}/receipts"
private let documentTemplate = "/v1/partitions/{partition}/collections/{collection}/documents/{id}/receipts"

let receiptRoutes: [Route] = [
  Route(
    method: .get, template: documentTemplate, name: "getDocumentReceipts",
    summary:
      "How safe a document is, living or deleted: which devices hold the changes that it stands on, by their own "
      + "signed word, and how old that is.",
    query: [askParameter], result: .json(ReceiptReport.schema), refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    let report = try surroundings.node.receipts(
      try request.partition(), request.collection, id: try request.documentID(),
      asking: try request.flag(askParameter.name))
    return .json(report.value)
  },
  Route(
    method: .get, template: partitionTemplate, name: "getPartitionReceipts",
    summary: "How safe everything is that counts in a partition.", query: [askParameter],
    result: .json(ReceiptReport.schema), refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    .json(
      try surroundings.node.receipts(try request.partition(), asking: try request.flag(askParameter.name)).value)
  },
  Route(
    method: .get, template: documentTemplate + "/watch", name: "watchDocumentReceipts",
    summary: "The same as server-sent events: at once, and again whenever something but an age has changed.",
    query: [watchAskParameter], result: .events(ReceiptEvents.described),
    refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    let document = ReceiptPlace.Document(request.collection, id: try request.documentID())
    return try receiptEvents(ReceiptPlace(try request.partition(), document), request, surroundings)
  },
  Route(
    method: .get, template: partitionTemplate + "/watch", name: "watchPartitionReceipts",
    summary: "How safe everything is that counts in a partition, as server-sent events.", query: [watchAskParameter],
    result: .events(ReceiptEvents.described), refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    try receiptEvents(ReceiptPlace(try request.partition()), request, surroundings)
  },
]

private func receiptEvents(
  _ place: ReceiptPlace, _ request: Request, _ surroundings: Surroundings
) throws -> Response {
  let asking = try request.flag(watchAskParameter.name)
  return try .events(
    ReceiptEvents(try surroundings.node.watchReceipts(place, asking: asking)), request, surroundings)
}

/// Events of a receipt that is followed.
private final class ReceiptEvents: EventSource {
  static let described: [(name: String, data: Schema)] = [("receipts", ReceiptReport.schema), ("error", .problem)]

  private let subscription: any ReceiptSubscription

  init(_ subscription: any ReceiptSubscription) { self.subscription = subscription }

  func next(timeoutMilliseconds: Int) throws(NodeError) -> [UInt8]? {
    try subscription.next(timeoutMilliseconds: timeoutMilliseconds).map { serverSentEvent("receipts", $0.value) }
  }

  func cancel() { subscription.cancel() }
}

extension ReceiptReport: Tabled {
  static let table: [Member<ReceiptReport>] = [
    Member("partition", \.partition), Member("collection", \.collection),
    Member("id", \.id, .nullable(.documentID)), Member("changes", \.changes),
    Member("ofWholePartition", \.isOfWholePartition),
    Member("rungs", rungs) { report in
      .object([
        "localDurable": .bool(true), "peers": report.holders.count.value, "relays": report.relays.count.value,
        "backend": .bool(!report.forwarders.isEmpty), "photos": .text(ReceiptReport.photos),
      ])
    },
    Member("words", \.words),
  ]

  private static let rungs = Schema.object([
    .required("localDurable", .boolean), .required("peers", .count), .required("relays", .count),
    .required("backend", .boolean), .required("photos", .string),
  ])
}

extension ReceiptReport.Change: Tabled {
  static let table: [Member<ReceiptReport.Change>] = [
    Member("replica", \.replica, .hexadecimal), Member("sequence", \.sequence),
  ]
}

extension ReceiptReport.Word: Tabled {
  static let table: [Member<ReceiptReport.Word>] = [
    Member("device", \.device), Member("label", \.label), Member("user", \.user), Member("role", \.role),
    Member("isSelf", \.isSelf),
    Member("of", .oneOf(["backend", "device"])) { .text($0.isOfBackend ? "backend" : "device") },
    Member("lacking", \.lacking),
    Member("standing", .oneOf(Receipt.Standing.allCases.map(\.rawValue))) { $0.standing.rawValue.value },
    Member("counts", \.counts), Member("ageMilliseconds", \.ageMilliseconds),
  ]
}
