import Forwarding
import Replication

/// Whose word stands at the backend.
struct WordCheck: Check {
  let known: Knowledge

  /// Whoever does not hold all that the ledger has of a partition leaves what other relays said of it (decision 33).
  ///
  /// - Parameter book: what it held when it sent the batch. Not what it holds when that takes effect: a batch stands for what its
  ///   sender knew, and is as true when a call comes late of a relay whose store has been put back. What came to the relay
  ///   meanwhile makes it no truer either.
  func check(_ before: ModelLedger, _ after: ModelLedger, by node: SimulatedNode, holding book: NodeBook) {
    let device = node.key.device
    var replaced: Set<PartitionID> = []
    for (chain, mark) in before.marks where mark.judge != device && after.marks[chain]?.judge == device {
      replaced.insert(chain.partition)
    }
    for (place, row) in before.documents where row.judge != device && after.documents[place]?.judge == device {
      replaced.insert(place.partition)
    }
    for partition in replaced.sorted() {
      guard let lack = lack(of: partition, in: after, book) else { continue }
      world.violate("I9", "relay \(node.slot) replaces what another said of a partition, and lacks \(lack)")
    }
  }

  /// Of what the ledger has.
  private func lack(of partition: PartitionID, in ledger: ModelLedger, _ book: NodeBook) -> String? {
    if let name = ledger.partitions[partition], lacksStatement(of: name, in: ledger, book) { return "a statement" }
    for chain in ledger.chains where chain.partition == partition {
      guard book.reaches(ledger.highest(of: chain), of: chain.replica, in: partition) else {
        return "change \(ledger.highest(of: chain)) of \(chain.replica)"
      }
      guard !ledger.isForked(chain) || book.isForked(chain.replica, in: partition) else {
        return "a branch of \(chain.replica)"
      }
    }
    return nil
  }
}

extension Check {
  /// The ledger has one that may move what counts in the partition, and that could come into the node's set. Those of a room move
  /// the room alone.
  func lacksStatement(of name: PartitionName, in ledger: ModelLedger, _ book: NodeBook) -> Bool {
    let lacking = ledger.statements.filter { book.statements[$0.key] == nil }.values
      .compactMap { FakeCryptography.statement($0).statement }
      .filter { $0.isOfFleet || $0.scope == name.text }
    return !known.isNothing(lacking, beside: book)
  }
}

extension NodeBook {
  /// Two of its runs have different changes of one number.
  func isForked(_ replica: ReplicaID, in partition: PartitionID) -> Bool {
    var known: [UInt64: Digest] = [:]
    for run in partitions[partition]?.runs[replica] ?? [] {
      for sequence in run.first...run.last {
        guard let hash = run.hash(at: sequence) else { continue }
        if let other = known.updateValue(hash, forKey: sequence), other != hash { return true }
      }
    }
    return false
  }
}
