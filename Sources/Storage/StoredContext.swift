import Replication

/// How contexts lie in the log: entries of replica 16, sequence 8 and tip 16 bytes, in replica order. A context is
/// written out in full, or as its differences from the last full one of its chain; sequence 0 takes an entry away.
///
/// Differences always refer to a full context, never to one another, so that any run is resolved with one more look-up.
enum StoredContext {
  /// Runs of a chain after which a full context is written again, so that differences stay small.
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
    if context == base { return [] }
    var out: [UInt8] = []
    for (replica, position) in context.sorted where base[replica] != position { append(replica, position, to: &out) }
    for (replica, _) in base.sorted where context[replica] == nil {
      append(replica, ChainPosition(sequence: 0, tip: .zero), to: &out)
    }
    return out
  }

  /// Nil where the bytes are not whole entries.
  static func decode(_ bytes: [UInt8], onto base: VersionVector = VersionVector()) -> VersionVector? {
    guard bytes.count.isMultiple(of: entryByteCount) else { return nil }
    var context = base
    for start in stride(from: 0, to: bytes.count, by: entryByteCount) {
      let entry = bytes[start..<start + entryByteCount]
      guard let replica = ReplicaID(entry.prefix(16)), let tip = TipHash(entry.suffix(16)) else { return nil }
      let sequence = entry.dropFirst(16).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      context[replica] = sequence == 0 ? nil : ChainPosition(sequence: sequence, tip: tip)
    }
    return context
  }

  private static func append(_ replica: ReplicaID, _ position: ChainPosition, to out: inout [UInt8]) {
    replica.append(to: &out)
    appendBigEndian(position.sequence, to: &out)
    position.tip.append(to: &out)
  }
}
