import Engine
import Replication

/// What a node may hold of others in memory (I13).
struct BoundCheck: Check {
  let known: Knowledge

  func check(_ process: NodeProcess) {
    let footprint = process.mesh.footprint
    if footprint.parkedBatches > 0 || footprint.awaitedHeaders > 0 {
      world.violate("I13", "node \(process.node.slot) leaves \(footprint.parkedBatches) batches parked")
    }
    if footprint.streams > footprint.sessions * max(1, process.mesh.partitions.count) {
      world.violate("I13", "node \(process.node.slot) has \(footprint.streams) streams")
    }
    checkTakes(process)
    let named = world.partitions.count + world.plan.flooded.count + (world.plan.flood?.places.count ?? 0)
    if footprint.awaitedStreams > footprint.sessions * named {
      world.violate("I13", "node \(process.node.slot) has \(footprint.awaitedStreams) streams of nothing")
    }
    if footprint.sessions > 4 * world.nodes.count {
      world.violate("I13", "node \(process.node.slot) has \(footprint.sessions) sessions")
    }
  }

  /// I13: who floods takes no more than one device may, beside where others write.
  private func checkTakes(_ process: NodeProcess) {
    guard world.plan.isFlooded, !process.node.isFlooder, process.node.isHonest else { return }
    checkPartitions(process)
    checkStatements(process)
    checkChains(process)
    if process.mesh.takes.values.contains(where: { $0.leftOutRuns > 0 }) { world.count(.leftOut) }
  }

  private func checkPartitions(_ process: NodeProcess) {
    guard !world.plan.flooded.isEmpty else { return }
    let limit = Plan.floodedLimit + world.plan.visited.count + world.plan.partitions.count
    // What waits for its causes goes with the session that brought it, and is bounded in bytes.
    let begun = process.mesh.partitions.values.count(where: \.hasBegun)
    if begun > limit {
      world.violate("I13", "node \(process.node.slot) holds \(begun) partitions")
    }
  }

  /// C26: of a device that says more than it may, just those lie in the store that the naive rules leave in the set.
  private func checkStatements(_ process: NodeProcess) {
    guard world.plan.flood != nil, process.node.isJudged else { return }
    let (kept, counting) = (process.node.directory.book.statements.count, rights(of: process.node).rights.statements)
    guard kept != counting.count else { return }
    world.violate("I13", "node \(process.node.slot) keeps \(kept) statements, of which \(counting.count) count")
  }

  /// Where nobody wrote but the device that floods, as far as this node knows.
  private func checkChains(_ process: NodeProcess) {
    guard world.plan.flood != nil else { return }
    var chains: [PublicKey: Int] = [:]
    for partition in process.mesh.partitions.values {
      let replicas = partition.log.received.entries.keys
      let writers = Set(replicas.map { known.owners[$0] })
      guard writers.count == 1, let writer = writers.first ?? nil, known.floods(writer) else { continue }
      chains[writer, default: 0] += replicas.count
    }
    guard let most = chains.values.max(), most > world.plan.mesh.takes.chains else { return }
    world.violate("I13", "node \(process.node.slot) holds \(most) chains of one device")
  }
}
