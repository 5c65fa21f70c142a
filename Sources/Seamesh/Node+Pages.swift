import Identity
import Replication
import Storage

/// Reading many documents: a page at a time, each lent a reader of its own. A pass may therefore take as long as it wants,
/// and whoever takes its pages slowly does not hold back the store's log (S2). What is written meanwhile may be in the later
/// pages and not in the earlier ones; a document is met once at the most.
extension Node {
  var limits: ReadLimits { configuration.reads }

  /// What a query finds. Stops as soon as the rest cannot change it, and reads named documents alone where it names ids.
  func result(
    of query: DocumentQuery, _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) -> FoundDocuments {
    var damaged: [Value] = []
    let share = resultTurns.share()
    func note(_ id: Value) throws(NodeError) {
      damaged.append(id)
      try limits.check(damaged: damaged.count)
    }
    if let ids = query.filter.possibleIDs {
      var collector = ResultCollector(query)
      try eachOf(ids, partition, collection, share, damaged: note) { document throws(NodeError) in
        try take(document, &collector, share)
      }
      return FoundDocuments(try collector.finish(limits), damaged: damaged, share: share)
    }
    let ranges = query.order.keyRanges
    var collector = ResultCollector(query, comesInOrder: ranges != nil)
    let needed = ranges == nil || !query.filter.matchesAll ? nil : query.limit
    for range in ranges ?? [.all] {
      let goesOn = try eachPage(partition, collection, range, firstPage: needed, share) { rows throws(NodeError) in
        for index in rows.indices.dropFirst(collector.passOver(atMost: rows.count)) {
          guard !collector.isComplete else { return false }
          let beside = rows[(index + 1)...]
          guard let document = try shown(rows[index], partition, collection, beside: beside, met: note) else {
            continue
          }
          try take(document, &collector, share)
        }
        return !collector.isComplete
      }
      guard goesOn else { break }
    }
    return FoundDocuments(try collector.finish(limits), damaged: damaged, share: share)
  }

  private func take(
    _ document: StoredDocument, _ collector: inout ResultCollector, _ share: ResultShare
  ) throws(NodeError) {
    collector.offer(document)
    try collector.check(limits)
    try share.grow(to: collector.heapBytes)
  }

  /// Living documents in key order, until `visit` answers false; answers whether it never did.
  ///
  /// - Parameters:
  ///   - firstPage: how many will do, if what they hold does.
  ///   - share: of the result that they are for.
  @discardableResult
  func eachPage(
    _ partition: PartitionName, _ collection: Text, _ range: KeyRange = .all, firstPage: Int? = nil,
    _ share: ResultShare? = nil,
    _ visit: ([DocumentRow]) throws(NodeError) -> Bool
  ) throws(NodeError) -> Bool {
    var count = max(1, min(firstPage ?? limits.pageDocuments, limits.pageDocuments))
    var last = range.after
    while true {
      let (from, limit, byteLimit) = (last, count, pageBytes(share))
      let rows = try reading { reader -> [DocumentRow] in
        guard let place = try self.place(partition, collection, reader) else { return [] }
        return try reader.documents(
          place.partition, place.collection, after: from, limit: limit, byteLimit: byteLimit)
      }
      guard let end = rows.last?.key else { return true }
      let isOver = range.below.map { !end.lexicographicallyPrecedes($0) } ?? false
      let inside = isOver ? rows.filter { $0.key.lexicographicallyPrecedes(range.below ?? []) } : rows
      guard try visit(inside) else { return false }
      if isOver { return true }
      (last, count) = (end, limits.pageDocuments)
    }
  }

  /// A result that has no turn yet holds little, its page included, for it may have to wait for one.
  private func pageBytes(_ share: ResultShare?) -> Int {
    share?.isLarge == false ? min(limits.pageBytes, ResultTurns.smallBytes) : limits.pageBytes
  }

  /// Those of some documents that live.
  func eachOf(
    _ ids: [Value], _ partition: PartitionName, _ collection: Text, _ share: ResultShare? = nil,
    damaged: (Value) throws(NodeError) -> Void, _ visit: (StoredDocument) throws(NodeError) -> Void
  ) throws(NodeError) {
    try eachRow(of: ids.map(\.canonicalBytes), partition, collection, share) { _, row throws(NodeError) in
      if let row, let document = try shown(row, partition, collection, met: damaged) { try visit(document) }
    }
  }

  /// What is there now under each of some keys; nil where nothing lives.
  func eachRow(
    of keys: [[UInt8]], _ partition: PartitionName, _ collection: Text, _ share: ResultShare? = nil,
    _ visit: ([UInt8], DocumentRow?) throws(NodeError) -> Void
  ) throws(NodeError) {
    var rest = keys[...]
    while !rest.isEmpty {
      let (asked, byteLimit) = (rest.prefix(limits.pageDocuments), pageBytes(share))
      // Fewer answers than were asked for where their states fill the page.
      let rows = try reading { reader -> [DocumentRow?] in
        guard let place = try self.place(partition, collection, reader) else { return asked.map { _ in nil } }
        var rows: [DocumentRow?] = []
        var bytes = 0
        for key in asked where bytes <= byteLimit {
          let row = try reader.document(place.partition, place.collection, key: key)
          bytes += row?.state.count ?? 0
          rows.append(row.flatMap { $0.isAlive ? $0 : nil })
        }
        return rows
      }
      for (key, row) in zip(asked, rows) { try visit(key, row) }
      rest = rest.dropFirst(max(1, rows.count))
    }
  }

  // MARK: One question

  func reading<Answer>(isRepeated: Bool = false, _ body: (StoreReader) throws -> Answer) throws(NodeError) -> Answer {
    let endings = readers.endings
    do {
      return try readers.read(within: limits.pageMilliseconds, body)
    } catch StoreError.interrupted where !readers.isStopped && readers.endings != endings && !isRepeated {
      // The log was to begin anew, and this question stood in its way.
      return try reading(isRepeated: true, body)
    } catch StoreError.interrupted where readers.isStopped {
      throw NodeError(.stopping, "the node is stopping")
    } catch {
      if let error = error as? StoreError { condition.noteRead(error) }
      throw NodeError(any: error)
    }
  }

  func number(_ partition: PartitionName, _ reader: StoreReader) throws(StoreError) -> PartitionNumber? {
    try reader.partitionNumber(partition.id(fleet: files.fleet, hash: SHA256.hash))
  }

  func place(
    _ partition: PartitionName, _ collection: Text, _ reader: StoreReader
  ) throws(StoreError) -> StoredPlace? {
    guard let number = try number(partition, reader), let collection = try reader.collectionNumber(collection) else {
      return nil
    }
    return StoredPlace(partition: number, collection: collection)
  }
}

/// Where the documents of one collection of one partition lie in the store.
struct StoredPlace {
  let partition: PartitionNumber
  let collection: CollectionNumber
}
