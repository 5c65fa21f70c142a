import Engine
import Replication
import Wire

/// What must hold when the faults are over: all who reach one another hold the same.
struct AgreementCheck: Check {
  let known: Knowledge

  var ended: EndedCheck { EndedCheck(known: known) }

  /// Why it is not over yet.
  func disagreement() -> String? { disagreementInWork() ?? disagreementInAnswers() }

  /// Nil when all who reach one another hold the same statements, and all who want a partition and reach one another over
  /// others who want it agree.
  func disagreementInWork() -> String? {
    if let absent = world.nodes.first(where: { $0.process == nil && $0.isMember }) {
      return "node \(absent.slot) is not there"
    }
    if let difference = differenceInStatements() { return difference }
    if let work = ended.workThatIsNotHandedOver() { return work }
    for name in owed {
      for group in known.groups(wanting: name) {
        if let difference = difference(in: group, world.fleet.partition(name)) {
          return "\(name.text.string): \(difference)"
        }
      }
    }
    return nil
  }

  /// What everybody says that it holds, once all were asked.
  func disagreementInAnswers() -> String? { world.askedAt == nil ? nil : HoldingsCheck(known: known).difference() }

  /// What is owed to all who want it and may carry it: everything, but where nobody of them has more than what a flooder
  /// wrote. Who does not want it any more tells nobody of what it keeps.
  private var owed: [PartitionName] { (world.partitions + world.plan.visited).filter(known.isOwed) }

  /// Until all have heard what was stated, one may still write what the others know to count no more.
  private func differenceInStatements() -> String? {
    let honest = world.nodes.filter { $0.isHonest }.compactMap(\.process).filter { !known.isEnded($0) }
    let digests = honest.map { $0.mesh.authority.digest(FakeCryptography.hash) }
    for a in honest.indices {
      for b in 0..<a where digests[a] != digests[b] && world.isLinked(honest[a].node.slot, honest[b].node.slot) {
        return "nodes \(honest[b].node.slot) and \(honest[a].node.slot) hold different statements"
      }
    }
    return ended.wordOfEndedThatIsNotHeard(honest)
  }

  private func difference(in group: [NodeProcess], _ partition: PartitionID) -> String? {
    guard let first = group.first else { return nil }
    let room = world.roomLife?.rooms.first { world.fleet.partition($0) == partition }
    if let room, let difference = difference(in: group, of: room, partition) { return difference }
    let mine = first.mesh.partitions[partition]?.log
    for other in group.dropFirst() where room.map({ areToTell(first, other, of: $0) }) ?? true {
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
  private func difference(in group: [NodeProcess], of name: PartitionName, _ partition: PartitionID) -> String? {
    func said(_ process: NodeProcess) -> Set<Digest> { Set(process.mesh.authority.statements(of: name.text).map(\.id)) }
    for process in group {
      let linked = world.nodes.compactMap(\.process).filter {
        $0 !== process && $0.node.isHonest && world.isLinked($0.node.slot, process.node.slot)
          && $0.mesh.interest.wants(partition, name: name)
      }
      for other in linked {
        let isMeant = isIn(other, name, by: process)
        let isIn = group.contains { $0 === other }
        guard isMeant != isIn || isIn && said(process) != said(other) else { continue }
        guard areToTell(process, other, of: name) else { continue }
        let (mine, others) = (said(process), said(other))
        return isMeant == isIn
          ? "nodes \(process.node.slot) and \(other.node.slot) hold \(mine.subtracting(others).count) and \(others.subtracting(mine).count) statements that the other lacks"
          : "node \(other.node.slot) takes itself \(isIn ? "" : "not ")to be in the room, unlike node \(process.node.slot)"
      }
    }
    return nil
  }

  /// Of two whom others let in, who want the room no more, neither may know that the other is in, and then neither may tell.
  private func areToTell(_ process: NodeProcess, _ other: NodeProcess, of room: PartitionName) -> Bool {
    isIn(other, room, by: process) || isIn(process, room, by: other)
  }

  private func isIn(_ other: NodeProcess, _ room: PartitionName, by process: NodeProcess) -> Bool {
    rights(of: process.node).level(of: other.node.key.publicKey, in: room.text) >= .carry
  }

  /// Have all that reach one another a session, and is none half open?
  func areAllConnected() -> Bool {
    world.connections.values.allSatisfy { !$0.pipes.contains(where: \.isSilent) }
      && (world.plan.isHarbour ? areInOneMesh() : world.nodes.compactMap(\.process).allSatisfy(isConnected))
  }

  /// Does a way lead over sessions from each process to every other?
  private func areInOneMesh() -> Bool {
    let processes = world.nodes.compactMap(\.process)
    guard let first = processes.first else { return true }
    var (reached, next) = (Set([first.node.slot]), [first])
    while let process = next.popLast() {
      let linked = slots(linkedWith: process)
      let fresh = processes.filter { linked.contains($0.node.slot) && !reached.contains($0.node.slot) }
      reached.formUnion(fresh.map(\.node.slot))
      next += fresh
    }
    return reached.count == processes.count
  }

  private func slots(linkedWith process: NodeProcess) -> Set<Int> {
    Set(process.mesh.sessions.ids.compactMap { process.ports.links[$0]?.remoteSlot })
  }

  /// Has the process a session with every node that it can reach? Nodes, not devices: of copies of one device each counts.
  private func isConnected(_ process: NodeProcess) -> Bool {
    let peers = slots(linkedWith: process)
    return world.nodes.compactMap(\.process).allSatisfy {
      $0 === process || !world.isLinked($0.node.slot, process.node.slot) || peers.contains($0.node.slot)
    }
  }
}
