import Replication

/// A compiled ``FindRequest``: filter, then order, skip, limit and projection, in this order.
package struct DocumentQuery: Sendable {
  package let filter: Filter
  package let order: DocumentOrder
  package let skip: Int
  /// Nil for all. As in MongoDB, a request's limit of 0 means all.
  package let limit: Int?
  package let projection: Projection?

  package init(_ request: FindRequest) throws(NodeError) {
    guard request.skip >= 0, request.limit ?? 0 >= 0 else {
      throw NodeError(.badRequest, "skip and limit cannot be negative.")
    }
    filter = try Filter(request.filter)
    order = try DocumentOrder(request.sort)
    skip = request.skip
    limit = request.limit == 0 ? nil : request.limit
    if let fields = request.projection { projection = try Projection(fields) } else { projection = nil }
  }

  /// Part of what matches: which part depends on documents outside of it.
  package var isWindow: Bool { skip > 0 || limit != nil }

  package func run(_ documents: some Sequence<StoredDocument>) -> [StoredDocument] {
    var collector = ResultCollector(self)
    for document in documents { collector.offer(document) }
    return collector.finish()
  }

  package func project(_ document: StoredDocument) -> StoredDocument {
    guard let projection else { return document }
    return StoredDocument(id: document.id, body: projection.apply(document.body), etag: document.etag)
  }
}

/// Takes documents one by one in any order and keeps no more of them than about twice the result.
package struct ResultCollector {
  /// Sorting less often than this costs more memory than it saves time.
  private static let slack = 1_000

  private let query: DocumentQuery
  private var kept: [(key: DocumentOrder.Key, document: StoredDocument)] = []

  package init(_ query: DocumentQuery) { self.query = query }

  package mutating func offer(_ document: StoredDocument) {
    guard query.filter.matches(id: document.id, document.body) else { return }
    kept.append((query.order.key(id: document.id, document.body), document))
    guard let wanted, kept.count / 2 >= wanted, kept.count - wanted > ResultCollector.slack else { return }
    sort()
  }

  package mutating func finish() -> [StoredDocument] {
    sort()
    return kept.dropFirst(query.skip).map { query.project($0.document) }
  }

  /// Documents from the first on that the result can still come from.
  private var wanted: Int? {
    guard let limit = query.limit else { return nil }
    let (sum, isHuge) = query.skip.addingReportingOverflow(limit)
    return isHuge ? nil : sum
  }

  private mutating func sort() {
    kept.sort { query.order.precedes($0.key, $1.key) }
    if let wanted, kept.count > wanted { kept.removeSubrange(wanted...) }
  }
}
