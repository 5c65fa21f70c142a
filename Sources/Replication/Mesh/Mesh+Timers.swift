extension Mesh {
  /// Deadlines are data: the shell ticks at least every ``tickMilliseconds``, sooner where ``nextDeadline`` is.
  package static let tickMilliseconds: UInt64 = 500

  package var nextDeadline: MonotonicTime? {
    if hasStatementsToSay { return MonotonicTime(milliseconds: 0) }
    return [nextRelay, nextAnnouncement, ownChainClaims.nextExpiry].compactMap { $0 }.min()
  }

  var nextRelay: MonotonicTime? {
    sessions.values.lazy.compactMap { $0.live?.relays.earliest }.min()
  }

  private var nextAnnouncement: MonotonicTime? { sessions.values.lazy.compactMap { $0.sparing?.announcedAt }.min() }

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
      } else if step.now.millisecondsSince(max(session.pulse.lastHeard, session.lastOfStatements))
        > configuration.deadMilliseconds
      {
        fail(id, .stopping, "silence", &step)
      } else if session.phase == .live {
        keepAlive(id, &step, &random)
        tellSpent(id, &step)
        sessions[id]?.relay(ledger, &step)
        if let due = session.sparing?.announcedAt, due <= step.now { sessions[id]?.announceGathered(ledger, &step) }
        pullWhatNobodyBrings(id, &step)
        compare(id, &step, &random)
      }
    }
    tellLostNeighbours(&step)
    for partition in catchUps.partitions { passOnIfSilent(partition, &step) }
    endLapsedClaims(&step)
    tickHoldings(&step)
  }

  /// A handshake has its time from the last statement on: there may be many, and the way may be thin.
  private func isOverdue(_ session: PeerSession, _ now: MonotonicTime) -> Bool {
    let patience = session.outbox.isEmpty ? configuration.handshakeMilliseconds : configuration.deadMilliseconds
    return now.millisecondsSince(session.lastOfStatements) > patience
  }

  private mutating func passOnIfSilent(_ partition: PartitionID, _ step: inout Step) {
    guard let session = catchUps.session(of: partition),
      catchUps.isSilent(partition, for: configuration.leftToOthersMilliseconds, step.now),
      catchUps.isSilent(partition, for: configuration.catchUpSilenceMilliseconds, step.now)
        || mayBeLeftToOthers(partition, session)
    else { return }
    catchUps.end(partition)
    pullWherePossible(partition, &step)
    pullInOrder(session, &step)
  }

  /// The peer has sent all that it was asked for, and what it has named since others may bring, of whom none is asked while
  /// the catch-up goes on.
  private func mayBeLeftToOthers(_ partition: PartitionID, _ id: SessionID) -> Bool {
    guard let session = sessions[id], session.sparing != nil, !session.passage.isThin, hasOthers(than: id),
      let stream = session.live?.streams[partition]
    else { return false }
    let log = ledger.partitions[partition]?.log
    let ahead = stream.chainsAhead(of: log)
    return !catchUps.wasAsked(partition, for: ahead, log)
      && ahead.contains { ledger.authority.author(of: $0) != session.peer }
  }

  /// After silence the peer is asked for a word: by the comparison that is due next, or else for nothing but the word. The
  /// listener, who compares, asks sooner by a tick: otherwise both would ask, or the one whose question serves for nothing else.
  private mutating func keepAlive(
    _ id: SessionID, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    let silence = configuration.pingMilliseconds
    let patience = sessions[id]?.isDialer == true ? silence : silence - min(Mesh.tickMilliseconds, silence / 4)
    guard sessions[id]?.pulse.ping(after: patience, step.now) == true else { return }
    let soon = step.now.advanced(byMilliseconds: configuration.antiEntropyMilliseconds / 4)
    guard !beginComparison(id, dueBefore: soon, &step, &random) else { return }
    // A number of one byte.
    step.emit(.send(id, .ping(nonce: random.next() >> 60)))
  }

  /// Push is best effort; comparing summaries again and again is the truth.
  private mutating func compare(
    _ id: SessionID, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    guard sessions[id]?.live?.comparison.isUnderWay == false else {
      sessions[id]?.lapse(ledger, &step)
      return
    }
    _ = beginComparison(id, dueBefore: step.now, &step, &random)
  }

  /// Answers whether it has begun.
  private mutating func beginComparison(
    _ id: SessionID, dueBefore time: MonotonicTime, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) -> Bool {
    guard let session = sessions[id], let comparison = session.live?.comparison, !comparison.isUnderWay,
      comparison.isDue(time), session.isWritable
    else { return false }
    let interval = configuration.antiEntropyMilliseconds
    let jitter = UInt64.random(in: 0...max(interval / 2, 1), using: &random)
    compare(id, nextAfter: interval * 3 / 4 + jitter, &step)
    return true
  }
}
