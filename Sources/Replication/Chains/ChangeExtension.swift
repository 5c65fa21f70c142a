/// What a change says beyond its fixed fields: the one door by which changes grow (`Docs/PROTOCOL.md`, "Extensions").
package struct ChangeExtension: Hashable, Sendable {
  /// The top bit says that a reader who does not know the rest must not count the change.
  package let type: UInt16
  package let content: [UInt8]

  package static let countLimit = 16
  /// Bytes of the contents of one change's extensions together.
  package static let byteLimit = 4096
  package static let criticalBit: UInt16 = 0x8000

  package init(type: UInt16, content: [UInt8]) { (self.type, self.content) = (type, content) }

  package init(_ origin: ChangeOrigin) { self.init(type: Registered.origin, content: origin.content) }

  package var isCritical: Bool { type & ChangeExtension.criticalBit != 0 }

  /// Whether this build cannot do what the author says matters (rule C4).
  package var isUnknownAndCritical: Bool { isCritical && type != Registered.origin }
}

extension ChangeExtension {
  /// The types that have a meaning and a content layout. Of these only ``origin`` is written and read yet; nothing
  /// informative is ever read by acceptance or merge.
  package enum Registered {
    /// Critical: what a re-issued change writes again (rule C22). See ``ChangeOrigin``.
    package static let origin: UInt16 = 0x8001
    /// Critical: the key that opens a sealed payload.
    package static let keyEpoch: UInt16 = 0x8002
    /// Critical: changes whose operations this change takes out of the merge.
    package static let retires: UInt16 = 0x8003

    package static let schemaVersion: UInt16 = 0x0001
    /// The user in whose name a service writes.
    package static let onBehalfOf: UInt16 = 0x0002
    /// Where the wall time came from, and how far it may be off.
    package static let wallSource: UInt16 = 0x0003
    /// What a derived change came from.
    package static let cause: UInt16 = 0x0004
  }
}

/// The first original of a re-issued change (rule C22).
package struct ChangeOrigin: Hashable, Sendable {
  package let dot: Dot
  package let hash: Digest

  package init(dot: Dot, hash: Digest) { (self.dot, self.hash) = (dot, hash) }

  /// From an extension's content: replica 16, sequence 8, chain hash 32. Nil for any other.
  package init?(_ content: some Collection<UInt8>) {
    let (names, tail) = (content.prefix(ReplicaID.byteCount), content.dropFirst(ReplicaID.byteCount))
    guard let replica = ReplicaID(names), let hash = Digest(tail.dropFirst(8)) else { return nil }
    var iterator = tail.makeIterator()
    let sequence = bigEndianWord(&iterator)
    guard sequence > 0, sequence < RunSummary.sequenceLimit else { return nil }
    self.init(dot: Dot(replica: replica, sequence: sequence), hash: hash)
  }

  var content: [UInt8] {
    var content = dot.replica.bytes
    appendBigEndian(dot.sequence, to: &content)
    hash.append(to: &content)
    return content
  }
}
