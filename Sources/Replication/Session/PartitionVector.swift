/// What a node holds of one partition, or a part of it: vectors of any size travel in messages of bounded size.
package struct PartitionVector: Sendable, Equatable {
  package var name: PartitionName
  package var vector: VersionVector
  /// The next message of this kind on the session goes on with this partition, at a higher replica.
  package var hasMore: Bool
  /// With `pull`, in its last part: large payloads of which the first bytes are here already.
  package var staged: [StagedPayload]
  /// With `pull`: the mark of what its receiver told. The vector then says how it differs from that, as increments of a
  /// context do: an entry of sequence 0 goes.
  package var base: UInt64?

  /// Entries of one message.
  package static let entryLimit = 4_096
  /// Entries of a vector that was put together: as many replicas as a partition may have.
  package static let wholeEntryLimit = RunSummary.contextEntryLimit
  package static let stagedLimit = 64

  package init(
    name: PartitionName, vector: VersionVector, hasMore: Bool = false, staged: [StagedPayload] = [],
    base: UInt64? = nil
  ) {
    (self.name, self.vector, self.hasMore, self.staged, self.base) = (name, vector, hasMore, staged, base)
  }

  /// In messages that a receiver takes: what is beyond ``wholeEntryLimit`` is not told.
  package var parts: [PartitionVector] {
    guard vector.count > Self.entryLimit, base == nil else { return [self] }
    let entries = vector.sorted.prefix(Self.wholeEntryLimit)
    return stride(from: 0, to: entries.count, by: Self.entryLimit).map { start in
      let part = entries[start..<min(start + Self.entryLimit, entries.count)]
      let isLast = part.endIndex == entries.count
      return PartitionVector(
        name: name, vector: VersionVector(Dictionary(part.map { ($0.replica, $0.position) }) { first, _ in first }),
        hasMore: !isLast, staged: isLast ? staged : [])
    }
  }

  /// Lists of vectors that fit a message each.
  package static func batches(_ vectors: [PartitionVector]) -> [[PartitionVector]] {
    var batches: [[PartitionVector]] = []
    var entries = entryLimit
    for part in vectors.lazy.flatMap(\.parts) {
      // A partition costs at least what an entry does.
      let size = max(part.vector.count, 1)
      if entries + size > entryLimit {
        batches.append([])
        entries = 0
      }
      entries += size
      batches[batches.count - 1].append(part)
    }
    return batches
  }
}

/// A vector that comes in parts, until its last is here. At most one per session.
struct PartialVector: Sendable {
  /// Which kind of message it comes in, and for a pull the number of the stream.
  enum Carrier: Sendable, Equatable {
    case vectors
    case pull(UInt64)
    case have
  }

  let carrier: Carrier
  private(set) var whole: PartitionVector
  private var last: ReplicaID?

  /// Nil where a vector so long can only be a mistake.
  init?(_ first: PartitionVector, in carrier: Carrier) {
    (self.carrier, whole) = (carrier, first)
    last = first.vector.entries.keys.max()
    guard last != nil else { return nil }
  }

  /// False where it does not go on from what is here.
  mutating func append(_ part: PartitionVector, in carrier: Carrier) -> Bool {
    guard carrier == self.carrier, part.name == whole.name, part.base == nil,
      let lowest = part.vector.entries.keys.min(), let last, lowest > last,
      whole.vector.count + part.vector.count <= PartitionVector.wholeEntryLimit
    else { return false }
    for (replica, position) in part.vector.entries { whole.vector[replica] = position }
    self.last = part.vector.entries.keys.max()
    (whole.staged, whole.hasMore) = (part.staged, part.hasMore)
    return true
  }
}
