/// How far a chain is known: the number of its last change and the first 16 bytes of the chain hash there.
package struct ChainPosition: Hashable, Sendable {
  package let sequence: UInt64
  package let tip: TipHash
  package init(sequence: UInt64, tip: TipHash) { (self.sequence, self.tip) = (sequence, tip) }
}

/// Highest change known per replica, for one partition. A missing entry is zero.
///
/// The order is partial, so this is not `Comparable`. Tip hashes ride along (design: equal numbers with different
/// histories must be seen at once); comparing looks at the numbers alone.
package struct VersionVector: Hashable, Sendable {
  package private(set) var entries: [ReplicaID: ChainPosition]

  package init(_ entries: [ReplicaID: ChainPosition] = [:]) { self.entries = entries }

  package subscript(replica: ReplicaID) -> ChainPosition? {
    get { entries[replica] }
    set { entries[replica] = newValue }
  }

  package var isEmpty: Bool { entries.isEmpty }
  package var count: Int { entries.count }

  /// Zero where nothing is known of a replica.
  package func sequence(of replica: ReplicaID) -> UInt64 { entries[replica]?.sequence ?? 0 }

  package func covers(_ dot: Dot) -> Bool { dot.sequence <= sequence(of: dot.replica) }

  /// Entries in replica byte order: the one order in which a vector is hashed, sent and shown.
  package var sorted: [(replica: ReplicaID, position: ChainPosition)] {
    entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// The entry-wise maximum; at equal numbers the receiver's own tip stays.
  package mutating func join(_ other: VersionVector) {
    for (replica, position) in other.entries where position.sequence > sequence(of: replica) {
      entries[replica] = position
    }
  }

  /// Digest over the sorted entries: `tag · (replica 16 · sequence 8 · tip 16)…`.
  package func digest(_ tag: DomainTag, _ hash: HashFunction) -> Digest { digest(behind: tag.bytes, hash) }

  /// Of a partition with digest `digest`, of which this is held above limits: `tag · digest 32 · (replica …)…`.
  package func digest(besideHeld digest: Digest, _ hash: HashFunction) -> Digest {
    self.digest(behind: DomainTag.above.bytes + digest.bytes, hash)
  }

  private func digest(behind beginning: [UInt8], _ hash: HashFunction) -> Digest {
    var input = beginning
    input.reserveCapacity(beginning.count + entries.count * 40)
    for (replica, position) in sorted {
      replica.append(to: &input)
      appendBigEndian(position.sequence, to: &input)
      position.tip.append(to: &input)
    }
    return Digest.of(input, hash)
  }
}
