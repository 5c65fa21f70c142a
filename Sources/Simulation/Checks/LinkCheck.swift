import Engine
import Replication

/// Which links nodes keep and which they give up (decision 17), judged by the sessions that there are.
struct LinkCheck: Check {
  let known: Knowledge
  /// Since when a process has more links than a node is to have.
  private var crowdedSince: [Life: UInt64] = [:]
  /// Connections that one end closed because there was another.
  private var closedAsSecond: [UInt64: Closing] = [:]

  init(_ known: Knowledge) { self.known = known }

  private struct Life: Hashable {
    let slot: Int
    let life: Int
  }

  private struct Closing {
    let slot: Int
    /// The one that it kept; nil where that is not clear.
    let kept: UInt64?
  }

  mutating func turnEnded(_ process: NodeProcess) {
    let life = Life(slot: process.node.slot, life: process.life)
    guard LinkCheck.linkedDevices(of: process).count > DialPolicy.Limits.linksAtMost else {
      return crowdedSince[life] = nil
    }
    crowdedSince[life] = crowdedSince[life] ?? world.clock
  }

  /// This end closes the connection, for there is another one between the two.
  mutating func closesSecond(_ link: NodePorts.Link, _ node: SimulatedNode) {
    let (slot, other) = (node.slot, link.remoteSlot)
    // Of copies of one device a peer has a session with one alone: that may be the other one.
    guard world.nodes[other].isHonest, hasNoCopy(slot), hasNoCopy(other) else { return }
    let others = world.connections.values.filter { connection in
      connection.number != link.connection && Set(connection.ends.map(\.slot)) == [slot, other]
        && !connection.ends.contains { $0.slot == slot && $0.isClosed }
    }
    let kept = others.count == 1 ? others[0].number : nil
    closedAsSecond[link.connection] = Closing(slot: slot, kept: kept)
    // What one end closed before, for a third that is gone by now, says nothing of this choice.
    guard let kept, let there = closedAsSecond[kept], there.slot == other, there.kept == link.connection else { return }
    world.violate("link", "nodes \(slot) and \(other) close \(link.connection) and \(kept), each for the other one")
  }

  private func hasNoCopy(_ slot: Int) -> Bool { world.nodes.count { $0.key == world.nodes[slot].key } == 1 }

  mutating func ended(_ connection: UInt64) { closedAsSecond[connection] = nil }

  /// The process ends its sessions with a device, for others or because it has too many.
  func givesUp(_ device: DeviceID, asSurplus isSurplus: Bool, _ process: NodeProcess) {
    isSurplus ? checkSurplus(device, process) : checkTurn(process)
  }

  /// Not before it is clear that the crowd stays, and never so that less than a few are left which the node chose itself.
  private func checkSurplus(_ device: DeviceID, _ process: NodeProcess) {
    let slot = process.node.slot
    guard let since = crowdedSince[Life(slot: slot, life: process.life)],
      world.clock >= since + DialPolicy.Limits.crowdedIntervalMilliseconds / 2
    else { return world.violate("link", "node \(slot) gives up a link as soon as it has too many") }
    let links = process.engine.links.table.links.values
    let isOwn = links.allSatisfy { $0.device != device || $0.dialled != nil }
    let chosen = Set(links.filter { $0.dialled != nil }.compactMap(\.device)).subtracting([device])
    guard isOwn, chosen.count < DialPolicy.Limits.leastOutgoingLinks else { return }
    world.violate("link", "node \(slot) keeps \(chosen.count) of the links that it chose, and many of others")
  }

  /// Only for somebody whom it could dial, and where there is no room for everybody. Where a copy of somebody listens whom it never
  /// dialled there, it cannot know that it is linked with that device.
  private func checkTurn(_ process: NodeProcess) {
    let slot = process.node.slot
    if world.nodes.count <= DialPolicy.Limits.linksOfAll + 1, !world.plan.faults.contains(.falseSighting) {
      return world.violate("link", "node \(slot) gives up a link though it has room for all \(world.nodes.count)")
    }
    guard !world.isTroubled, world.clock > world.calmSince + LinkCheck.patience else { return }
    let linked = LinkCheck.linkedDevices(of: process)
    let waits = world.nodes.contains { other in
      let device = DeviceID.derived(from: other.key.publicKey, FakeCryptography.hash)
      return other.process != nil && other.key != process.node.key
        && (!linked.contains(device) || !hasNoCopy(other.slot)) && world.isLinked(other.slot, slot)
    }
    if !waits { world.violate("link", "node \(slot) gives up a link for nobody") }
  }

  /// Nobody waits any more who was never dialled and is not there.
  private static let patience = DialPolicy.Limits.attemptTimeoutMilliseconds

  private static func linkedDevices(of process: NodeProcess) -> Set<DeviceID> {
    Set(process.engine.links.table.links.values.compactMap(\.device))
  }
}
