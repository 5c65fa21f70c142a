import Replication
import Wire

/// Finds the documents that are to be built anew where an accepted prefix fell, or rose where others had moved past it, and
/// has them built (rule M12). Walks logs: rare.
struct DocumentRebuild {
  let reader: RunReader
  let partition: PartitionState

  func run(_ moved: [LogChange], _ transaction: any LogTransaction) throws -> ChangedDocuments {
    try run(on: touched(by: moved, transaction), transaction)
  }

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

  /// Documents of every change above the lowest position that stayed, on whatever branch.
  private func touched(by moved: [LogChange], _ transaction: any LogTransaction) throws -> Set<DocumentKey> {
    var keys: Set<DocumentKey> = []
    for (replica, shared) in partition.log.lowestMoved(by: moved) {
      let chain = ChainIdentity(fleet: reader.fleet, partition: partition.id, replica: replica)
      for stored in try transaction.runs(of: chain, after: shared, byteLimit: .max) {
        keys.formUnion(
          try reader.documents(writtenBy: stored.body, in: partition.id, apart: transaction.largePayload))
      }
    }
    return keys.union(try naming(moved.reduce(into: []) { $0.formUnion($1.regrouped) }, transaction))
  }

  /// Documents of changes that name list elements by these dots, which go by others now. An honest author names an element
  /// where it was inserted, and that is touched anyway; but all nodes must show alike what any other author writes.
  private func naming(_ dots: Set<Dot>, _ transaction: any LogTransaction) throws -> [DocumentKey] {
    guard !dots.isEmpty else { return [] }
    var keys: [DocumentKey] = []
    for (replica, _) in partition.log.received.sorted {
      let chain = ChainIdentity(fleet: reader.fleet, partition: partition.id, replica: replica)
      var last: UInt64 = 0
      while case let runs = try transaction.runs(of: chain, after: last, byteLimit: DocumentRebuild.stepByteCount),
        let end = runs.last?.last
      {
        for run in runs { keys += try reader.documents(naming: dots, in: run, of: partition.id, transaction) }
        last = end
      }
    }
    return keys
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
