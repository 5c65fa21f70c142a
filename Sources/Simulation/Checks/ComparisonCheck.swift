import Replication

/// Two nodes that are linked compare what they hold again and again, whatever else they tell one another: what nothing else
/// brings comes with that.
struct ComparisonCheck: Check {
  let known: Knowledge
  /// When each connection was last seen to compare, or to begin.
  private var lastCompared: [UInt64: UInt64] = [:]

  init(_ known: Knowledge) { self.known = known }

  mutating func ended(_ connection: UInt64) { lastCompared[connection] = nil }

  mutating func check(_ message: Message, by node: SimulatedNode, over link: NodePorts.Link) {
    if case .summary = message { lastCompared[link.connection] = world.clock }
    guard let last = lastCompared[link.connection], !isExcused(link) else {
      return lastCompared[link.connection] = world.clock
    }
    guard world.clock > last + limit else { return }
    world.violate("silence", "nodes \(node.slot) and \(link.remoteSlot) have not compared what they hold since \(last)")
  }

  /// Each asks within five quarters of the interval; an answer that is lost with its connection, or waits for room, is waited
  /// for meanwhile.
  private var limit: UInt64 { 3 * world.plan.mesh.antiEntropyMilliseconds + ComparisonCheck.answerMilliseconds }
  private static let answerMilliseconds: UInt64 = 5_000

  /// A liar says what it likes, and a connection on which nothing passes may be waited for.
  private func isExcused(_ link: NodePorts.Link) -> Bool {
    guard let connection = world.connections[link.connection], link.fullSince == nil else { return true }
    return connection.ends.contains { $0.isClosed || $0.stalledUntil > world.clock || world.nodes[$0.slot].liar != nil }
      || connection.pipes.contains { $0.isSilent }
  }
}
