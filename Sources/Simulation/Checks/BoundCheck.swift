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
    let named = world.partitions.count + world.plan.flooded.count
    if footprint.awaitedStreams > footprint.sessions * named {
      world.violate("I13", "node \(process.node.slot) has \(footprint.awaitedStreams) streams of nothing")
    }
    if footprint.sessions > 4 * world.nodes.count {
      world.violate("I13", "node \(process.node.slot) has \(footprint.sessions) sessions")
    }
  }

  /// I13: who floods takes no more than one device may, beside where others write.
  private func checkTakes(_ process: NodeProcess) {
    guard !world.plan.flooded.isEmpty, !process.node.isFlooder else { return }
    let limit = Plan.floodedLimit + world.plan.visited.count + world.plan.partitions.count
    // What waits for its causes goes with the session that brought it, and is bounded in bytes.
    let begun = process.mesh.partitions.values.count(where: \.hasBegun)
    if begun > limit {
      world.violate("I13", "node \(process.node.slot) holds \(begun) partitions")
    }
    if process.mesh.takes.values.contains(where: { $0.leftOutRuns > 0 }) { world.count(.leftOut) }
  }
}
