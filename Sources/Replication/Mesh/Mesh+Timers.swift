extension Mesh {
  /// Deadlines are data: the shell ticks at least every ``tickMilliseconds``, sooner where ``nextDeadline`` is.
  package static let tickMilliseconds: UInt64 = 500

  package var nextDeadline: MonotonicTime? {
    if sessions.haveStatementsToSay { return MonotonicTime(milliseconds: 0) }
    return [nextRelay, sessions.nextAnnouncement, ownChainClaims.nextExpiry, trees.toldAt].compactMap { $0 }.min()
  }

  var nextRelay: MonotonicTime? { sessions.nextRelay }

  mutating func tick(_ step: inout Step, _ random: inout some RandomNumberGenerator) {
    for id in sessions.ids {
      sayStatements(id, &step)
      guard let seen = sessions.look(at: id, { TickStage($0, step) }) else { continue }
      if seen.phase == .joining, seen.isOverdue {
        // Who asked to join another fleet hears no word.
        step.emit(.note(id, .peerRefused("a handshake without end")))
        close(id, .notAMember, &step)
      } else if seen.phase != .live, seen.isOverdue {
        fail(id, .breach("a handshake without end"), &step)
      } else if step.now.millisecondsSince(seen.lastSign) > configuration.deadMilliseconds {
        fail(id, SessionEnd(.stopping, "silence"), &step)
      } else if seen.phase == .live {
        keepAlive(id, &step, &random)
        sessions[id]?.tellSpent(ledger, &step)
        sessions[id]?.relay(ledger, &step)
        if let due = seen.announcedAt, due <= step.now {
          pulls.announceGathered(id, dueAt: step.now, &sessions, ledger, &step)
        }
        pulls.askForWhatNobodyBrings(id, &sessions, ledger, &step)
        compare(id, &step, &random)
      }
    }
    foldUnfolded()
    trees.releaseWhatStandsStill(pulls.catchUps, sessions, ledger, step)
    trees.tell(&sessions, ledger, &step)
    neighbours.tellLost(&sessions, &pulls, ledger, &step)
    pulls.tick(&sessions, ledger, &step)
    // Own writes go on; who made them wait is asked no more.
    for claim in ownChainClaims.takeLapsed(step.now) {
      fail(claim.session, .breach("it claimed to hold more of what this device wrote, and showed none of it"), &step)
    }
    tickHoldings(&step)
  }

  /// After silence the peer is asked for a word: by the comparison that is due next, or else for nothing but the word. Whose turn
  /// it is asks sooner by a tick: otherwise both would ask. Who is asked has more to hear, so that it should not always be the
  /// same.
  private mutating func keepAlive(
    _ id: SessionID, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    let silence = configuration.pingMilliseconds
    let isItsTurn = sessions[id]?.pulse.asksNext == true
    let patience = isItsTurn ? silence - min(Mesh.tickMilliseconds, silence / 4) : silence
    guard sessions[id]?.pulse.ping(after: patience, step.now) == true else { return }
    let soon = step.now.advanced(byMilliseconds: configuration.antiEntropyMilliseconds / 3)
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
    guard sessions.look(at: id, { $0.mayCompare(dueBefore: time) }) == true else { return false }
    let interval = configuration.antiEntropyMilliseconds
    let jitter = UInt64.random(in: 0...max(interval / 2, 1), using: &random)
    compare(id, nextAfter: interval * 3 / 4 + jitter, &step)
    return true
  }
}

/// What a tick goes by in a session. Not the session itself: as long as somebody has a copy of that, the first change copies all of
/// its streams.
private struct TickStage {
  let phase: PeerSession.Phase
  let isOverdue: Bool
  /// When the peer last gave a sign of life.
  let lastSign: MonotonicTime
  let announcedAt: MonotonicTime?

  init(_ session: PeerSession, _ step: Step) {
    (phase, isOverdue) = (session.phase, session.isOverdue(step))
    (lastSign, announcedAt) = (max(session.pulse.lastHeard, session.lastOfStatements), session.sparing?.announcedAt)
  }
}

extension PeerSession {
  fileprivate func mayCompare(dueBefore time: MonotonicTime) -> Bool {
    isWritable && live?.comparison.isUnderWay == false && live?.comparison.isDue(time) == true
  }
}
