import Replication

extension ForwardingSource {
  /// Those whose names are such as a partition can have.
  package func partitions(of edits: [OfficeEdit]) -> Set<PartitionID> {
    Set(edits.compactMap { try? PartitionName(Text($0.partition)).id(fleet: fleet, hash: hash) })
  }
}

/// How far a chain goes.
package struct ChainReach: Equatable, Sendable {
  package let chain: ChainKey
  package let sequence: UInt64
  package init(chain: ChainKey, sequence: UInt64) { (self.chain, self.sequence) = (chain, sequence) }
}

/// Asks a ledger which claimed edits are still to be done, and whether it still has what it is known to have: one that was put
/// back from a copy behind a pooler, or that failed over, tells nobody, and forgot which edits changes had come of.
package struct ClaimCheck {
  private let edits: any EditStore
  private let limits: ForwarderLimits

  package init(_ edits: any EditStore, _ limits: ForwarderLimits) { (self.edits, self.limits) = (edits, limits) }

  /// Each question names all the edits. So the change of an edit that does not stand is missed by none: the question that names
  /// its chain is answered by a ledger that has it.
  ///
  /// - Throws: ``BackendProblem`` of the kind `gap` where it has less of a chain of these partitions.
  package func standing(
    _ claimed: [OfficeEdit], _ known: LedgerView, in partitions: Set<PartitionID>
  ) throws(BackendProblem) -> Set<UUIDValue> {
    let had = known.highest.filter { $0.value > 0 && partitions.contains($0.key.partition) }
    let chains = had.sorted { $0.key < $1.key }.map { ChainReach(chain: $0.key, sequence: $0.value) }
    var standing = Set(claimed.map(\.id))
    for start in stride(from: 0, to: max(chains.count, 1), by: limits.questionChains) {
      let asked = Array(chains[start..<min(start + limits.questionChains, chains.count)])
      let answer = try edits.confirm(claimed.map(\.id), reaching: asked)
      guard answer.hasChains else { throw BackendProblem(.gap, "the ledger lacks changes that it had") }
      standing.formIntersection(answer.standing)
    }
    return standing
  }
}
