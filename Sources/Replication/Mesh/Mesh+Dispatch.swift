// What may be said in which phase, and who takes it.
extension Mesh {
  mutating func receive(_ id: SessionID, _ message: Message, _ step: inout Step) throws(SessionEnd) {
    guard let session = sessions[id].map(SessionStage.init) else { return }
    sessions[id]?.pulse.hear(step.now)
    switch message {
    case .ping(let nonce):
      sessions[id]?.pulse.hearQuestion()
      return step.emit(.send(id, .pong(nonce: nonce)))
    case .pong:
      sessions[id]?.pulse.hearPong(step.now)
      return
    case .goodbye(let reason): return close(id, reason, &step)
    case .spent(let told) where session.hasStatements: return sessions[id]?.hear(told, ledger, &step) ?? ()
    case .neighbours(let news) where session.hasStatements: return receiveNews(id, news, &step)
    case .holdings(let message) where session.hasStatements: return receiveHoldings(id, message, &step)
    default: break
    }
    switch session.phase {
    case .awaitingHello: try receiveGreeting(session, message, &step)
    case .awaitingCredentials: try receiveUnknown(session, message, &step)
    case .joining: throw .outOfTurn
    case .exchangingStatements, .awaitingInterest, .live: try receiveAmongMembers(session, message, &step)
    }
  }

  private mutating func receiveGreeting(_ session: SessionStage, _ message: Message, _ step: inout Step)
    throws(SessionEnd)
  {
    switch message {
    case .hello(let hello): try receiveHello(session.id, hello, &step)
    case .joinRequest(let request): try receiveJoinRequest(session.id, request, &step)
    case .credentialRequest(let proof) where session.isDialer: try tellCredentials(session.id, proof, &step)
    default: throw .outOfTurn
    }
  }

  /// A listener has gone on behind its hello, and hears of the dialer's question only later.
  private mutating func receiveUnknown(_ session: SessionStage, _ message: Message, _ step: inout Step)
    throws(SessionEnd)
  {
    switch message {
    case .credentials(let list): try receiveCredentials(session.id, list, &step)
    case .statementSet(let set) where session.isDialer: try receiveEarly(session.id, set)
    case .interest(let interest) where session.isDialer: receiveInterest(session.id, interest, &step)
    case .interestChange where session.isDialer: sessions[session.id]?.wishes.doubt()
    default: throw .outOfTurn
    }
  }

  /// Once both have said hello. What only a live session takes is out of turn before.
  private mutating func receiveAmongMembers(_ session: SessionStage, _ message: Message, _ step: inout Step)
    throws(SessionEnd)
  {
    let id = session.id
    switch (message, session.phase) {
    case (.statementSet(let set), _): try receiveStatementSet(id, set, &step)
    case (.statements(let list, let scope), _): try receiveStatements(id, list, scope, &step)
    case (.statementsComplete(let scope), _): try peerStatementsComplete(id, scope, &step)
    case (.credentialRequest(let proof), .exchangingStatements) where !session.isDialer:
      try tellCredentials(id, proof, &step)
    case (.interestRequest, _) where !session.isToBeShown: try tellInterest(id, &step)
    case (.interest(let interest), .live): try peerInterestReplaced(id, interest, &step)
    case (.interest(let interest), _): receiveInterest(id, interest, &step)
    case (.interestChange(let added, let removed), .live): try peerInterestChanged(id, added, removed, &step)
    case (.interestChange, .exchangingStatements): sessions[id]?.wishes.doubt()
    // The answer to our question is on its way and was made after the change.
    case (.interestChange, _): break
    case (.summary(let summary), _): receiveSummary(id, summary, &step)
    // They cannot be judged yet, and the peer's summary may have been made before what they are about was wanted here.
    case (.vectors, .awaitingInterest), (.have, .awaitingInterest): sessions[id]?.deferred?.mustCompareAgain = true
    case (_, .live): try receiveLive(id, message, &step)
    default: throw .outOfTurn
    }
  }

  private mutating func receiveLive(_ id: SessionID, _ message: Message, _ step: inout Step) throws(SessionEnd) {
    switch message {
    case .vectors(let list): try receiveVectors(id, list, &step)
    case .pull(let stream, let part):
      guard let vector = try sessions[id]?.live?.join(part, .pull(stream)) else { return }
      receivePull(id, stream, vector, &step)
    case .payloadPiece(let piece): try sessions[id]?.receive(piece, ledger, &step)
    case .have(let part):
      guard let vector = try sessions[id]?.live?.join(part, .have) else { return }
      receiveVector(id, vector, &step)
    case .pushChoice(let choice): receiveChoice(id, choice, step)
    case .chainProbe(let probe): sessions[id]?.receive(probe, ledger.id(of: probe.name), ledger, &step)
    default: throw .outOfTurn
    }
  }
}

/// What decides who takes a message of a session. Not the session itself: as long as somebody has a copy of that, the first change
/// copies all of its streams.
private struct SessionStage {
  let id: SessionID
  let phase: PeerSession.Phase
  let isDialer: Bool
  let hasStatements: Bool
  let isToBeShown: Bool

  init(_ session: PeerSession) {
    (id, phase, isDialer) = (session.id, session.phase, session.isDialer)
    (hasStatements, isToBeShown) = (session.hasStatements, session.isToBeShown)
  }
}
