import Replication

/// How contexts lie in the log: entries of replica 16, sequence 8 and tip 16 bytes, in replica order. A context is
/// written out in full, or as its differences from a full one of its partition; sequence 0 takes an entry away.
///
/// Differences always refer to a full context, never to one another, so that any run is resolved with one more look-up.
enum StoredContext {
  /// Runs that refer to one full context, at the most, so that differences stay small.
  static let fullInterval = 32
  static let entryByteCount = 40

  static func encode(_ context: VersionVector) -> [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(context.count * entryByteCount)
    for (replica, position) in context.sorted { append(replica, position, to: &out) }
    return out
  }

  /// What leads from `base` to `context`.
  static func encode(_ context: VersionVector, from base: VersionVector) -> [UInt8] {
    var out: [UInt8] = []
    let differences = context.differing(from: base)
    for (replica, position) in differences { if let position { append(replica, position, to: &out) } }
    for (replica, position) in differences where position == nil {
      append(replica, ChainPosition(sequence: 0, tip: .zero), to: &out)
    }
    return out
  }

  /// Nil where the bytes are not whole entries.
  static func decode(_ bytes: [UInt8], onto base: VersionVector = VersionVector()) -> VersionVector? {
    guard bytes.count.isMultiple(of: entryByteCount) else { return nil }
    var context = base
    bytes.withUnsafeBytes { bytes in
      func word(_ offset: Int) -> UInt64 {
        UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      }
      for start in stride(from: 0, to: bytes.count, by: entryByteCount) {
        let replica = ReplicaID(high: word(start), low: word(start + 8))
        let (sequence, tip) = (word(start + 16), TipHash(high: word(start + 24), low: word(start + 32)))
        context[replica] = sequence == 0 ? nil : ChainPosition(sequence: sequence, tip: tip)
      }
    }
    return context
  }

  private static func append(_ replica: ReplicaID, _ position: ChainPosition, to out: inout [UInt8]) {
    replica.append(to: &out)
    appendBigEndian(position.sequence, to: &out)
    position.tip.append(to: &out)
  }
}
