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

/// Takes documents one by one and keeps little more of them than the result.
package struct ResultCollector {
  /// Sorting less often than this costs more memory than it saves time.
  private static let slack = 1_000

  private struct Kept {
    let row: LiveRows.Row
    let byteCount: Int
  }

  private let query: DocumentQuery
  /// Documents come in the query's order: nothing is sorted, and what is skipped is not kept.
  private let comesInOrder: Bool
  private var kept: [Kept] = []
  /// Once there are as many as are wanted: what does not precede it is no part of the result.
  private var bound: DocumentOrder.Key?
  /// Only counted where documents come in order.
  private var skipped = 0
  private var keptBytes = 0

  package init(_ query: DocumentQuery, comesInOrder: Bool = false) {
    (self.query, self.comesInOrder) = (query, comesInOrder)
  }

  package mutating func offer(_ document: StoredDocument) {
    guard query.filter.matches(id: document.id, document.body) else { return }
    if comesInOrder, skipped < query.skip {
      skipped += 1
      return
    }
    let key = query.order.key(id: document.id, document.body)
    if let bound, !query.order.precedes(key, bound) { return }
    let row = LiveRows.Row(key: key, document: query.project(document))
    // A key may hold what the projection leaves out.
    let byteCount = comesInOrder ? row.document.heapBytes : row.heapBytes
    kept.append(Kept(row: row, byteCount: byteCount))
    keptBytes += byteCount
    guard let wanted, kept.count - wanted > ResultCollector.slack else { return }
    sort()
  }

  /// No further document can change the result.
  package var isComplete: Bool { comesInOrder && wanted.map { kept.count >= $0 } ?? false }

  /// Documents to come that need not be looked at: the query skips them whatever they are.
  package mutating func passOver(atMost count: Int) -> Int {
    guard comesInOrder, query.filter.matchesAll else { return 0 }
    let passed = min(count, query.skip - skipped)
    skipped += passed
    return passed
  }

  /// Refuses a result beyond its bounds, rather than to cut it short. The bound in documents is for those alone who named
  /// none themselves.
  package mutating func check(_ limits: ReadLimits) throws(NodeError) {
    if let wanted, !comesInOrder, kept.count > wanted {
      // What a sort would drop does not count. Done at a quarter above the bound, so that it is not done for each document.
      guard keptBytes > limits.resultBytes + limits.resultBytes / 4 else { return }
      sort()
    }
    try limits.check(documents: query.limit == nil ? kept.count - offset : 0, bytes: keptBytes)
  }

  mutating func finish(_ limits: ReadLimits) throws(NodeError) -> [LiveRows.Row] {
    sort()
    try limits.check(documents: query.limit == nil ? kept.count - offset : 0, bytes: keptBytes)
    return rows
  }

  fileprivate mutating func finish() -> [StoredDocument] {
    sort()
    return rows.map(\.document)
  }

  /// Of all that is kept.
  var heapBytes: Int { keptBytes }

  private var rows: [LiveRows.Row] { kept.dropFirst(offset).map(\.row) }

  /// Of the kept documents so many stand before the result.
  private var offset: Int { comesInOrder ? 0 : min(query.skip, kept.count) }

  /// Documents from the first kept one on that the result can still come from.
  private var wanted: Int? {
    guard let limit = query.limit else { return nil }
    let (sum, isHuge) = (comesInOrder ? 0 : query.skip).addingReportingOverflow(limit)
    return isHuge ? nil : sum
  }

  private mutating func sort() {
    if !comesInOrder { kept.sort { query.order.precedes($0.row.key, $1.row.key) } }
    guard let wanted, kept.count > wanted else { return }
    for dropped in kept[wanted...] { keptBytes -= dropped.byteCount }
    kept.removeSubrange(wanted...)
    if !comesInOrder { bound = kept.last?.row.key }
  }
}
