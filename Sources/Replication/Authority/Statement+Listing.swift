extension Statement {
  /// What a narrowing lets stand, or a raise brings back (rules C11, C12).
  package struct Listing: Hashable, Sendable {
    package let ends: [PartitionEnds]
    package let tips: [ScopeTips]
    /// Partitions and rooms of a matching name, of which nothing is listed at all, stay unbounded.
    package let keep: [Text]
    /// A part: says nothing until its issuer's next statement of the same kind and target is read with it as one.
    package let more: Bool

    package init(ends: [PartitionEnds] = [], tips: [ScopeTips] = [], keep: [Text] = [], more: Bool = false) {
      (self.ends, self.tips, self.keep, self.more) = (ends, tips, keep, more)
    }

    package var isEmpty: Bool { ends.isEmpty && tips.isEmpty && keep.isEmpty && !more }
  }

  /// How much of the chains of one partition counts. Listed without a chain, the partition is spoken of all the same.
  package struct PartitionEnds: Hashable, Sendable {
    package let partition: Text
    package let chains: [ChainEnd]
    package init(partition: Text, chains: [ChainEnd]) { (self.partition, self.chains) = (partition, chains) }
  }

  package struct ChainEnd: Hashable, Sendable {
    package let replica: ReplicaID
    package let position: ChainPosition
    package init(replica: ReplicaID, position: ChainPosition) { (self.replica, self.position) = (replica, position) }
  }

  /// Statements that count of one scope, each with all that it goes on from; the empty scope is the fleet.
  package struct ScopeTips: Hashable, Sendable {
    package let scope: Text
    package let tips: [Tip]
    package init(scope: Text, tips: [Tip]) { (self.scope, self.tips) = (scope, tips) }
  }

  package struct Tip: Hashable, Sendable {
    package let issuer: PublicKey
    /// 0: none of the issuer's statements.
    package let sequence: UInt64
    package let id: Digest
    package init(issuer: PublicKey, sequence: UInt64, id: Digest) {
      (self.issuer, self.sequence, self.id) = (issuer, sequence, id)
    }
  }

  /// What a narrowing or raise lists; nil for a statement that lists nothing by its kind.
  var listing: Listing? {
    switch body {
    case .grant(let grant): grant.listing
    case .end(let end): end.listing
    case .raise(let raise): raise.listing
    case .removal(let removal): removal.listing
    default: nil
    }
  }

  /// The statements that it names, over all scopes.
  var tips: [ScopeTips] {
    if case .unknown(let unknown) = body { unknown.tips } else { listing?.tips ?? [] }
  }
}

extension ChainPosition {
  /// Before the first change.
  package static let start = ChainPosition(sequence: 0, tip: .zero)
  /// Above every change: nothing bounds the chain.
  package static let unbounded = ChainPosition(sequence: .max, tip: .zero)

  package var isUnbounded: Bool { sequence == .max }

  /// Lowest sequence, then lowest hash; ``unbounded`` of nothing (rule C14).
  static func lowest(of positions: some Sequence<ChainPosition>) -> ChainPosition {
    positions.min { ($0.sequence, $0.tip) < ($1.sequence, $1.tip) } ?? .unbounded
  }

  /// Highest sequence, then the *lowest* hash, so that a tie between branches has one answer; ``start`` of nothing.
  static func highest(of positions: some Sequence<ChainPosition>) -> ChainPosition {
    positions.min { ($1.sequence, $0.tip) < ($0.sequence, $1.tip) } ?? .start
  }
}
