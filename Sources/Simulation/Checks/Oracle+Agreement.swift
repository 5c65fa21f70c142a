import Engine
import Replication
import Wire

// What must hold when the faults are over.
extension Oracle {
  /// Why it is not over yet.
  func disagreement() -> String? { disagreementInWork() ?? disagreementInAnswers() }

  /// Nil when all who reach one another hold the same statements, and all who want a partition and reach one another over
  /// others who want it agree.
  func disagreementInWork() -> String? {
    if let absent = world.nodes.first(where: { $0.process == nil && $0.isMember }) {
      return "node \(absent.slot) is not there"
    }
    if let difference = differenceInStatements() { return difference }
    if let work = workThatIsNotHandedOver() { return work }
    for name in owed {
      for group in groups(wanting: name) {
        if let difference = difference(in: group, world.fleet.partition(name)) {
          return "\(name.text.string): \(difference)"
        }
      }
    }
    return nil
  }

  /// What everybody says that it holds, once all were asked.
  func disagreementInAnswers() -> String? { world.askedAt == nil ? nil : differenceInHoldings() }

  /// What is owed to all who want it and may carry it: everything, but where nobody of them has more than what a flooder
  /// wrote. Who does not want it any more tells nobody of what it keeps.
  private var owed: [PartitionName] { (world.partitions + world.plan.visited).filter(isOwed) }

  func isOwed(_ name: PartitionName) -> Bool {
    guard !world.plan.flooded.isEmpty else { return true }
    let id = world.fleet.partition(name)
    let flooders = Set(world.nodes.filter(\.isFlooder).map(\.key.publicKey))
    return world.nodes.compactMap(\.process).contains { process in
      process.mesh.interest.wants(id, name: name)
        && process.mesh.partitions[id]?.log.accepted.entries.keys.contains { replica in
          owners[replica].map { !flooders.contains($0) } ?? true
        } ?? false
    }
  }

  /// Until all have heard what was stated, one may still write what the others know to count no more.
  private func differenceInStatements() -> String? {
    let honest = world.nodes.filter { $0.liar == nil }.compactMap(\.process).filter { !isEnded($0) }
    let digests = honest.map { $0.mesh.authority.digest(FakeCryptography.hash) }
    for a in honest.indices {
      for b in 0..<a where digests[a] != digests[b] && world.isLinked(honest[a].node.slot, honest[b].node.slot) {
        return "nodes \(honest[b].node.slot) and \(honest[a].node.slot) hold different statements"
      }
    }
    return wordOfEndedThatIsNotHeard(honest)
  }

  /// Honest nodes that want the partition and may carry it, in groups that reach one another.
  func groups(wanting name: PartitionName) -> [[NodeProcess]] {
    let id = world.fleet.partition(name)
    var left = world.nodes.compactMap(\.process).filter { process in
      process.node.liar == nil && process.mesh.interest.wants(id, name: name)
        && rights(of: process.node).level(of: process.node.key.publicKey, in: name.text) >= .carry
    }
    var groups: [[NodeProcess]] = []
    while let first = left.popLast() {
      var group = [first]
      var index = 0
      while index < group.count {
        let slot = group[index].node.slot
        group += left.filter { world.isLinked($0.node.slot, slot) }
        left.removeAll { world.isLinked($0.node.slot, slot) }
        index += 1
      }
      groups.append(group)
    }
    return groups
  }

  private func difference(in group: [NodeProcess], _ partition: PartitionID) -> String? {
    guard let first = group.first else { return nil }
    if let difference = differenceInRoom(group, partition) { return difference }
    let mine = first.mesh.partitions[partition]?.log
    for other in group.dropFirst() {
      let log = other.mesh.partitions[partition]?.log
      let pair = "nodes \(first.node.slot) and \(other.node.slot)"
      if (mine?.accepted ?? VersionVector()) != (log?.accepted ?? VersionVector()) {
        return "\(pair) accept \(Oracle.text(mine?.accepted)) and \(Oracle.text(log?.accepted))"
      }
      if (mine?.clipped ?? VersionVector()) != (log?.clipped ?? VersionVector()) {
        return "\(pair) differ in what is clipped"
      }
      // Who came by it before its replica was void holds what nobody else may take any more.
      func isDeclared(_ replica: ReplicaID) -> Bool {
        [first.node, other.node].allSatisfy { rights(of: $0).rights.signer(of: replica) != nil }
      }
      let held = [mine, log].map { ($0?.heldAbove.entries ?? VersionVector().entries).filter { isDeclared($0.key) } }
      if held[0] != held[1] { return "\(pair) hold \(held[0]) and \(held[1]) above limits" }
      let forks = [mine, log].map { ($0?.forkPoints ?? [:]).filter { isDeclared($0.key) } }
      if forks[0] != forks[1] { return "\(pair) know forks at \(forks[0]) and \(forks[1])" }
    }
    return nil
  }

  /// All who may carry a room have heard of it, and hold what was said there.
  private func differenceInRoom(_ group: [NodeProcess], _ partition: PartitionID) -> String? {
    guard let name = world.roomLife?.rooms.first(where: { world.fleet.partition($0) == partition }) else { return nil }
    func said(_ process: NodeProcess) -> Set<Digest> { Set(process.mesh.authority.statements(of: name.text).map(\.id)) }
    for process in group {
      let linked = world.nodes.compactMap(\.process).filter {
        $0 !== process && $0.node.liar == nil && world.isLinked($0.node.slot, process.node.slot)
          && $0.mesh.interest.wants(partition, name: name)
      }
      for other in linked {
        let isMeant = rights(of: process.node).level(of: other.node.key.publicKey, in: name.text) >= .carry
        let isIn = group.contains { $0 === other }
        guard isMeant != isIn || isIn && said(process) != said(other) else { continue }
        let (mine, others) = (said(process), said(other))
        return isMeant == isIn
          ? "nodes \(process.node.slot) and \(other.node.slot) hold \(mine.subtracting(others).count) and \(others.subtracting(mine).count) statements that the other lacks"
          : "node \(other.node.slot) takes itself \(isIn ? "" : "not ")to be in the room, unlike node \(process.node.slot)"
      }
    }
    return nil
  }

  /// Have all that reach one another a session, and is none half open?
  func areAllConnected() -> Bool {
    world.connections.values.allSatisfy { !$0.pipes.contains(where: \.isSilent) }
      && world.nodes.compactMap(\.process).allSatisfy(isConnected)
  }

  /// Has the process a session with every node that it can reach? Nodes, not devices: of copies of one device each counts.
  private func isConnected(_ process: NodeProcess) -> Bool {
    let peers = Set(process.mesh.sessions.ids.compactMap { process.ports.links[$0]?.remoteSlot })
    return world.nodes.compactMap(\.process).allSatisfy {
      $0 === process || !world.isLinked($0.node.slot, process.node.slot) || peers.contains($0.node.slot)
    }
  }

  func mayWrite(_ node: SimulatedNode, _ name: PartitionName) -> Bool {
    rights(of: node).level(of: node.key.publicKey, in: name.text) >= .write
  }

  static func text(_ vector: VersionVector?) -> String {
    (vector?.sorted ?? []).map { "\(String($0.replica.high, radix: 36)):\($0.position.sequence)" }.joined(
      separator: " ")
  }
}
