import Replication
import Storage

extension DocumentReader {
  func find(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest
  ) throws(NodeError) -> FoundDocuments {
    try checkMayShow(partition)
    return try result(of: DocumentQuery(request), partition, collection)
  }

  /// What a query finds. Stops as soon as the rest cannot change it, and reads named documents alone where it names ids.
  func result(
    of query: DocumentQuery, _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) -> FoundDocuments {
    let (rows, damaged, isOneState, share) = try rows(of: query, partition, collection)
    return FoundDocuments(rows.map(\.document), damaged: damaged, isOneState: isOneState, share: share)
  }

  /// The same, with what the documents are ordered by.
  func rows(
    of query: DocumentQuery, _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) -> (found: [LiveRows.Row], damaged: [Value], isOneState: Bool, share: ResultShare) {
    let share = resultTurns.share()
    let (found, isOneState) = try inOneState(partition, collection, share) { pass throws(NodeError) in
      try self.collect(query, &pass)
    }
    return (found.rows, found.damaged, isOneState, share)
  }

  private func collect(
    _ query: DocumentQuery, _ pass: inout DocumentPass
  ) throws(NodeError) -> (rows: [LiveRows.Row], damaged: [Value]) {
    let (share, partition, collection) = (pass.share, pass.partition, pass.collection)
    var damaged: [Value] = []
    func note(_ id: Value) throws(NodeError) {
      damaged.append(id)
      try limits.check(damaged: damaged.count)
    }
    if let ids = query.filter.possibleIDs {
      var collector = ResultCollector(query)
      try pass.eachOf(ids, damaged: note) { document throws(NodeError) in
        try take(document, &collector, share)
      }
      return (try collector.finish(limits), damaged)
    }
    let ranges = query.order.keyRanges
    var collector = ResultCollector(query, comesInOrder: ranges != nil)
    let needed = ranges == nil || !query.filter.matchesAll ? nil : query.limit
    for range in ranges ?? [.all] {
      let goesOn = try pass.eachPage(range, firstPage: needed) { rows throws(NodeError) in
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
    return (try collector.finish(limits), damaged)
  }

  private func take(
    _ document: StoredDocument, _ collector: inout ResultCollector, _ share: ResultShare?
  ) throws(NodeError) {
    collector.offer(document)
    try collector.check(limits)
    try share?.grow(to: collector.heapBytes)
  }

  /// Runs a pass so that all of it is of one state of the store, and says whether it is.
  ///
  /// Page by page at first, which holds nothing back, and is enough where the partition took nothing in meanwhile. Otherwise
  /// once more over one snapshot, where that takes no longer than ``ReadLimits/oneStateMilliseconds``. A collection that is too
  /// large for that and written to is told as it was met.
  func inOneState<Result>(
    _ partition: PartitionName, _ collection: Text, _ share: ResultShare,
    _ collect: (inout DocumentPass) throws(NodeError) -> Result
  ) throws(NodeError) -> (Result, isOneState: Bool) {
    let began = ContinuousClock.now
    do {
      var pass = DocumentPass(self, partition, collection, share)
      let found = try collect(&pass)
      let isLong = (.now - began) / .milliseconds(1) > Double(limits.oneStateMilliseconds)
      if pass.isOneState || isLong { return (found, pass.isOneState) }
    }
    // Nobody is to wait for a turn with a reader in hand.
    try share.takeTurn()
    if let found = try ofOneSnapshot(partition, collection, share, collect) { return (found, true) }
    var pass = DocumentPass(self, partition, collection, share)
    let found = try collect(&pass)
    return (found, pass.isOneState)
  }

  /// Nil where the snapshot had to be let go of before the end.
  private func ofOneSnapshot<Result>(
    _ partition: PartitionName, _ collection: Text, _ share: ResultShare,
    _ collect: (inout DocumentPass) throws(NodeError) -> Result
  ) throws(NodeError) -> Result? {
    do {
      return try inPageTurn {
        try readers.read(within: limits.oneStateMilliseconds) { reader in
          try reader.snapshot { reader in
            var pass = DocumentPass(self, partition, collection, share, of: reader)
            do throws(NodeError) {
              return try collect(&pass)
            } catch {
              if pass.wasInterrupted { throw StoreError.interrupted }
              throw error
            }
          }
        }
      }
    } catch StoreError.interrupted where !readers.isStopped {
      return nil
    } catch {
      throw refusal(of: error)
    }
  }

  func export(
    _ partition: PartitionName, collection: Text?, visit: (Text, StoredDocument) -> Bool
  ) throws(NodeError) {
    try checkMayShow(partition)
    let collections = try reading { reader in
      guard let number = try self.number(partition, reader) else { return [Text]() }
      return try reader.collections(of: number).map(\.name).filter { collection == nil || $0 == collection }
    }
    for name in collections {
      var pass = DocumentPass(self, partition, name)
      let goesOn = try pass.eachPage { rows throws(NodeError) in
        try checkMayShow(partition)
        for (index, row) in rows.enumerated() {
          let document = try shown(row, partition, name, beside: rows[(index + 1)...]) { _ in }
          if let document, !visit(name, document) { return false }
        }
        return true
      }
      guard goesOn else { return }
    }
  }
}
