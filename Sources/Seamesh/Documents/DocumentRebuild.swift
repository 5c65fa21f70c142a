import Identity
import Replication
import Storage
import Wire

/// Finds the documents that are to be built anew where an accepted prefix fell, or rose where others had moved past it, and
/// builds them (rule M12). Walks logs: rare.
struct DocumentRebuild {
  let fleet: FleetID
  let partition: PartitionID
  let number: PartitionNumber
  let state: PartitionState

  func run(_ moved: [LogChange], _ transaction: borrowing Transaction) throws -> FoldReport {
    let log = DocumentFold.Log(fleet: fleet, partition: partition, number: number, hash: SHA256.hash)
    return try DocumentFold.rebuild(
      try touched(by: moved, transaction), of: log, in: transaction, accepted: state.log.accepted
    ) { replica, header, hash, context in
      let dot = Dot(replica: replica, sequence: header.sequence)
      guard state.log.hasEffect(hash, at: dot) else { return nil }
      return WriteContext(
        dot: dot, timestamp: header.timestamp, context: context,
        ceilings: state.log.ceilings(of: context, author: dot))
    }
  }

  /// Documents of every change above the lowest position that stayed, on whatever branch.
  private func touched(
    by moved: [LogChange], _ transaction: borrowing Transaction
  ) throws -> Set<DocumentKey> {
    var keys: Set<DocumentKey> = []
    for (replica, shared) in state.log.lowestMoved(by: moved) {
      guard let chain = try transaction.chainNumber(number, replica) else { continue }
      for stored in try transaction.runs(of: chain, after: shared, byteLimit: .max) {
        let run = try RunCodec.decode(stored.body[...], fleet: fleet, partition: partition, hash: SHA256.hash)
        for change in try RunContent(run, payloads: transaction).contents {
          for view in change.documents { keys.insert(try view.key(in: change.payload)) }
        }
      }
    }
    return keys
  }
}
