import Replication

extension ForwardingSource {
  /// Those whose names are such as a partition can have.
  package func partitions(named names: [String]) -> Set<PartitionID> {
    Set(names.compactMap { try? PartitionName(Text($0)).id(fleet: fleet, hash: hash) })
  }
}

/// Looks whether a ledger still has what it is known to have: one that was put back from a copy behind a pooler, or that failed
/// over, tells nobody.
package struct LedgerCheck {
  private let backend: any Backend
  private let limits: ForwarderLimits

  package init(_ backend: any Backend, _ limits: ForwarderLimits) { (self.backend, self.limits) = (backend, limits) }

  /// - Throws: ``BackendProblem`` of the kind `gap` where it has less of a chain of these partitions.
  package func holds(_ known: LedgerView, of partitions: Set<PartitionID>) throws(BackendProblem) {
    let had = known.highest.filter { $0.value > 0 && partitions.contains($0.key.partition) }
    let chains = had.sorted { $0.key < $1.key }
    for start in stride(from: 0, to: chains.count, by: limits.questionChains) {
      let asked = chains[start..<min(start + limits.questionChains, chains.count)]
      // Up to where it goes is asked, and no change in particular.
      let answers = try backend.answers(
        to: asked.map { ChainQuestion(chain: $0.key, sequence: $0.value, hash: .zero) })
      guard answers.count == asked.count else {
        throw BackendProblem(.refused, "the backend answered something else than it was asked")
      }
      for (chain, answer) in zip(asked, answers) where answer.highest < chain.value {
        throw BackendProblem(.gap, "the ledger lacks changes that it had")
      }
    }
  }
}
