extension Statement {
  /// How much of one chain a narrowing lets stand (rules C11, C17).
  package struct ChainEnd: Hashable, Sendable {
    package enum Chain: Hashable, Sendable {
      case changes(partition: Text, replica: ReplicaID)
      /// What one device signed in a scope; the empty scope is the fleet.
      case statements(scope: Text, issuer: PublicKey)
    }

    package let chain: Chain
    package let position: ChainPosition

    package init(chain: Chain, position: ChainPosition) { (self.chain, self.position) = (chain, position) }
  }
}

extension Sequence<Statement.ChainEnd> {
  /// Nil where the chain is not listed; the highest entry where it is listed twice.
  func position(of chain: Statement.ChainEnd.Chain) -> ChainPosition? {
    let listed = filter { $0.chain == chain }
    return listed.isEmpty ? nil : .highest(of: listed.map(\.position))
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
