import Engine
import Replication
import Wire

// Two builds in one fleet.
extension World {
  func formats(of node: SimulatedNode) -> KnownFormats {
    guard let builds = options.builds else { return .all }
    return node.isEarlierBuild ? builds.earlier : builds.later
  }

  /// The earlier build gives way to the later one: a process that is not there comes back under it.
  func upgrade() {
    for node in nodes where node.isEarlierBuild {
      node.isEarlierBuild = false
      count(.upgraded)
      let logs = node.process?.mesh.partitions.values.map(\.log) ?? []
      if logs.contains(where: { $0.received != $0.accepted }) { count(.heldByEarlier) }
      oracle.upgraded(node)
      crash(node)
    }
  }

  /// What a node says between two frames, where it runs the later build: a message that anybody may pass over, and one
  /// that is for those alone who have announced that they read it.
  func newsOfLaterBuild(from process: NodeProcess, on session: SessionID) -> [[UInt8]] {
    guard let later = options.builds?.later, !process.node.isEarlierBuild,
      let hello = process.mesh.sessions[session]?.hello, random.chance(20)
    else { return [] }
    count(.saidOptional)
    var news = [World.message(World.optionalMessage)]
    guard let number = later.messages.min(), later.features != 0, hello.features & later.features == later.features
    else { return news }
    count(.saidFeature)
    news.append(World.message(number))
    return news
  }

  private static let optionalMessage: UInt64 = 70

  /// Its number, and a text that only a later build would understand.
  private static func message(_ number: UInt64) -> [UInt8] {
    var writer = CBORWriter(reserving: 16)
    writer.arrayHeader(2)
    writer.unsigned(number)
    writer.text("news")
    return writer.bytes
  }
}

extension Oracle {
  /// Between nodes of two builds nothing is a breach of the protocol. Who has lost his peer without a word says as much
  /// to nobody when his patience ends.
  func checkGoodbye(_ frame: [UInt8], by node: SimulatedNode, over link: NodePorts.Link) {
    guard world.options.builds != nil, let message = try? MessageCodec.decode(frame[...]),
      message == .goodbye(.protocolError), let connection = world.connections[link.connection],
      !connection.ends[1 - link.side].isClosed, !connection.pipes.contains(where: \.isSilent)
    else { return }
    world.violate("builds", "node \(node.slot) ends a session with a protocol error")
  }
}
