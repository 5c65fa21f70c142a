// What may be said in which phase, and who takes it.
extension Mesh {
  mutating func receive(
    _ id: SessionID, _ message: Message, _ step: inout Step, _ random: inout some RandomNumberGenerator
  ) {
    guard let session = sessions[id] else { return }
    sessions[id]?.lastHeard = step.now
    switch message {
    case .ping(let nonce): return step.emit(.send(id, .pong(nonce: nonce)))
    case .pong:
      sessions[id]?.roundTripMilliseconds = step.now.millisecondsSince(session.lastPing)
      return
    case .goodbye(let reason): return peerClosed(id, reason, &step)
    case .spent(let told) where session.hasStatements: return receiveSpent(id, told)
    case .holdings(let message) where session.hasStatements: return receiveHoldings(id, message, &step)
    default: break
    }
    switch session.phase {
    case .awaitingHello: receiveGreeting(session, message, &step)
    case .awaitingCredentials: receiveUnknown(session, message, &step)
    case .joining: outOfTurn(id, &step)
    case .exchangingStatements: receiveInExchange(session, message, &step)
    case .awaitingInterest: receiveBeforeLive(session, message, &step)
    case .live: receiveLive(id, message, &step)
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
    case .interestChange where session.isDialer: mustAskInterest(session.id)
    default: outOfTurn(session.id, &step)
    }
  }

  private mutating func receiveInExchange(_ session: PeerSession, _ message: Message, _ step: inout Step) {
    let id = session.id
    switch message {
    case .credentialRequest(let proof) where !session.isDialer: tellCredentials(id, proof, &step)
    case .statementSet(let set): receiveStatementSet(id, set, &step)
    case .statements(let list, let scope): receiveStatements(id, list, scope, &step)
    case .statementsComplete(let scope): peerStatementsComplete(id, scope, &step)
    case .interestRequest where !session.isToBeShown: tellInterest(id, &step)
    case .interest(let interest): receiveInterest(id, interest, &step)
    case .interestChange: mustAskInterest(id)
    case .summary(let summary): receiveSummary(id, summary, &step)
    default: outOfTurn(id, &step)
    }
  }

  private mutating func receiveBeforeLive(_ session: PeerSession, _ message: Message, _ step: inout Step) {
    let id = session.id
    switch message {
    case .statementSet(let set): receiveStatementSet(id, set, &step)
    case .statements(let list, let scope): receiveStatements(id, list, scope, &step)
    case .statementsComplete(let scope): peerStatementsComplete(id, scope, &step)
    case .interestRequest: tellInterest(id, &step)
    case .interest(let interest): receiveInterest(id, interest, &step)
    // The answer to our question is on its way and was made after the change.
    case .interestChange: break
    case .summary(let summary): receiveSummary(id, summary, &step)
    // They cannot be judged yet, and the peer's summary may have been made before what they are about was wanted here.
    case .vectors, .have: sessions[id]?.mustCompareAgain = true
    default: outOfTurn(id, &step)
    }
  }

  private mutating func receiveLive(_ id: SessionID, _ message: Message, _ step: inout Step) {
    switch message {
    case .statementSet(let set): receiveStatementSet(id, set, &step)
    case .statements(let list, let scope): receiveStatements(id, list, scope, &step)
    case .statementsComplete(let scope): peerStatementsComplete(id, scope, &step)
    case .interestRequest: tellInterest(id, &step)
    case .interest(let interest): peerInterestReplaced(id, interest, &step)
    case .interestChange(let added, let removed): peerInterestChanged(id, added, removed, &step)
    case .summary(let summary): receiveSummary(id, summary, &step)
    case .vectors(let list): receiveVectors(id, list, &step)
    case .pull(let stream, let part):
      guard let vector = joined(part, id, .pull(stream), &step) else { return }
      receivePull(id, stream, vector, &step)
    case .payloadPiece(let piece): receivePiece(id, piece, &step)
    case .have(let part):
      guard let vector = joined(part, id, .have, &step) else { return }
      receiveVector(id, vector, &step)
    case .chainProbe(let probe): receiveProbe(id, probe, &step)
    default: outOfTurn(id, &step)
    }
  }
}
