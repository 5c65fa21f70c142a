import Replication

/// A number in a chain and the first 16 bytes of the hash there.
package struct NaivePosition: Hashable, Sendable {
  package let sequence: UInt64
  package let tip: TipHash

  package init(sequence: UInt64, tip: TipHash) { (self.sequence, self.tip) = (sequence, tip) }

  /// Before the first change.
  static let start = NaivePosition(sequence: 0, tip: TipHash(high: 0, low: 0))
  /// Nothing bounds.
  static let endless = NaivePosition(sequence: .max, tip: TipHash(high: 0, low: 0))

  /// C14: highest sequence, then lowest hash; the start of nothing.
  static func highest(_ positions: [NaivePosition]) -> NaivePosition {
    positions.min { ($1.sequence, $0.tip.high, $0.tip.low) < ($0.sequence, $1.tip.high, $1.tip.low) } ?? start
  }

  /// C14: lowest sequence, then lowest hash; endless of nothing.
  static func lowest(_ positions: [NaivePosition]) -> NaivePosition {
    positions.min { ($0.sequence, $0.tip.high, $0.tip.low) < ($1.sequence, $1.tip.high, $1.tip.low) } ?? endless
  }

  /// C3: the digest of a context, over its entries in the order of their replicas.
  package static func digest(of context: [ReplicaID: NaivePosition], _ hash: HashFunction) -> Digest {
    let letters = Array("seamesh/1 contex".utf8)
    let entries = context.sorted { ($0.key.high, $0.key.low) < ($1.key.high, $1.key.low) }
    let bytes = entries.flatMap { replica, position in
      OracleBytes.replica(replica) + OracleBytes.bigEndian(position.sequence)
        + OracleBytes.bigEndian(position.tip.high) + OracleBytes.bigEndian(position.tip.low)
    }
    return (letters + bytes).withUnsafeBytes(hash)
  }

  /// A vector's entries as the oracle reads them.
  package static func entries(of vector: VersionVector) -> [ReplicaID: NaivePosition] {
    vector.entries.mapValues { NaivePosition(sequence: $0.sequence, tip: $0.tip) }
  }
}

/// C23: what a context covers here.
package struct NaiveSight: Sendable {
  /// Fork points of the chains that have forked.
  let forkPoints: [ReplicaID: UInt64]
  /// Hashes of the accepted changes of each chain, from the first on.
  let accepted: [ReplicaID: [Digest]]

  package init(forkPoints: [ReplicaID: UInt64] = [:], accepted: [ReplicaID: [Digest]] = [:]) {
    (self.forkPoints, self.accepted) = (forkPoints, accepted)
  }

  /// Does this change count here?
  package func hasAccepted(_ hash: Digest, at dot: Dot) -> Bool {
    let mine = accepted[dot.replica] ?? []
    return dot.sequence > 0 && dot.sequence <= UInt64(mine.count) && mine[Int(dot.sequence) - 1] == hash
  }

  /// Has the change at `author`, under its run's context, seen the accepted change at `dot`?
  package func hasSeen(_ dot: Dot, by context: [ReplicaID: NaivePosition], of author: Dot) -> Bool {
    // M5: its own chain before it always is.
    if dot.replica == author.replica { return dot.sequence < author.sequence }
    // An entry (r, n, tip) covers (r, k) for k ≤ n …
    guard let entry = context[dot.replica], dot.sequence <= entry.sequence else { return false }
    // … on a forked chain for k ≤ fork point …
    guard let forkPoint = forkPoints[dot.replica], dot.sequence > forkPoint else { return true }
    // … or for k ≤ n ≤ accepted with a tip equal to mine at n.
    let mine = accepted[dot.replica] ?? []
    guard entry.sequence <= UInt64(mine.count) else { return false }
    return mine[Int(entry.sequence) - 1].tip == entry.tip
  }
}
