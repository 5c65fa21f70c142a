/// What others are told of whom this node is linked with: what a neighbour of a peer brought, that neighbour brings to the peer
/// as well.
struct Neighbours: Sendable {
  /// Devices that were linked with, and when others are told that they are no more.
  private var lost: [DeviceID: MonotonicTime] = [:]

  /// The session is live: each other peer hears of this one, and this one of all others. Over a link that keeps something back
  /// nobody brings that: whose link is such is not named.
  func tell(of id: SessionID, _ sessions: SessionTable, _ ledger: Ledger, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    tellOthers(to: session, sessions, ledger, &step)
    guard session.passage.isEverything else { return }
    let news = NeighbourNews(added: [DeviceMark(session.device)])
    for other in others(than: session, sessions) { tell(news, to: other, ledger, &step) }
  }

  private func tellOthers(to session: PeerSession, _ sessions: SessionTable, _ ledger: Ledger, _ step: inout Step) {
    let named = others(than: session, sessions).filter(\.passage.isEverything).map { DeviceMark($0.device) }
    tell(NeighbourNews(added: Set(named)), to: session, ledger, &step)
  }

  /// To a peer that is a member again: with whom this node is linked no more since it was told, and with whom it is linked.
  func tellAgain(
    to id: SessionID, _ sessions: inout SessionTable, _ pulls: inout PullPolicy, _ ledger: Ledger, _ step: inout Step
  ) {
    let gone = sessions[id]?.sparing?.takeWithheld() ?? []
    if !gone.isEmpty { tellGone(gone, to: id, &sessions, &pulls, ledger, &step) }
    if let session = sessions[id] { tellOthers(to: session, sessions, ledger, &step) }
  }

  private func others(than session: PeerSession, _ sessions: SessionTable) -> [PeerSession] {
    sessions.values.filter { $0.id != session.id && $0.phase == .live && $0.device != session.device }
      .sorted { $0.id < $1.id }
  }

  /// The session has ended. The device may be back at once: of two connections that crossed one is closed.
  mutating func lose(_ session: PeerSession, _ step: Step) {
    guard session.phase == .live else { return }
    lost[session.device] = step.now.advanced(byMilliseconds: step.configuration.returnMilliseconds)
  }

  /// Who has not come back is told of. What was taken from him is announced first, so that nobody sends it once more.
  mutating func tellLost(
    _ sessions: inout SessionTable, _ pulls: inout PullPolicy, _ ledger: Ledger, _ step: inout Step
  ) {
    let due = lost.filter { $0.value <= step.now }.keys
    guard !due.isEmpty else { return }
    for device in due { lost[device] = nil }
    let back = Set(sessions.values.lazy.filter { $0.phase == .live }.map(\.device))
    let gone = Set(due.filter { !back.contains($0) }.map { DeviceMark($0) })
    guard !gone.isEmpty else { return }
    for id in sessions.ids where sessions[id]?.phase == .live {
      tellGone(gone, to: id, &sessions, &pulls, ledger, &step)
    }
  }

  private func tellGone(
    _ gone: Set<DeviceMark>, to id: SessionID, _ sessions: inout SessionTable, _ pulls: inout PullPolicy,
    _ ledger: Ledger, _ step: inout Step
  ) {
    pulls.announceGathered(id, &sessions, ledger, &step)
    guard let session = sessions[id] else { return }
    if ledger.authority.isEnded(session.peer) { sessions[id]?.sparing?.withhold(gone) }
    tell(NeighbourNews(removed: gone), to: session, ledger, &step)
  }

  private func tell(_ news: NeighbourNews, to session: PeerSession, _ ledger: Ledger, _ step: inout Step) {
    guard session.sparing != nil, news != NeighbourNews(), !ledger.authority.isEnded(session.peer) else { return }
    step.emit(.send(session.id, .neighbours(news)))
  }
}

extension SessionTable {
  /// With whom a peer came to be linked, and with whom it is no more: what he was to bring it, it has from here, and would
  /// leave to this node to pass that on.
  mutating func hear(_ news: NeighbourNews, from id: SessionID, _ ledger: Ledger, _ step: Step) {
    self[id]?.hear(news, ledger, step)
    if !news.removed.isEmpty { bringWhatIsLeft(to: id, from: news.removed, ledger, step) }
  }

  /// The peer does not get from others what was left to it for those who are not linked with them: somebody else passes it on.
  ///
  /// - Parameters:
  ///   - bringers: who brings it nothing; nil: nobody does.
  ///   - partition: nil: any.
  mutating func bringWhatIsLeft(
    to id: SessionID, from bringers: Set<DeviceMark>? = nil, of partition: PartitionID? = nil, _ ledger: Ledger,
    _ step: Step
  ) {
    guard let neighbour = self[id]?.device else { return }
    for other in ids where other != id {
      let partitions = self[other]?.live?.passedOn.filter { partition ?? $0 == $0 }.sorted() ?? []
      for partition in partitions {
        let held = self[id]?.live?.streams[partition]?.known ?? VersionVector()
        let chains = self[other]?.live?.takePassedOn(
          by: DeviceMark(neighbour), from: bringers, of: partition, beyond: held)
        guard let chains, !chains.isEmpty else { continue }
        // Others have left it to the neighbour, too. They hear what it is linked with, and not what it asks this node.
        bring(chains, of: partition, to: other, isHeardByAll: bringers != nil, ledger, step)
      }
    }
  }

  /// Where the next to do it is this node itself, or nobody else knows that somebody has to.
  private mutating func bring(
    _ chains: [LeftRuns.Chain], of partition: PartitionID, to id: SessionID, isHeardByAll: Bool, _ ledger: Ledger,
    _ step: Step
  ) {
    guard let name = ledger.partitions.look(at: partition, \.name), let device = look(at: id, \.device) else { return }
    var starts: [ReplicaID: UInt64] = [:]
    for chain in chains where self[id]?.isLinked(with: chain.bringer) == false {
      let next = linked(with: chain.bringer, followingFrom: [chain.replica: chain.first], partition, name, ledger)
        .filter { $0.device != chain.neighbour }.nearest(to: DeviceMark(device), than: ledger.mark)
      if let next, isHeardByAll {
        self[id]?.live?.leave(chain, of: partition, to: next)
      } else {
        starts[chain.replica] = min(starts[chain.replica] ?? .max, chain.first)
      }
    }
    if !starts.isEmpty { self[id]?.live?.takeBackLeft(of: partition, .from(starts), step) }
  }
}
