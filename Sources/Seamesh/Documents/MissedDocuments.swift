import Engine
import Identity
import Replication
import Storage

extension Node {
  /// Canonical ids of documents of a place that runs have written since `position`: of all that changed, and perhaps of
  /// some that did not. Nil where the log does not tell what changed, or so many that the place is better read anew.
  func documents(
    of place: ChangedDocuments.Place, writtenAfter position: LogPosition
  ) throws(NodeError) -> Set<[UInt8]>? {
    let reader = RunReader(fleet: files.fleet, hash: SHA256.hash)
    var missed = Missed(end: position.arrival)
    while missed.documents <= limits.missedDocuments, missed.bytes <= limits.missedBytes {
      let last = missed.end
      let tellsAll = try reading { store in
        try self.read(&missed, since: position, place, reader, store)
      }
      guard tellsAll else { return nil }
      if missed.end == last { return missed.ids }
    }
    return nil
  }

  private struct Missed {
    var ids: Set<[UInt8]> = []
    var documents = 0
    var bytes = 0
    /// The last run that was read.
    var end: Int64
  }

  /// A page of the log. False where it does not tell all.
  private func read(
    _ missed: inout Missed, since position: LogPosition, _ place: ChangedDocuments.Place, _ reader: RunReader,
    _ store: StoreReader
  ) throws -> Bool {
    guard try store.logEnd().arrival - position.arrival <= limits.missedRuns,
      let number = try store.partitionNumber(place.partition),
      try store.runsTellAll(of: number, since: position)
    else { return false }
    for run in try store.runs(of: number, cameAfter: missed.end, byteLimit: limits.pageBytes) {
      let written = try reader.documents(writtenBy: run.body, in: place.partition, apart: store.largePayload)
      for key in written where key.collection == place.collection { missed.ids.insert(key.id) }
      missed.documents += written.count
      missed.bytes += run.body.count
      missed.end = run.arrival
    }
    return true
  }
}
