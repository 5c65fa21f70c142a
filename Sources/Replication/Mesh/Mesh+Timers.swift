extension Mesh {
  /// Deadlines are data: the shell ticks at least every ``tickMilliseconds``, sooner where ``nextDeadline`` is.
  package static let tickMilliseconds: UInt64 = 500

  package var nextDeadline: MonotonicTime? {
    if hasStatementsToSay { return MonotonicTime(milliseconds: 0) }
    return [nextRelay, ownChainClaims.nextExpiry].compactMap { $0 }.min()
  }

  var nextRelay: MonotonicTime? {
    sessions.values.lazy.compactMap { $0.relaysDue.values.min() }.min()
  }

  mutating func tick(_ step: inout Step, _ random: inout some RandomNumberGenerator) {
    for id in sessions.keys.sorted() {
      pumpStatements(id, &step)
      guard let session = sessions[id] else { continue }
      if session.phase == .joining, isOverdue(session, step.now) {
        // Who asked to join another fleet hears no word.
        step.emit(.note(id, .peerRefused("a handshake without end")))
        step.emit(.close(id, .notAMember))
        closed(id, &step)
      } else if session.phase != .live, isOverdue(session, step.now) {
        fail(id, .protocolError, "a handshake without end", &step)
      } else if step.now.millisecondsSince(max(session.lastHeard, session.lastOfStatements))
        > configuration.deadMilliseconds
      {
        fail(id, .stopping, "silence", &step)
      } else if session.phase == .live {
        keepAlive(session, &step, &random)
        tellSpent(id, &step)
        relay(session, &step)
        compare(session, &step, &random)
      }
    }
    for partition in catchUps.keys.sorted() {
      passOnSilent(partition, &step)
    }
    endLapsedClaims(&step)
    tickHoldings(&step)
  }

  /// A handshake has its time from the last statement on: there may be many, and the way may be thin.
  private func isOverdue(_ session: PeerSession, _ now: MonotonicTime) -> Bool {
    let patience = session.outbox.isEmpty ? configuration.handshakeMilliseconds : configuration.deadMilliseconds
    return now.millisecondsSince(session.lastOfStatements) > patience
  }

  private mutating func keepAlive(
    _ session: PeerSession, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    guard step.now.millisecondsSince(session.lastHeard) >= configuration.pingMilliseconds,
      step.now.millisecondsSince(session.lastPing) >= configuration.pingMilliseconds
    else { return }
    sessions[session.id]?.lastPing = step.now
    step.emit(.send(session.id, .ping(nonce: random.next())))
  }

  private mutating func relay(_ session: PeerSession, _ step: inout Step) {
    for partition in session.relaysDue.filter({ $0.value <= step.now }).keys.sorted() {
      sessions[session.id]?.relaysDue[partition] = nil
      pump(session.id, partition, &step)
    }
  }

  /// Push is best effort; comparing summaries again and again is the truth.
  private mutating func compare(
    _ session: PeerSession, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    if session.comparison.isUnderWay { return lapse(session, &step) }
    guard step.now >= session.nextComparison, session.isWritable else { return }
    let interval = configuration.antiEntropyMilliseconds
    let jitter = UInt64.random(in: 0...max(interval / 2, 1), using: &random)
    sessions[session.id]?.nextComparison = step.now.advanced(byMilliseconds: interval * 3 / 4 + jitter)
    sessions[session.id]?.earlyComparisons = 0
    for partition in session.streams.keys { sessions[session.id]?.streams[partition]?.forks.beginComparison() }
    ask(session.id, &step)
  }

  /// A comparison that the peer does not go on with: what waited for its end is told.
  private mutating func lapse(_ session: PeerSession, _ step: inout Step) {
    guard step.now.millisecondsSince(session.comparison.since) > configuration.catchUpSilenceMilliseconds else {
      return
    }
    let changed = Set(session.comparison.changed.keys)
    sessions[session.id]?.comparison.enter(.none, step.now)
    sessions[session.id]?.rooms.concludeComparison()
    sendVectors(session.id, changed, &step)
  }

  private mutating func passOnSilent(_ partition: PartitionID, _ step: inout Step) {
    guard let catchUp = catchUps[partition],
      step.now.millisecondsSince(catchUp.progress) > configuration.catchUpSilenceMilliseconds
    else { return }
    catchUps[partition] = nil
    pullWherePossible(partition, &step)
    pullInOrder(catchUp.session, &step)
  }
}
