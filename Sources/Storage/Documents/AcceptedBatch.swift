import Replication
import Wire

/// Newly accepted changes in order of delivery, as far as documents are concerned: what a fold takes in.
///
/// Flat, since a first sync brings hundreds of thousands: an object for each change costs as much as writing it.
package struct AcceptedBatch: Sendable {
  /// Of one run: what all its writes have in common.
  struct Source: Sendable {
    let partition: PartitionNumber
    let replica: ReplicaID
    let context: VersionVector
    let sight: Sight
    /// The buffer in which the views' ranges lie.
    let buffer: ArraySlice<UInt8>
    /// Of the run whose body ``buffer`` is, as it lies in the log; nil where it lies elsewhere.
    let arrival: Int64?
    /// Index behind its last write.
    let end: Int
  }

  private(set) var sources: [Source] = []
  private(set) var writes: [PlacedWrite] = []

  package init(_ changes: [AcceptedChange] = []) {
    for change in changes { append(change) }
  }

  /// The writes of one run, in payload order.
  package mutating func append(
    _ writes: [PlacedWrite], of replica: ReplicaID, in partition: PartitionNumber, context: VersionVector,
    sight: Sight, buffer: ArraySlice<UInt8>, arrival: Int64? = nil
  ) {
    self.writes += writes
    sources.append(
      Source(
        partition: partition, replica: replica, context: context, sight: sight, buffer: buffer, arrival: arrival,
        end: self.writes.count))
  }

  package mutating func append(_ change: AcceptedChange) {
    let context = change.context
    for view in change.documents {
      writes.append(PlacedWrite(sequence: context.dot.sequence, timestamp: context.timestamp, view: view))
    }
    sources.append(
      Source(
        partition: change.partition, replica: context.dot.replica, context: context.context,
        sight: context.sight, buffer: change.payload, arrival: nil, end: writes.count))
  }

  /// One of the writes, decoded for a merge.
  func write(_ index: Int, of source: Source) throws(StoreError) -> AcceptedWrite {
    let placed = writes[index]
    let context = WriteContext(
      dot: Dot(replica: source.replica, sequence: placed.sequence), timestamp: placed.timestamp,
      context: source.context, sight: source.sight)
    return try AcceptedWrite(context, placed.view, in: source.buffer)
  }
}

extension AcceptedWrite {
  /// Decodes what lies in `buffer` at `view`.
  init(_ context: WriteContext, _ view: DocumentWriteView, in buffer: ArraySlice<UInt8>) throws(StoreError) {
    do throws(PayloadError) {
      let operations = try PayloadDecoder.decodeOperations(buffer[view.operations], dot: context.dot)
      self.init(
        context,
        DocumentWrite(
          collection: view.collection(in: buffer), id: try view.id(in: buffer), kind: view.kind,
          generation: view.generation, operations: operations))
    } catch {
      throw .damaged("payload of change \(context.dot.sequence): \(error)")
    }
  }
}
