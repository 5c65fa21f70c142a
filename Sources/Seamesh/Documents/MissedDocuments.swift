import Engine
import Identity
import Replication
import Storage

extension DocumentReader {
  /// Canonical ids of those of a place, as ``documents(of:writtenAfter:)-(PartitionID,_)`` tells them.
  func documents(
    of place: ChangedDocuments.Place, writtenAfter position: LogPosition
  ) throws(NodeError) -> Set<[UInt8]>? {
    try documents(of: place.partition, writtenAfter: position).map { keys in
      Set(keys.lazy.filter { $0.collection == place.collection }.map(\.id))
    }
  }

  /// Documents of a partition that runs have written since `position`: all that changed, and perhaps some that did not. Nil
  /// where the log does not tell what changed, or so much that the partition is better read anew.
  func documents(
    of partition: PartitionID, writtenAfter position: LogPosition
  ) throws(NodeError) -> Set<DocumentKey>? {
    let reader = RunReader(fleet: fleet, hash: SHA256.hash)
    var missed = Missed(end: position.arrival)
    while missed.documents <= limits.missedDocuments, missed.bytes <= limits.missedBytes {
      let last = missed.end
      let tellsAll = try reading { store in
        try self.read(&missed, since: position, partition, reader, store)
      }
      guard tellsAll else { return nil }
      if missed.end == last { return missed.keys }
    }
    return nil
  }

  private struct Missed {
    var keys: Set<DocumentKey> = []
    var documents = 0
    var bytes = 0
    /// The last run that was read.
    var end: Int64
  }

  /// A page of the log. False where it does not tell all.
  private func read(
    _ missed: inout Missed, since position: LogPosition, _ partition: PartitionID, _ reader: RunReader,
    _ store: StoreReader
  ) throws -> Bool {
    guard try store.logEnd().arrival - position.arrival <= limits.missedRuns,
      let number = try store.partitionNumber(partition),
      try store.runsTellAll(of: number, since: position)
    else { return false }
    do {
      for run in try store.runs(of: number, cameAfter: missed.end, byteLimit: limits.pageBytes) {
        let written = try reader.documents(writtenBy: run.body, in: partition, apart: store.largePayload)
        missed.keys.formUnion(written)
        missed.documents += written.count
        missed.bytes += run.body.count
        missed.end = run.arrival
      }
      return true
    } catch let failure where DamagedLog.isOfOneRow(failure) {
      // A run, or a payload that travelled apart from one, is not as it was written.
      return false
    }
  }
}
