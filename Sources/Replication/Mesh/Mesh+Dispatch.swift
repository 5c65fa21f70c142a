// What may be said in which phase, and who takes it.
extension Mesh {
  mutating func receive(
    _ id: SessionID, _ message: Message, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    guard let session = sessions[id] else { return }
    sessions[id]?.pulse.hear(step.now)
    switch message {
    case .ping(let nonce): return step.emit(.send(id, .pong(nonce: nonce)))
    case .pong:
      sessions[id]?.pulse.hearPong(step.now)
      return
    case .goodbye(let reason): return peerClosed(id, reason, &step)
    case .spent(let told) where session.hasStatements: return receiveSpent(id, told)
    case .neighbours(let news) where session.hasStatements: return receiveNeighbours(id, news, &step)
    case .holdings(let message) where session.hasStatements: return receiveHoldings(id, message, &step)
    default: break
    }
    switch session.phase {
    case .awaitingHello: receiveGreeting(session, message, &step)
    case .awaitingCredentials: receiveUnknown(session, message, &step)
    case .joining: outOfTurn(id, &step)
    case .exchangingStatements, .awaitingInterest, .live: receiveAmongMembers(session, message, &step)
    }
  }

  mutating func outOfTurn(_ id: SessionID, _ step: inout Step) {
    fail(id, .protocolError, "a message out of turn", &step)
  }

  private mutating func receiveGreeting(_ session: PeerSession, _ message: Message, _ step: inout Step) {
    switch message {
    case .hello(let hello): receiveHello(session.id, hello, &step)
    case .joinRequest(let request): receiveJoinRequest(session.id, request, &step)
    case .credentialRequest(let proof) where session.isDialer: tellCredentials(session.id, proof, &step)
    default: outOfTurn(session.id, &step)
    }
  }

  /// A listener has gone on behind its hello, and hears of the dialer's question only later.
  private mutating func receiveUnknown(_ session: PeerSession, _ message: Message, _ step: inout Step) {
    switch message {
    case .credentials(let list): receiveCredentials(session.id, list, &step)
    case .statementSet(let set) where session.isDialer: receiveEarly(session.id, set, &step)
    case .interest(let interest) where session.isDialer: receiveInterest(session.id, interest, &step)
    case .interestChange where session.isDialer: sessions[session.id]?.wishes.doubt()
    default: outOfTurn(session.id, &step)
    }
  }

  /// Once both have said hello. What only a live session takes is out of turn before.
  private mutating func receiveAmongMembers(_ session: PeerSession, _ message: Message, _ step: inout Step) {
    let id = session.id
    switch (message, session.phase) {
    case (.statementSet(let set), _): receiveStatementSet(id, set, &step)
    case (.statements(let list, let scope), _): receiveStatements(id, list, scope, &step)
    case (.statementsComplete(let scope), _): peerStatementsComplete(id, scope, &step)
    case (.credentialRequest(let proof), .exchangingStatements) where !session.isDialer:
      tellCredentials(id, proof, &step)
    case (.interestRequest, _) where !session.isToBeShown: tellInterest(id, &step)
    case (.interest(let interest), .live): peerInterestReplaced(id, interest, &step)
    case (.interest(let interest), _): receiveInterest(id, interest, &step)
    case (.interestChange(let added, let removed), .live): peerInterestChanged(id, added, removed, &step)
    case (.interestChange, .exchangingStatements): sessions[id]?.wishes.doubt()
    // The answer to our question is on its way and was made after the change.
    case (.interestChange, _): break
    case (.summary(let summary), _): receiveSummary(id, summary, &step)
    // They cannot be judged yet, and the peer's summary may have been made before what they are about was wanted here.
    case (.vectors, .awaitingInterest), (.have, .awaitingInterest): sessions[id]?.deferred?.mustCompareAgain = true
    case (_, .live): receiveLive(id, message, &step)
    default: outOfTurn(id, &step)
    }
  }

  private mutating func receiveLive(_ id: SessionID, _ message: Message, _ step: inout Step) {
    switch message {
    case .vectors(let list): receiveVectors(id, list, &step)
    case .pull(let stream, let part):
      guard let vector = joined(part, id, .pull(stream), &step) else { return }
      receivePull(id, stream, vector, &step)
    case .payloadPiece(let piece): receivePiece(id, piece, &step)
    case .have(let part):
      guard let vector = joined(part, id, .have, &step) else { return }
      receiveVector(id, vector, &step)
    case .chainProbe(let probe): sessions[id]?.receive(probe, ledger.id(of: probe.name), ledger, &step)
    default: outOfTurn(id, &step)
    }
  }
}
