import Engine
import Replication
import Wire

extension DocumentFold {
  /// Where a rebuild takes its changes from.
  package struct Log: Sendable {
    package let fleet: FleetID
    package let partition: PartitionID
    package let number: PartitionNumber
    package let hash: HashFunction
    package let formats: KnownFormats

    package init(
      fleet: FleetID, partition: PartitionID, number: PartitionNumber, hash: @escaping HashFunction,
      formats: KnownFormats = .all
    ) {
      (self.fleet, self.partition, self.number) = (fleet, partition, number)
      (self.hash, self.formats) = (hash, formats)
    }
  }

  /// Bytes of runs looked at between two visits to SQLite.
  private static let stepByteLimit = 4 * 1024 * 1024

  /// Makes documents anew from all accepted changes (M12): where an accepted prefix fell, or a change came to count that
  /// others had already moved past. One that no accepted change touches any more is taken away.
  ///
  /// Walks the partition's whole log, so hand over all documents of one cause at once.
  ///
  /// - Parameters:
  ///   - accepted: how far each chain counts, *after* what is the cause.
  ///   - context: what a change sees, from its header, its chain hash and its run's context; nil where the change has no effect (a
  ///     re-issue of which another counts, rule C22).
  package static func rebuild(
    _ documents: Set<DocumentKey>, of log: Log, in transaction: borrowing Transaction, accepted: VersionVector,
    context: (ReplicaID, ChangeHeader, Digest, VersionVector) -> WriteContext?
  ) throws(StoreError) -> FoldReport {
    let sorted = documents.sorted()
    var writes: [DocumentKey: [AcceptedWrite]] = [:]
    let wanted = Set(sorted.map { $0.hash(in: log.partition, log.hash) })
    for chain in try transaction.chains(of: log.number) {
      try collect(
        chain, upTo: accepted.sequence(of: chain.replica), of: log, in: transaction, wanted: wanted, context
      ) { key, write in
        if documents.contains(key) { writes[key, default: []].append(write) }
      }
    }
    var report = FoldReport(keys: sorted.flatMap(\.id), capacity: sorted.count)
    var start = 0
    for key in sorted {
      let collection = try transaction.number(ofCollection: key.collection)
      let outcome = try restore(key, collection, writes[key] ?? [], log.number, transaction)
      report.append(
        outcome, scope: FoldBatch.Scope(partition: log.number, collection: collection),
        key: start..<start + key.id.count)
      start += key.id.count
    }
    return report
  }

  private static func restore(
    _ key: DocumentKey, _ collection: CollectionNumber, _ writes: [AcceptedWrite], _ partition: PartitionNumber,
    _ transaction: borrowing Transaction
  ) throws(StoreError) -> FoldReport.Outcome {
    let row = try transaction.document(partition, collection, key: key.id)
    let state = DocumentState.merged(of: writes)
    if !writes.isEmpty {
      try transaction.store(state, row, partition, collection, key: key.id)
    } else if let row {
      try transaction.remove(row, in: partition)
    }
    return FoldReport.Outcome(wasAlive: row?.isAlive ?? false, isAlive: state.isAlive)
  }

  /// Visits the writes of one chain's accepted changes whose documents may be wanted: key hashes are 16 bytes, and the
  /// visitor looks again.
  ///
  /// Runs come in order of their last change, but on a forked chain one that ends above `last` may hold changes up to it:
  /// the search ends where no run is long enough for that.
  private static func collect(
    _ chain: StoredChain, upTo last: UInt64, of log: Log, in transaction: borrowing Transaction, wanted: Set<KeyHash>,
    _ context: (ReplicaID, ChangeHeader, Digest, VersionVector) -> WriteContext?,
    _ visit: (DocumentKey, AcceptedWrite) -> Void
  ) throws(StoreError) {
    var done: UInt64 = 0
    while done < last || done - last < UInt64(Run.changeLimit) - 1, last > 0 {
      let runs = try transaction.runs(of: chain.number, after: done, byteLimit: stepByteLimit)
      guard let end = runs.last?.last else {
        guard done < last else { return }
        throw .damagedLog("the log ends at change \(done) of a chain that is accepted up to \(last)")
      }
      for run in runs where run.first <= last {
        let decoded = try decode(run, of: chain.replica, in: log)
        for (index, change) in decoded.changes.enumerated() where change.header.sequence <= last {
          guard change.header.keyHashes.contains(where: wanted.contains),
            let seen = context(chain.replica, change.header, decoded.hashes[index], run.context)
          else { continue }
          let accepted = try acceptedChange(change, decoded.contents[index], seen, in: run, of: log, transaction)
          for place in accepted.documents.indices {
            let write = try accepted.write(place)
            visit(DocumentKey(collection: write.write.collection, id: write.write.id), write)
          }
        }
      }
      done = end
    }
  }

  private static func decode(
    _ run: StoredRun, of replica: ReplicaID, in log: Log
  ) throws(StoreError) -> DecodedRun {
    do throws(RunError) {
      return try RunCodec.decode(
        run.body[...], fleet: log.fleet, partition: log.partition, formats: log.formats, hash: log.hash)
    } catch {
      throw .damagedRun(DamagedRun(replica: replica, first: run.first, last: run.last, arrival: run.arrival))
    }
  }

  private static func acceptedChange(
    _ change: Change, _ content: DecodedRun.Content, _ context: WriteContext, in run: StoredRun, of log: Log,
    _ transaction: borrowing Transaction
  ) throws(StoreError) -> AcceptedChange {
    switch content {
    case .documents(let scan):
      return AcceptedChange(
        partition: log.number, context: context, payload: change.payload, documents: scan.documents)
    case .held, .absent: throw .damagedLog("change \(context.dot.sequence) counts, but is not understood")
    case .apart:
      guard let payload = try transaction.intactPayload(change.header.payloadHash) else {
        throw .damagedPayload(
          of: DamagedRun(replica: context.dot.replica, first: run.first, last: run.last, arrival: run.arrival))
      }
      do throws(RunError) {
        let scan = try RunCodec.scanApart(
          payload[...], of: change.header, at: context.dot, partition: log.partition, hash: log.hash)
        return AcceptedChange(
          partition: log.number, context: context, payload: payload[...], documents: scan.documents)
      } catch {
        throw .damagedLog("payload of change \(context.dot.sequence): \(error)")
      }
    }
  }
}
