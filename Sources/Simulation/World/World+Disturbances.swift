import Engine
import Replication

// When all agree, one thing changes at a time: what follows from it is there at once, and does not wait for the next
// comparison.
extension World {
  /// False where that is over.
  func beginDisturbance() -> Bool {
    guard isPrompt, disturbances < plan.disturbances, oracle.agreement.areAllConnected() else { return false }
    disturbances += 1
    (agreedSince, quietSince) = (nil, clock)
    let slots = nodes.filter { $0.process != nil }.map(\.slot)
    guard let slot = random.pick(slots), let process = nodes[slot].process else { return false }
    switch random.below(6) {
    case 0, 1:
      if let number = random.pick(connections.keys.sorted()) { abort(number, from: random.below(2)) }
      for node in nodes { node.process?.put(.networkChanged) }
      // While they meet again.
      if random.chance(50) { queue.put(.stateInQuiet(slot: slot), at: clock + random.between(0...300)) }
    case 2:
      let pattern = random.pick(process.engine.state.subscriptions.sorted())
      if let pattern { process.subscribe(pattern, isWanted: false) }
      if random.chance(60) { process.subscribe(random.chance(50) ? "*" : pattern ?? "*", isWanted: true) }
      // What is wanted comes without anybody's writing.
      guard random.chance(50) else { return true }
    case 3:
      stateInQuiet(slot)
      guard random.chance(50) else { return true }
    default: break
    }
    for name in plan.partitions {
      for slot in slots where random.chance(60) {
        queue.put(.disturb(slot: slot, name), at: clock + random.between(0...600))
      }
    }
    return true
  }

  /// The root lets everyone write everything.
  func stateInQuiet(_ slot: Int) {
    quietSince = clock
    let everything = Fleet.Register(subject: .everyone, pattern: "*")
    guard let said = fleet.grant(.write, everything, ends: []) else { return }
    nodes[slot].process?.put(.call { $0.add(said) })
  }

  func writeInQuiet(_ slot: Int, _ name: PartitionName) {
    quietSince = clock
    guard let process = nodes[slot].process, oracle.known.mayWrite(nodes[slot], name) else { return }
    nextJob += 1
    let id = random.pick(plan.documents) ?? .int(0)
    let edit = AuthoredEdit(id: id, seed: random.next(), largestByteCount: nil)
    process.write(WriteJob(number: nextJob, partition: name, edits: [edit]))
  }
}
