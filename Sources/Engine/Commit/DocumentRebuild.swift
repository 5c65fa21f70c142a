import Replication
import Wire

/// Finds the documents that are to be built anew where an accepted prefix fell, or rose where others had moved past it, and
/// has them built (rule M12). Walks logs: rare.
struct DocumentRebuild {
  let reader: RunReader
  let partition: PartitionState

  func run(on documents: Set<DocumentKey>, _ transaction: any LogTransaction) throws -> ChangedDocuments {
    // A run that is held moves none: nothing is to be looked for, and nobody has to read anew.
    guard !documents.isEmpty else { return ChangedDocuments() }
    let log = partition.log
    let rebuilding = Rebuilding(
      partition: partition.id, fleet: reader.fleet, hash: reader.hash, formats: reader.formats,
      accepted: log.accepted
    ) { replica, header, hash, context in
      let dot = Dot(replica: replica, sequence: header.sequence)
      guard log.hasEffect(hash, at: dot) else { return nil }
      return WriteContext(
        dot: dot, timestamp: header.timestamp, context: context, sight: log.sight(of: context, author: dot))
    }
    return try transaction.rebuild(documents, by: rebuilding)
  }

  /// Documents of every change above the lowest position that stayed, on whatever branch; and why runs were left out that do
  /// not read.
  func touched(
    by moved: [LogChange], _ transaction: any LogTransaction
  ) throws -> (documents: Set<DocumentKey>, unread: [any StoreFailure]) {
    var keys: Set<DocumentKey> = []
    var unread: [any StoreFailure] = []
    for (replica, shared) in partition.log.lowestMoved(by: moved) {
      try forEachRun(of: replica, after: shared, transaction, &unread) { run in
        keys.formUnion(try reader.documents(writtenBy: run, of: partition.id, transaction))
      }
    }
    let regrouped = moved.reduce(into: Set<Dot>()) { $0.formUnion($1.regrouped) }
    guard !regrouped.isEmpty else { return (keys, unread) }
    // Documents of changes that name list elements by these dots, which go by others now. An honest author names an element
    // where it was inserted, and that is touched anyway; but all nodes must show alike what any other author writes.
    for (replica, _) in partition.log.received.sorted {
      try forEachRun(of: replica, after: 0, transaction, &unread) { run in
        keys.formUnion(try reader.documents(naming: regrouped, in: run, of: partition.id, transaction))
      }
    }
    return (keys, unread)
  }

  /// Why runs do not read, of all chains.
  func unread(_ log: any LogReading) throws -> [any StoreFailure] {
    var unread: [any StoreFailure] = []
    for replica in partition.log.storedChains { try forEachRun(of: replica, after: 0, log, &unread) { _ in } }
    return unread
  }

  private func forEachRun(
    of replica: ReplicaID, after sequence: UInt64, _ log: any LogReading,
    _ unread: inout [any StoreFailure], _ visit: (LogRun) throws -> Void
  ) throws {
    let chain = ChainIdentity(fleet: reader.fleet, partition: partition.id, replica: replica)
    unread += try StoredRuns(of: chain, in: log).visit(after: sequence, visit)
  }

  /// What any run that is stored has seen.
  func contexts(_ transaction: any LogTransaction) throws -> VersionVector {
    var joined = VersionVector()
    for (replica, _) in partition.log.received.sorted {
      let chain = ChainIdentity(fleet: reader.fleet, partition: partition.id, replica: replica)
      var last: UInt64 = 0
      while case let runs = try transaction.runs(of: chain, after: last, byteLimit: DocumentRebuild.stepByteCount),
        let end = runs.last?.last
      {
        for run in runs { joined.join(run.context) }
        last = end
      }
    }
    return joined
  }

  private static let stepByteCount = 4 * 1024 * 1024
}
