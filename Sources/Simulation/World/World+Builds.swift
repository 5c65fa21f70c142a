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
      countUnread(at: node)
      oracle.upgraded(node)
      crash(node)
    }
  }

  /// What had come to a node of the earlier build that only the later one reads.
  private func countUnread(at node: SimulatedNode) {
    guard let builds = options.builds else { return }
    let (earlier, book) = (builds.earlier, node.directory.book)
    for statement in book.statements.values {
      switch statement.body {
      case .rule where !earlier.statementKinds.contains(.rule): count(.unreadKind)
      case .grant(let grant):
        if case .user = grant.subject, !earlier.grantSubjects.contains(.user) { count(.unreadShape) }
      default: break
      }
    }
    let runs = book.partitions.values.lazy.flatMap { $0.runs.values.joined() }
    for change in runs.lazy.flatMap(\.decoded.changes) {
      if change.header.codec == TestBuild.codec { count(.unreadCodec) }
      if change.header.extensions.contains(TestBuild.critical) { count(.unreadCritical) }
      if change.header.extensions.contains(TestBuild.informative) { count(.unreadInformative) }
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
