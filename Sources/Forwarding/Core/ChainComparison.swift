import Replication

/// What a ledger is asked about one chain: does it have this change?
package struct ChainQuestion: Equatable, Sendable {
  package let chain: ChainKey
  package let sequence: UInt64
  package let hash: Digest
  package init(chain: ChainKey, sequence: UInt64, hash: Digest) {
    (self.chain, self.sequence, self.hash) = (chain, sequence, hash)
  }
}

/// What a ledger says of one chain.
package struct ChainAnswer: Equatable, Sendable {
  /// The change that was asked for is there.
  package var hasChange = false
  /// The highest number it has, on whatever branch; 0: nothing.
  package var highest: UInt64 = 0
  /// Chain hashes there, one per branch.
  package var hashes: [Digest] = []
  package var mark: ChainPosition?
  package init() {}
}

/// From where on a ledger lacks runs of a chain.
package enum ChainComparison {
  /// The ledger holds the store's chain up to the number that is answered. Where branches cannot be told apart by their ends
  /// this is lower than what is true: a run that is sent again does no harm.
  ///
  /// - Parameters:
  ///   - question: about the end of the store's chain, or about the last change before its branches part.
  ///   - hashAt: chain hash of the store's own chain there, nil where it has none.
  package static func reached(
    _ question: ChainQuestion, _ answer: ChainAnswer, hashAt: (UInt64) throws -> Digest?
  ) rethrows -> UInt64 {
    if answer.hasChange { return question.sequence }
    guard answer.highest > 0, answer.highest < question.sequence, let own = try hashAt(answer.highest) else { return 0 }
    return answer.hashes.contains(own) ? answer.highest : 0
  }
}
