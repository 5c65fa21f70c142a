import Engine
import Replication
import SimulatedDisk

extension World {
  func causeFault() {
    guard isTroubled else { return }
    queue.put(.fault, at: clock + random.between(plan.faultInterval / 2...plan.faultInterval * 3 / 2))
    if let node = random.pick(nodes.filter { $0.process != nil }), node.copies.count < 4 {
      node.copies.append(node.directory.copy())
    }
    guard let fault = random.pick(Fault.allCases.filter(plan.faults.contains)) else { return }
    cause(fault)
  }

  private func cause(_ fault: Fault) {
    switch fault {
    case .cut: cut()
    case .split: split()
    case .crash, .crashAfterCommit, .crashInCommit: crashSomewhere(fault)
    case .clockJump: jumpClock(random.pick(nodes))
    case .stalledReader: stall()
    case .diskFull: random.pick(nodes)?.diskFullUntil = clock + random.between(200...2_500)
    case .slowDisk: random.pick(nodes)?.slowDiskUntil = clock + random.between(500...5_000)
    case .diskFailed: failDisk()
    case .restoredCopy, .rolledBack: bringBackCopy(fault)
    case .clonedDirectory: clone()
    case .rightChanged: if random.chance(50) { changeRights() } else { askForRights() }
    // These come with every frame, sighting or write.
    case .slowNetwork, .liar, .falseSighting, .largePayload: break
    }
  }

  private func failDisk() {
    guard let node = random.pick(nodes.filter { $0.process != nil }) else { return }
    count(.diskFailed)
    node.directory.medium.failSoon(operations: random.between(1...12))
  }

  // MARK: Network

  private func cut() {
    guard let number = random.pick(connections.keys.sorted()) else { return }
    count(.cut)
    note("cut \(number)")
    abort(number, from: random.below(2))
  }

  private func split() { separate(nodes.map { _ in random.chance(50) }) }

  /// Two devices that write as one: for a while neither hears of the other, and both are used.
  private func keepApart(_ slot: Int, from other: Int) {
    if random.chance(80) {
      var isNorth = nodes.map { _ in random.chance(50) }
      (isNorth[slot], isNorth[other]) = (true, false)
      separate(isNorth)
    }
    // Others see of both.
    bustle(at: [slot, other] + nodes.indices.filter { $0 != slot && $0 != other && random.chance(30) })
  }

  private func separate(_ isNorth: [Bool]) {
    for a in nodes.indices { for b in 0..<a where isNorth[a] != isNorth[b] { severed.insert(SlotPair(a, b)) } }
    note("split \(isNorth)")
    for number in connections.keys.sorted() {
      guard let ends = connections[number]?.ends, severed.contains(SlotPair(ends[0].slot, ends[1].slot)) else {
        continue
      }
      count(.split)
      if random.chance(40) {
        abort(number, from: random.below(2))
      } else {
        // No word from the other side any more; one way alone, now and then.
        for side in 0...1 where random.chance(85) { connections[number]?.pipes[side].isSilent = true }
      }
    }
    queue.put(.reunite, at: clock + random.between(500...12_000))
  }

  private func stall() {
    guard let number = random.pick(connections.keys.sorted()) else { return }
    count(.stalledReader)
    connections[number]?.ends[random.below(2)].stalledUntil = clock + random.between(500...9_000)
  }

  // MARK: Nodes

  private func crashSomewhere(_ fault: Fault) {
    guard let node = random.pick(nodes.filter { $0.process != nil }), let process = node.process else { return }
    guard process.store.crashPoint == nil else { return }
    count(fault)
    switch fault {
    case .crashAfterCommit: process.store.crashPoint = .afterCommit
    case .crashInCommit:
      if !node.directory.medium.losePowerSoon(operations: random.between(1...20)) {
        process.store.crashPoint = .beforeCommit
      }
    default:
      if random.chance(50) { process.store.crashPoint = .beforeCommit } else { crash(node) }
    }
  }

  /// Stops without a word; comes back after a while.
  func crash(_ node: SimulatedNode) {
    guard let process = node.process else { return }
    note("crash of \(node.slot)")
    trace(3, UInt64(node.slot))
    report.events += 1
    process.die()
    node.process = nil
    node.directory.medium.cutPower()
    node.directory.medium = node.directory.medium.afterRestart(
      random.pick([Restart.cached, .lost, .kept, .torn(seed: random.next())]) ?? .lost)
    for number in connections.keys.sorted() {
      guard let side = connections[number]?.ends.firstIndex(where: { $0.slot == node.slot && $0.life == process.life })
      else { continue }
      connections[number]?.ends[side].end()
      if random.chance(70) {
        abort(number, from: 1 - side)
      } else {
        for pipe in 0...1 { connections[number]?.pipes[pipe].isSilent = true }
      }
    }
    if mayCause(.clockJump), random.chance(50) { jumpClock(node) }
    queue.put(.restart(slot: node.slot, life: node.life), at: clock + random.between(50...6_000))
  }

  func restart(_ slot: Int, _ life: Int) {
    guard nodes[slot].process == nil, nodes[slot].life == life else { return }
    note("start of \(slot)")
    nodes[slot].start(in: self)
  }

  private func jumpClock(_ node: SimulatedNode?) {
    count(.clockJump)
    let far: Int64 = 40 * 365 * 86_400_000
    node?.clockOffset = random.pick([0, 700, -900, 30_000, -45_000, 3_600_000, -86_400_000, far, -far]) ?? 0
  }

  private func bringBackCopy(_ fault: Fault) {
    guard let node = random.pick(nodes.filter { $0.process != nil && !$0.copies.isEmpty }), let old = node.copies.first
    else { return }
    count(fault)
    note("\(fault) at \(node.slot)")
    if fault == .rolledBack { oracle.known.expectForks(of: node) }
    crash(node)
    oracle.storeIsLost(of: node, to: old.book)
    node.lineage += 1
    let (mark, note) = (node.directory.mark, node.directory.forwardingNote)
    node.directory = old.copy()
    node.copies = []
    if let other = random.pick(nodes.indices.filter { $0 != node.slot }) { keepApart(node.slot, from: other) }
    guard fault == .restoredCopy else { return }
    // The files beside the store are not part of a backup.
    (node.directory.mark, node.directory.forwardingNote) = (mark, note)
    node.directory.markRestored(fleet.id, node.key.device, copy: UInt64(node.slot + 1) << 32 | UInt64(node.lineage))
  }

  private func clone() {
    // One device alone: a peer has one session with a device, so that copies of two devices may pair off and never meet.
    let cloned = nodes.dropFirst(plan.nodeCount).first?.key
    guard nodes.count < plan.nodeCount + plan.cloneLimit,
      let original = random.pick(nodes.filter { $0.process != nil && $0.key == cloned ?? $0.key })
    else { return }
    count(.clonedDirectory)
    note("clone of \(original.slot) is \(nodes.count)")
    let copy = SimulatedNode(
      slot: nodes.count, key: original.key, user: original.user, original.directory.copy())
    (copy.liar, copy.isEarlierBuild) = (original.liar, original.isEarlierBuild)
    (copy.isFlooder, copy.flood) = (original.isFlooder, original.flood)
    copy.isMember = true
    nodes.append(copy)
    // Two copies of one device take turns at a peer, so no way may lead over one of them alone: as on one LAN, all reach all.
    dialTargets = nodes.map { node in nodes.indices.filter { nodes[$0].key != node.key } }
    oracle.known.expectForks(of: original)
    shore?.adopt(copy, of: original)
    copy.start(in: self)
    keepApart(copy.slot, from: original.slot)
  }

  func isLinked(_ a: Int, _ b: Int) -> Bool { dialTargets[a].contains(b) || dialTargets[b].contains(a) }

  // MARK: Afterwards

  /// No more faults; everyone is up, and everyone who is meant to reach another does.
  func calm() {
    note("calm")
    (isTroubled, quietSince, calmSince) = (false, clock, clock)
    severed = []
    freeLinks()
    for number in connections.keys.sorted() { for side in 0...1 { connections[number]?.ends[side].stalledUntil = 0 } }
    for node in nodes {
      (node.diskFullUntil, node.slowDiskUntil) = (0, 0)
      // What failed behind a commit is told by the next write, which may be long in coming.
      if node.process?.store.hasFailed == true { crash(node) }
      node.directory.medium.heal()
      node.process?.store.crashPoint = nil
      if plan.isNetworkChangeTold { node.process?.put(.networkChanged) }
    }
    upgrade()
    shore?.calm()
    queue.put(.check, at: clock + World.checkInterval)
  }
}
