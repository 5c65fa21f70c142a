import Replication
import Storage

/// One pass over documents of one collection of a partition, a page at a time. Each page is lent a reader of its own, or all
/// are read by one that stands on a snapshot: without it a pass may take as long as it wants, and whoever takes its pages
/// slowly does not hold back the store's log (S2). A document is met once at the most.
struct DocumentPass {
  let partition: PartitionName
  let collection: Text
  /// Of the result that it is for.
  let share: ResultShare?
  private let documents: DocumentReader
  private let snapshot: StoreReader?
  /// What the partition had taken in when the first page was read, and where the log was at the latest look.
  private var beginning: (chains: [StoredChain], log: LogPosition)?
  /// Nothing was taken in between its pages.
  private(set) var isOneState = true
  /// The time of its snapshot was over, or the store's log was to begin anew.
  private(set) var wasInterrupted = false

  init(
    _ documents: DocumentReader, _ partition: PartitionName, _ collection: Text, _ share: ResultShare? = nil,
    of snapshot: StoreReader? = nil
  ) {
    (self.documents, self.partition, self.collection) = (documents, partition, collection)
    (self.share, self.snapshot) = (share, snapshot)
  }

  private var limits: ReadLimits { documents.limits }

  /// Living documents in key order, until `visit` answers false; answers whether it never did.
  ///
  /// - Parameter firstPage: how many will do, if what they hold does.
  @discardableResult
  mutating func eachPage(
    _ range: KeyRange = .all, firstPage: Int? = nil, _ visit: ([DocumentRow]) throws(NodeError) -> Bool
  ) throws(NodeError) -> Bool {
    var count = max(1, min(firstPage ?? limits.pageDocuments, limits.pageDocuments))
    var last = range.after
    while true {
      let (from, limit, byteLimit) = (last, count, pageBytes)
      let rows = try page { reader, place in
        try reader.documents(place.partition, place.collection, after: from, limit: limit, byteLimit: byteLimit)
      }
      guard let rows, let end = rows.last?.key else { return true }
      let isOver = range.below.map { !end.lexicographicallyPrecedes($0) } ?? false
      let inside = isOver ? rows.filter { $0.key.lexicographicallyPrecedes(range.below ?? []) } : rows
      guard try visit(inside) else { return false }
      if isOver { return true }
      (last, count) = (end, limits.pageDocuments)
    }
  }

  /// Those of some documents that live.
  mutating func eachOf(
    _ ids: [Value], damaged: (Value) throws(NodeError) -> Void, _ visit: (StoredDocument) throws(NodeError) -> Void
  ) throws(NodeError) {
    let (documents, partition, collection) = (documents, partition, collection)
    try eachRow(of: ids.map(\.canonicalBytes)) { _, row throws(NodeError) in
      if let row, let document = try documents.shown(row, partition, collection, met: damaged) { try visit(document) }
    }
  }

  /// What is there now under each of some keys; nil where nothing lives.
  mutating func eachRow(
    of keys: [[UInt8]], _ visit: ([UInt8], DocumentRow?) throws(NodeError) -> Void
  ) throws(NodeError) {
    var rest = keys[...]
    while !rest.isEmpty {
      let (asked, byteLimit) = (rest.prefix(limits.pageDocuments), pageBytes)
      // Fewer answers than were asked for where their states fill the page.
      let rows = try page { reader, place in
        var rows: [DocumentRow?] = []
        var bytes = 0
        for key in asked where bytes <= byteLimit {
          let row = try reader.document(place.partition, place.collection, key: key)
          bytes += row?.state.count ?? 0
          rows.append(row.flatMap { $0.isAlive ? $0 : nil })
        }
        return rows
      }
      for (key, row) in zip(asked, rows ?? asked.map { _ in nil }) { try visit(key, row) }
      rest = rest.dropFirst(max(1, rows?.count ?? asked.count))
    }
  }

  /// A result that has no turn yet holds little, its page included, for it may have to wait for one.
  private var pageBytes: Int {
    share?.isLarge == false ? min(limits.pageBytes, limits.smallResultBytes) : limits.pageBytes
  }

  /// Nil where there is no such collection.
  private mutating func page<Rows>(
    _ read: (StoreReader, StoredPlace) throws -> Rows
  ) throws(NodeError) -> Rows? {
    if let snapshot { return try page(of: snapshot, read) }
    let (documents, partition, collection) = (documents, partition, collection)
    var (beginning, isOneState) = (beginning, isOneState)
    defer { (self.beginning, self.isOneState) = (beginning, isOneState) }
    return try documents.readingPage { reader in
      try reader.snapshot { reader in
        let log = try reader.logEnd()
        if beginning?.log != log {
          let chains = try documents.number(partition, reader).map { try reader.chains(of: $0) } ?? []
          isOneState = isOneState && beginning.map { $0.chains == chains } ?? true
          beginning = (beginning?.chains ?? chains, log)
        }
        return try documents.place(partition, collection, reader).map { try read(reader, $0) }
      }
    }
  }

  private mutating func page<Rows>(
    of snapshot: StoreReader, _ read: (StoreReader, StoredPlace) throws -> Rows
  ) throws(NodeError) -> Rows? {
    do {
      try snapshot.checkTime()
      return try documents.place(partition, collection, snapshot).map { try read(snapshot, $0) }
    } catch {
      if case StoreError.interrupted = error { wasInterrupted = true }
      throw NodeError(any: error)
    }
  }
}
