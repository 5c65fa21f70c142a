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
    switch random.below(7) {
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
    case 4 where endInQuiet(): return true
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

  /// A device is ended while something that it wrote is on its way, or while nobody hears it: its work goes to the others all
  /// the same, as soon as it hears of its end. False where there is nobody to end.
  private func endInQuiet() -> Bool {
    let candidates = nodes.dropFirst().filter { $0.process != nil && $0.isJudged && $0.key != nodes[0].key }
    guard plan.nodeCount > 2, roomLife == nil, !nodes.contains(where: \.isEndAsked),
      nodes[World.inviter].process != nil, let node = random.pick(candidates)
    else { return false }
    for copy in nodes where copy.key == node.key { copy.isEndAsked = true }
    let isAlone = random.chance(50)
    if isAlone { cutOff(node.slot) }
    let said = isAlone ? clock + 700 : clock
    for name in plan.partitions where random.chance(70) {
      queue.put(.disturb(slot: node.slot, name), at: said + random.between(0...100))
    }
    queue.put(.endInQuiet(slot: node.slot), at: said + random.between(0...200))
    if isAlone { queue.put(.reuniteInQuiet, at: said + 300) }
    return true
  }

  /// Nobody reaches it, and both ends of its connections know.
  private func cutOff(_ slot: Int) {
    for other in nodes.indices where other != slot { severed.insert(SlotPair(slot, other)) }
    for number in connections.keys.sorted() where connections[number]?.ends.contains(where: { $0.slot == slot }) == true
    {
      abort(number, from: random.below(2))
    }
  }

  func reuniteInQuiet() {
    (severed, quietSince) = ([], clock)
    for node in nodes { node.process?.put(.networkChanged) }
  }

  func endByAdmin(_ slot: Int) {
    quietSince = clock
    let (admin, device) = (nodes[World.inviter], nodes[slot].key.publicKey)
    let author = StatementAuthor(key: admin.key.publicKey, sign: admin.key.sign)
    note("admin ends \(slot) in quiet")
    admin.process?.put(
      .call { engine in
        guard let plan = try? engine.plan(.end(device, .retire, nil), authors: [author]) else { return }
        try? engine.carryOut(plan, authors: [author])
      })
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
