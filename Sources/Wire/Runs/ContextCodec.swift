import Replication

/// A run's context beside the run, in the form that its sender chose (rule C3).
package enum ContextCodec {
  /// Replicas in one context. A device starts a new replica on evidence only, so a fleet takes decades to get here.
  package static let entryLimit = RunSummary.contextEntryLimit

  static let whole: UInt64 = 0
  static let increments: UInt64 = 1

  /// In the shorter of both forms against a vector that both sides have at this place of the stream.
  package static func encode(_ context: VersionVector, base: VersionVector) -> [UInt8] {
    var writer = CBORWriter(reserving: 64)
    writer.context(ContextForm.shorter(context, base: base))
    return writer.bytes
  }

  /// - Parameter base: what the sender took as base; not looked at where the context is whole.
  package static func decode(_ bytes: ArraySlice<UInt8>, base: VersionVector) throws(CBORError) -> VersionVector {
    var reader = CBORReader(bytes)
    let form = try reader.readContext()
    try reader.finish()
    let context = form.resolved(on: base)
    guard context.count <= entryLimit else { throw CBORError(.tooLong, at: bytes.startIndex) }
    return context
  }
}

extension CBORWriter {
  package mutating func context(_ form: ContextForm) {
    arrayHeader(2)
    switch form {
    case .full(let vector):
      unsigned(ContextCodec.whole)
      self.vector(vector)
    case .increments(let increments):
      unsigned(ContextCodec.increments)
      arrayHeader(increments.count)
      for increment in increments { self.increment(increment) }
    }
  }

  /// A vector by itself: its entries in replica byte order.
  package mutating func vector(_ vector: VersionVector) {
    arrayHeader(vector.count)
    for (replica, position) in vector.sorted {
      increment(ContextForm.Increment(replica: replica, position: position))
    }
  }

  /// An entry that goes has no tip.
  private mutating func increment(_ increment: ContextForm.Increment) {
    let goes = increment.position.sequence == 0
    arrayHeader(goes ? 2 : 3)
    replica(increment.replica)
    unsigned(increment.position.sequence)
    if !goes { tip(increment.position.tip) }
  }
}

extension CBORReader {
  package mutating func readContext() throws(CBORError) -> ContextForm {
    try readArrayHeader(count: 2)
    let start = offset
    switch try readUnsigned() {
    case ContextCodec.whole: return .full(try readVector())
    case ContextCodec.increments: return .increments(try readIncrements(removing: true))
    default: throw CBORError(.outOfRange, at: start)
    }
  }

  /// A vector by itself; with `removing` one of increments, whose entries of sequence 0 go.
  package mutating func readVector(
    removing: Bool = false, limit: Int = ContextCodec.entryLimit
  ) throws(CBORError) -> VersionVector {
    let entries = try readIncrements(removing: removing, limit: limit)
    return VersionVector(entries.map { (replica: $0.replica, position: $0.position) })
  }

  private mutating func readIncrements(
    removing: Bool, limit: Int = ContextCodec.entryLimit
  ) throws(CBORError) -> [ContextForm.Increment] {
    let start = offset
    let count = try readArrayHeader()
    guard count <= limit else { throw CBORError(.tooLong, at: start) }
    var entries: [ContextForm.Increment] = []
    entries.reserveCapacity(count)
    for _ in 0..<count {
      let entryStart = offset
      let fieldCount = try readArrayHeader()
      guard fieldCount == 3 || (fieldCount == 2 && removing) else { throw CBORError(.wrongLength, at: entryStart) }
      let replica = try readReplica()
      if let previous = entries.last?.replica, replica <= previous { throw CBORError(.keyOrder, at: entryStart) }
      let position = fieldCount == 3 ? try readPosition() : try readRemoval()
      entries.append(ContextForm.Increment(replica: replica, position: position))
    }
    return entries
  }

  private mutating func readPosition() throws(CBORError) -> ChainPosition {
    ChainPosition(sequence: try readOrdinal(), tip: try readTip())
  }

  private mutating func readRemoval() throws(CBORError) -> ChainPosition {
    let start = offset
    guard try readUnsigned() == 0 else { throw CBORError(.outOfRange, at: start) }
    return ChainPosition(sequence: 0, tip: .zero)
  }
}
