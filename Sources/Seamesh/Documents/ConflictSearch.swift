import Engine
import Identity
import Replication
import Storage

/// Looks for conflicts, document by document, until a page is full.
struct ConflictSearch {
  private let authority: Authority
  private let limits: ReadLimits
  private let limit: Int
  private var bytes = 0
  private var page = ConflictPage()

  private init(_ authority: Authority, _ limits: ReadLimits, limit: Int) {
    (self.authority, self.limits, self.limit) = (authority, limits, limit)
  }

  static func page(
    of partition: PartitionName, _ query: ConflictQuery, _ documents: DocumentReader, _ authority: Authority
  ) throws(NodeError) -> ConflictPage {
    try documents.checkMayShow(partition)
    let start = try query.after.map { text throws(NodeError) in try ConflictCursor(text).key }
    var search = ConflictSearch(
      authority, documents.limits, limit: min(max(1, query.limit), ConflictQuery.greatestLimit))
    let collections = try documents.reading { reader in
      try documents.number(partition, reader).map { number throws(StoreError) in
        try reader.collections(of: number).map(\.name)
      } ?? []
    }
    for collection in collections {
      if let start, collection < start.collection { continue }
      var last = start?.collection == collection ? start?.id : nil
      while true {
        guard !search.isOver else { return search.page }
        let (from, limit) = (last, search.documentsLeft)
        let rows = try documents.readingPage { reader -> [DocumentRow] in
          guard let place = try documents.place(partition, collection, reader) else { return [] }
          return try reader.documents(
            place.partition, place.collection, after: from, limit: limit, byteLimit: documents.limits.pageBytes,
            withDeleted: true)
        }
        guard let end = rows.last?.key else { break }
        try documents.checkMayShow(partition)
        for (index, row) in rows.enumerated() where !search.isOver {
          let beside = rows[(index + 1)...]
          try search.look(
            at: try documents.content(of: row, partition, collection, beside: beside), row.key, in: collection)
        }
        last = end
      }
    }
    search.page.next = nil
    return search.page
  }

  private var isOver: Bool {
    page.conflicts.count >= limit || bytes >= limits.conflictBytes || page.examined >= limits.conflictDocuments
  }

  /// Of the next page of the store.
  private var documentsLeft: Int { min(limits.pageDocuments, max(1, limits.conflictDocuments - page.examined)) }

  /// One that does not read is passed over: there is no telling what it holds.
  private mutating func look(at content: RowContent, _ id: [UInt8], in collection: Text) throws(NodeError) {
    let key = DocumentKey(collection: collection, id: id)
    (page.examined, page.next) = (page.examined + 1, ConflictCursor(key).text)
    guard case .state(let row, let state) = content else { return }
    let decisions = state.openDecisions()
    guard !decisions.isEmpty, let id = Value(canonicalID: row.key) else { return }
    bytes += row.state.count
    let etag = DocumentETag.of(row.state, SHA256.hash)
    let writes = ShownWrites(state)
    var told = 0
    for (index, decision) in decisions.enumerated() {
      guard told < DocumentState.toldConflicts else {
        page.untold += decisions.count - index
        return
      }
      told += decision.conflicts.count
      var status = ConflictStatus()
      status.id = ConflictID(key: key, etag: etag, number: index + 1).text
      (status.collection, status.document, status.isDeleted) = (collection.string, id, !state.isAlive)
      (status.place, status.shown) = (decision.place.places.string, decision.shown)
      status.shownBy = writes.last(at: decision.place).map { writer($0.dot, $0.timestamp) }
      status.values = decision.conflicts.map(candidate)
      page.conflicts.append(status)
    }
  }

  private func candidate(_ conflict: Conflict) -> ConflictStatus.Candidate {
    var value = ConflictStatus.Candidate()
    (value.path, value.kind, value.value) = (conflict.path.places.string, "\(conflict.kind)", conflict.value)
    value.writer = writer(conflict.dot, conflict.timestamp)
    return value
  }

  private func writer(_ dot: Dot, _ timestamp: HybridTimestamp) -> ConflictStatus.Writer {
    var writer = ConflictStatus.Writer()
    (writer.replica, writer.sequence) = (dot.replica.text, dot.sequence)
    writer.writtenMilliseconds = Int64(clamping: timestamp.milliseconds)
    guard let author = authority.author(of: dot.replica) else { return writer }
    writer.device = DeviceID(author).text
    let membership = authority.member(of: author)?.membership
    (writer.label, writer.user) = (membership?.label.string ?? "", membership?.user.string ?? "")
    return writer
  }
}
