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

  /// What a node says between two frames, where it runs the later build.
  func newsOfLaterBuild(from process: NodeProcess, on session: SessionID) -> [[UInt8]] {
    guard options.builds != nil, !process.node.isEarlierBuild, let hello = process.mesh.sessions[session]?.hello,
      random.chance(20)
    else { return [] }
    let numbers = LaterNews.numbers(of: formats(of: process.node), to: hello)
    for number in numbers { count(LaterNews.isForAnybody(number) ? .saidOptional : .saidFeature) }
    return numbers.map(LaterNews.frame)
  }
}
