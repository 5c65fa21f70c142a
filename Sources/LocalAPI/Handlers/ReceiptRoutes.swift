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
    query: [askParameter], result: .json(ReceiptReport.schema), refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    let report = try surroundings.node.receipts(
      try request.partition(), request.collection, id: try request.documentID(),
      asking: try request.flag(askParameter.name))
    return .json(report.value)
  },
  Route(
    method: .get, template: "/v1/partitions/{partition}/receipts", name: "getPartitionReceipts",
    summary: "How safe everything is that counts in a partition.", query: [askParameter],
    result: .json(ReceiptReport.schema), refusals: [.notFound, .notPermitted, .unprocessable]
  ) { request, surroundings in
    .json(
      try surroundings.node.receipts(try request.partition(), asking: try request.flag(askParameter.name)).value)
  },
]

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
