import Replication

/// All documents that match a query, in its order, while documents change one by one. What a change costs does not grow
/// with the result but for a search in it and the moving of its rows.
struct LiveRows {
  /// What one document's change did to the result. Positions count in the result as it is after the change, those from
  /// which a document went in the result before it.
  enum Move: Equatable {
    case inserted(StoredDocument, at: Int)
    case updated(StoredDocument, at: Int, from: Int)
    case deleted(Value, from: Int)
  }

  /// A document as the query shows it, and what it is ordered by, which may be of fields that are not shown.
  struct Row {
    let key: DocumentOrder.Key
    let document: StoredDocument

    var heapBytes: Int { document.heapBytes + key.heapBytes }
  }

  private let query: DocumentQuery
  private var rows: [Row] = []
  /// Of each row, by its document's canonical id.
  private var keys: [[UInt8]: DocumentOrder.Key] = [:]
  /// Over the documents of the rows.
  private(set) var sum = ResultSum()
  private(set) var heapBytes = 0

  /// - Parameter rows: in any order, one of each document.
  init(_ query: DocumentQuery, _ rows: some Sequence<Row>) {
    self.query = query
    self.rows = rows.sorted { query.order.precedes($0.key, $1.key) }
    for row in self.rows {
      keys[row.document.id.canonicalBytes] = row.key
      count(row)
    }
  }

  /// Refuses to hold more than a live result may.
  func check(_ limits: ReadLimits) throws(NodeError) { try limits.check(documents: rows.count, bytes: heapBytes) }

  private mutating func count(_ row: Row) {
    sum.add(row.document)
    heapBytes += row.heapBytes
  }

  private mutating func discount(_ row: Row) {
    sum.remove(row.document)
    heapBytes -= row.heapBytes
  }

  /// As the query shows them.
  var documents: [StoredDocument] { rows.map(\.document) }
  /// Canonical ids of the rows.
  var ids: Set<[UInt8]> { Set(keys.keys) }

  /// Takes in what a document is now; nil where it is gone, or matches no more. Nil where the result stays as it is.
  mutating func take(_ id: [UInt8], _ row: Row?) -> Move? {
    let old = keys[id].map(index)
    guard let row else {
      guard let old else { return nil }
      keys[id] = nil
      let gone = rows.remove(at: old)
      discount(gone)
      return .deleted(gone.document.id, from: old)
    }
    if let old {
      guard rows[old].document.etag != row.document.etag else { return nil }
      discount(rows.remove(at: old))
    }
    count(row)
    let new = index(of: row.key)
    rows.insert(row, at: new)
    keys[id] = row.key
    return if let old { .updated(row.document, at: new, from: old) } else { .inserted(row.document, at: new) }
  }

  /// The first row that does not precede `key`: the order is total, so that a row's own key leads to it.
  private func index(of key: DocumentOrder.Key) -> Int {
    var range = rows.indices
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      range = query.order.precedes(rows[middle].key, key) ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }
}

extension LiveRows.Row {
  /// Nil where the document does not match.
  init?(_ document: StoredDocument, _ query: DocumentQuery) {
    guard query.filter.matches(id: document.id, document.body) else { return nil }
    self.init(key: query.order.key(id: document.id, document.body), document: query.project(document))
  }
}
