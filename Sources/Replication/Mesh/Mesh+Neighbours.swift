// Who is linked with whom, and what follows: what a neighbour of a peer brought, that neighbour brings to the peer as well.
extension Mesh {
  /// Both ends know the rule.
  func sparing(with hello: Hello) -> CopySparing? {
    cryptography.formats.features & hello.features & KnownFormats.Feature.neighbours == 0 ? nil : CopySparing()
  }

  /// The session is live: each other peer hears of this one, and this one of all others. Over a link that keeps something back
  /// nobody brings that: whose link is such is not named.
  mutating func tellNeighbour(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let others = sessions.values.filter { $0.id != id && $0.phase == .live && $0.device != session.device }
    let named = others.filter(\.passage.isEverything).map { DeviceMark($0.device) }
    tell(NeighbourNews(added: Set(named)), to: id, &step)
    guard session.passage.isEverything else { return }
    let mark = DeviceMark(session.device)
    for other in others.map(\.id).sorted() { tell(NeighbourNews(added: [mark]), to: other, &step) }
  }

  /// The session has ended. The device may be back at once: of two connections that crossed one is closed.
  mutating func noteLostNeighbour(_ lost: PeerSession, _ now: MonotonicTime) {
    guard lost.phase == .live else { return }
    lostNeighbours[lost.device] = now.advanced(byMilliseconds: configuration.returnMilliseconds)
  }

  /// Who has not come back is told of. What was taken from him is announced first, so that nobody sends it once more.
  mutating func tellLostNeighbours(_ step: inout Step) {
    let due = lostNeighbours.filter { $0.value <= step.now }.keys
    guard !due.isEmpty else { return }
    for device in due { lostNeighbours[device] = nil }
    let back = Set(sessions.values.lazy.filter { $0.phase == .live }.map(\.device))
    let lost = Set(due.filter { !back.contains($0) }.map { DeviceMark($0) })
    guard !lost.isEmpty else { return }
    for id in sessions.keys.sorted() where sessions[id]?.phase == .live {
      sessions[id]?.announceGathered(ledger, &step)
      tell(NeighbourNews(removed: lost), to: id, &step)
    }
  }

  private func tell(_ news: NeighbourNews, to id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.sparing != nil, news != NeighbourNews(),
      !ledger.authority.isEnded(session.peer)
    else { return }
    step.emit(.send(id, .neighbours(news)))
  }

  mutating func receiveNeighbours(_ id: SessionID, _ news: NeighbourNews, _ step: inout Step) {
    sessions[id]?.sparing?.hear(news)
    sessions[id]?.leaveWaiting(to: news.added, ledger)
    guard !news.removed.isEmpty else { return }
    sessions[id]?.bringWhatOthersDid(step)
  }

  /// What was named and is brought by nobody is asked of who has named it: he may have left it to somebody. Not again before
  /// the next comparison, since a pull voids what is on its way, and over a thin link that may take longer than this waits.
  mutating func pullWhatNobodyBrings(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.passage.isThin == false, hasOthers(than: id) else { return }
    let patience = configuration.broughtMilliseconds
    for partition in sessions[id]?.sparing?.behind(for: patience, step.now) ?? [] {
      guard let session = sessions[id], let stream = session.live?.streams[partition],
        stream.isAhead(of: ledger.partitions[partition]?.log)
      else {
        sessions[id]?.sparing?.noteLevel(partition)
        continue
      }
      guard catchUps.session(of: partition) == nil, isItsTurnToCome(session, partition, stream.name),
        isSilent(partition, for: patience, step.now)
      else { continue }
      sessions[id]?.sparing?.notePulled(
        partition, patientUntil: step.now.advanced(byMilliseconds: configuration.antiEntropyMilliseconds))
      catchUps.begin(partition, on: id, for: stream.known, step.now)
      sessions[id]?.pull(partition, ledger, &step)
    }
  }

  func hasOthers(than id: SessionID) -> Bool { sessions.values.contains { $0.id != id && $0.phase == .live } }

  private func isSilent(_ partition: PartitionID, for milliseconds: UInt64, _ now: MonotonicTime) -> Bool {
    sessions.values.allSatisfy {
      $0.live?.streams[partition]?.incoming.isSilent(for: milliseconds, now) ?? true
    }
  }
}

extension PeerSession {
  /// The two ends of a session both know whom the other is linked with.
  func isLinked(with device: DeviceMark?) -> Bool { device.map { sparing?.neighbours.contains($0) == true } ?? false }

  mutating func announceGathered(_ ledger: Ledger, _ step: inout Step) {
    for (partition, vector) in sparing?.takeGathered() ?? [] where isInScope(partition, vector.name, ledger) {
      send(vector, &step) { .have($0) }
    }
  }

  /// The peer is linked now with who brought what waits to be passed on to it.
  mutating func leaveWaiting(to neighbours: Set<DeviceMark>, _ ledger: Ledger) {
    for (partition, chains) in live?.relays.waiting(from: neighbours) ?? [] {
      guard let log = ledger.partitions[partition]?.log else { continue }
      for chain in chains {
        live?.streams[partition]?.leaveToOthers(chain.replica, chain.first, through: chain.last, log)
      }
      if live?.streams[partition]?.lacks(log) == false { live?.relays.end(partition) }
    }
  }

  /// A neighbour of the peer is gone: nothing more is left to others, and what the peer does not announce meanwhile is sent.
  mutating func bringWhatOthersDid(_ step: Step) {
    let due = step.now.advanced(byMilliseconds: step.configuration.relayMilliseconds)
    let left = live?.streams.filter { !$0.value.outgoing.leftToOthers.isEmpty }.map(\.key) ?? []
    for partition in left {
      live?.streams[partition]?.outgoing.leftToOthers = VersionVector()
      live?.relays.begin(partition, at: due)
    }
  }
}
