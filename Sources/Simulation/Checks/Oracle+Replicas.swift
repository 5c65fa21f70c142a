import Replication

// Under which replica ids a device writes.
extension Oracle {
  /// A replica id is declared with the first change under it, never for a write that changes nothing (rule C20).
  func checkDeclarations(_ commit: ObservedCommit, by node: SimulatedNode) {
    for statement in commit.statements {
      guard case .replica(let declaration) = statement.body, statement.issuer == node.key.publicKey,
        !isDeclared(declaration.replica)
      else { continue }
      let isUsed = commit.appended.contains { $0.chain.replica == declaration.replica }
      if !isUsed { world.violate("C20", "node \(node.slot) draws \(declaration.replica) and writes nothing under it") }
      declared(declaration.replica, by: node)
    }
  }

  /// Only these give a cause for a new replica id: copies that come back, disks that fail, and peers that show signed
  /// runs that this node never wrote. What a liar claims is none; what it signs with its own key is one for itself.
  private static let causes: Set<Fault> = [
    .restoredCopy, .rolledBack, .clonedDirectory, .diskFailed, .crashInCommit,
  ]

  private func declared(_ replica: ReplicaID, by node: SimulatedNode) {
    let count = countDrawn(by: node.slot)
    let hasCause = world.report.faults.contains { Oracle.causes.contains($0.key) && $0.value > 0 }
    guard count > 1, !hasCause, node.liar == nil else { return }
    world.violate("C20", "node \(node.slot) draws replica id number \(count), \(replica), without a cause")
  }
}
