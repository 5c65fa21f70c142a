import Engine
import Forwarding
import Replication

/// What may go with a store.
struct WipeCheck: Check {
  let known: Knowledge

  /// In the end, when all have said what they hold: of a partition that a node calls safe to wipe, every change that its store
  /// has lies in the backend, or with as many other devices as it says.
  func check(_ process: NodeProcess) {
    var rules = WipeRules()
    rules.devices = 1 + process.node.slot % 2
    for judgement in process.engine.wipeSurvey(rules).judgements where judgement.isSafe {
      world.count(.safeToWipe)
      for run in process.node.directory.book.partitions[judgement.partition]?.runs.values.flatMap({ $0 }) ?? [] {
        for (index, change) in run.observed.changes.enumerated() {
          let dot = Dot(replica: run.replica, sequence: run.first + UInt64(index))
          guard !isElsewhere(change.hash, at: dot, in: judgement.partition, process.node, rules.devices) else {
            continue
          }
          return world.violate(
            "wipe",
            "node \(process.node.slot) calls \(judgement.name.text.string) safe to wipe, and change \(dot.sequence) of \(dot.replica) is nowhere else"
          )
        }
      }
    }
  }

  private func isElsewhere(
    _ hash: Digest, at dot: Dot, in partition: PartitionID, _ node: SimulatedNode, _ devices: Int
  ) -> Bool {
    let chain = ChainKey(partition: partition, replica: dot.replica)
    if world.shore?.ledger.has(hash, at: dot.sequence, of: chain) == true { return true }
    // Who lies may say that it holds what it likes. Whose store was put back takes its word back as soon as somebody shows it
    // the later one; where nobody may, that ages (decision 40).
    let others = world.nodes.filter {
      $0.key != node.key
        && ($0.liar != nil || $0.lineage > 0 || $0.directory.book.holds(hash, at: dot, in: partition))
    }
    return Set(others.map(\.key)).count >= devices
  }
}
