import Replication

/// A run's context beside the run: whole, or as what differs from a vector that both sides have at this place of the
/// stream, whichever is shorter. Which form was used is not part of any hash (rule C3).
package enum ContextCodec {
  /// Replicas in one context. A device starts a new replica on evidence only, so a fleet takes decades to get here.
  package static let entryLimit = 4096

  private static let whole: UInt64 = 0
  private static let increments: UInt64 = 1

  package static func encode(_ context: VersionVector, base: VersionVector) -> [UInt8] {
    var writer = CBORWriter(reserving: 64)
    let changed = context.sorted.filter { base[$0.replica] != $0.position }
    let vanished = base.entries.keys.filter { context[$0] == nil }
    writer.arrayHeader(2)
    if changed.count + vanished.count < context.count {
      writer.unsigned(increments)
      writer.increments(changed, vanished: vanished)
    } else {
      writer.unsigned(whole)
      writer.arrayHeader(context.count)
      for entry in context.sorted { writer.contextEntry(entry.replica, entry.position) }
    }
    return writer.bytes
  }

  /// - Parameter base: what the sender took as base; not looked at where the context is whole.
  package static func decode(_ bytes: ArraySlice<UInt8>, base: VersionVector) throws(CBORError) -> VersionVector {
    var reader = CBORReader(bytes)
    let context = try read(&reader, base: base)
    try reader.finish()
    return context
  }

  package static func read(_ reader: inout CBORReader, base: VersionVector) throws(CBORError) -> VersionVector {
    try reader.readArrayHeader(count: 2)
    let start = reader.offset
    switch try reader.readUnsigned() {
    case whole: return try reader.readContextEntries(onto: VersionVector(), removing: false)
    case increments: return try reader.readContextEntries(onto: base, removing: true)
    default: throw CBORError(.outOfRange, at: start)
    }
  }
}

extension CBORWriter {
  /// A vector by itself: its entries in replica byte order.
  package mutating func vector(_ vector: VersionVector) {
    arrayHeader(vector.count)
    for entry in vector.sorted { contextEntry(entry.replica, entry.position) }
  }

  fileprivate mutating func contextEntry(_ replica: ReplicaID, _ position: ChainPosition) {
    arrayHeader(3)
    self.replica(replica)
    unsigned(position.sequence)
    tip(position.tip)
  }

  fileprivate mutating func increments(
    _ changed: [(replica: ReplicaID, position: ChainPosition)], vanished: [ReplicaID]
  ) {
    let removals = vanished.map { (replica: $0, position: ChainPosition?.none) }
    let entries = (changed.map { (replica: $0.replica, position: Optional($0.position)) } + removals)
      .sorted { $0.replica < $1.replica }
    arrayHeader(entries.count)
    for entry in entries {
      if let position = entry.position {
        contextEntry(entry.replica, position)
      } else {
        arrayHeader(2)
        replica(entry.replica)
        unsigned(0 as UInt64)
      }
    }
  }
}

extension CBORReader {
  /// A vector by itself, of at most ``ContextCodec/entryLimit`` entries.
  package mutating func readVector() throws(CBORError) -> VersionVector {
    try readContextEntries(onto: VersionVector(), removing: false)
  }

  fileprivate mutating func readContextEntries(
    onto base: VersionVector, removing: Bool
  ) throws(CBORError) -> VersionVector {
    let start = offset
    let count = try readArrayHeader()
    guard count <= ContextCodec.entryLimit else { throw CBORError(.tooLong, at: start) }
    var entries = base.entries
    var previous: ReplicaID?
    for _ in 0..<count {
      let entryStart = offset
      let fieldCount = try readArrayHeader()
      guard fieldCount == 3 || (fieldCount == 2 && removing) else { throw CBORError(.wrongLength, at: entryStart) }
      let replica = try readReplica()
      if let previous, replica <= previous { throw CBORError(.keyOrder, at: entryStart) }
      previous = replica
      entries[replica] = fieldCount == 3 ? try readPosition() : try readRemoval()
    }
    guard entries.count <= ContextCodec.entryLimit else { throw CBORError(.tooLong, at: start) }
    return VersionVector(entries)
  }

  private mutating func readPosition() throws(CBORError) -> ChainPosition {
    ChainPosition(sequence: try readOrdinal(), tip: try readTip())
  }

  private mutating func readRemoval() throws(CBORError) -> ChainPosition? {
    let start = offset
    guard try readUnsigned() == 0 else { throw CBORError(.outOfRange, at: start) }
    return nil
  }
}
