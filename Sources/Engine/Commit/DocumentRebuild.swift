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
        keys.formUnion(try reader.documents(writtenBy: run.body, in: partition.id, apart: transaction.largePayload))
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
    for (replica, _) in partition.log.received.sorted {
      try forEachRun(of: replica, after: 0, log, &unread) { _ in }
    }
    return unread
  }

  /// In steps. Where one does not read, the others of its step are read one by one, without their contexts.
  private func forEachRun(
    of replica: ReplicaID, after sequence: UInt64, _ log: any LogReading,
    _ unread: inout [any StoreFailure], _ visit: (LogRun) throws -> Void
  ) throws {
    let chain = ChainIdentity(fleet: reader.fleet, partition: partition.id, replica: replica)
    var last = sequence
    while true {
      do {
        let runs = try log.runs(of: chain, after: last, byteLimit: DocumentRebuild.stepByteCount)
        guard let end = runs.last?.last else { return }
        try runs.forEach(visit)
        last = end
      } catch let failure where DamagedLog.isOfOneRow(failure) {
        let places = try log.places(of: chain, after: last, limit: DocumentRebuild.stepPlaceCount)
        guard let end = places.last?.last else { throw failure }
        for place in places {
          do {
            try visitBody(at: place, of: chain, log, visit)
          } catch let failure where DamagedLog.isOfOneRow(failure) {
            unread.append(failure as? any StoreFailure ?? DamagedLog("\(failure)"))
          }
        }
        last = end
      }
    }
  }

  private func visitBody(
    at place: RunPlace, of chain: ChainIdentity, _ log: any LogReading, _ visit: (LogRun) throws -> Void
  ) throws {
    guard let body = try log.body(at: place, of: chain) else { return }
    let first = try RunCodec.beginning(of: body[...]).first
    try visit(LogRun(arrival: place.arrival, first: first, last: place.last, context: VersionVector(), body: body))
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
  private static let stepPlaceCount = 1_024
}
