/// What others are told of whom this node is linked with: what a neighbour of a peer brought, that neighbour brings to the peer
/// as well.
struct Neighbours: Sendable {
  /// Devices that were linked with, and when others are told that they are no more.
  private var lost: [DeviceID: MonotonicTime] = [:]

  /// The session is live: each other peer hears of this one, and this one of all others. Over a link that keeps something back
  /// nobody brings that: whose link is such is not named.
  func tell(of id: SessionID, _ sessions: SessionTable, _ ledger: Ledger, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let others = sessions.values.filter { $0.id != id && $0.phase == .live && $0.device != session.device }
    let named = others.filter(\.passage.isEverything).map { DeviceMark($0.device) }
    tell(NeighbourNews(added: Set(named)), to: session, ledger, &step)
    guard session.passage.isEverything else { return }
    let news = NeighbourNews(added: [DeviceMark(session.device)])
    for other in others.sorted(by: { $0.id < $1.id }) { tell(news, to: other, ledger, &step) }
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
      pulls.announceGathered(id, &sessions, ledger, &step)
      if let session = sessions[id] { tell(NeighbourNews(removed: gone), to: session, ledger, &step) }
    }
  }

  private func tell(_ news: NeighbourNews, to session: PeerSession, _ ledger: Ledger, _ step: inout Step) {
    guard session.sparing != nil, news != NeighbourNews(), !ledger.authority.isEnded(session.peer) else { return }
    step.emit(.send(session.id, .neighbours(news)))
  }
}
