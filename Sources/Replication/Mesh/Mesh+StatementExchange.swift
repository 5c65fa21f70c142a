// Statements go before everything that is judged under them: where two sets differ, both learn what they lack first.
extension Mesh {
  mutating func beginStatements(_ id: SessionID, _ hello: Hello, isToBeShown: Bool, _ step: inout Step) {
    guard let session = sessions[id], let greeting = session.greeting, let stated = greeting.statedAuthority else {
      return
    }
    if names(stated, .authority, hello.authority, session) {
      guard !isToBeShown else { return fail(id, .notAMember, "not a member of this fleet", &step) }
      for batch in Mesh.batches(greeting.statementsSinceHello) { step.emit(.send(id, .statements(batch))) }
      return beginInterest(id, hello, &step)
    }
    let exchange = StatementExchange(session.isDialer ? .buckets : .tips, isToBeShown: isToBeShown)
    sessions[id]?.state = .handshake(.statements(exchange))
    if !session.isDialer {
      tell(id, .buckets(fleetStatements.buckets(cryptography.hash)), &step)
    } else if case .handshake(.unknown(_, let early?)) = session.state {
      receiveStatementSet(id, early, &step)
    }
  }

  private var fleetStatements: ScopeStatements { ScopeStatements(ledger.authority.fleetStatements) }

  private func tell(_ id: SessionID, _ content: StatementSet.Step, _ step: inout Step) {
    step.emit(.send(id, .statementSet(StatementSet(scope: "", content))))
  }

  /// Kept until the listener has brought its credentials.
  mutating func receiveEarly(_ id: SessionID, _ set: StatementSet, _ step: inout Step) {
    guard case .handshake(.unknown(let greeting, nil))? = sessions[id]?.state, case .buckets = set.step else {
      return outOfTurn(id, &step)
    }
    sessions[id]?.state = .handshake(.unknown(greeting, early: set))
  }

  mutating func receiveStatementSet(_ id: SessionID, _ set: StatementSet, _ step: inout Step) {
    guard set.scope.utf8.isEmpty else { return receiveRoomSet(id, set, &step) }
    guard let exchange = sessions[id]?.exchange else { return outOfTurn(id, &step) }
    switch (exchange.awaited, set.step) {
    case (.buckets, .buckets(let told)):
      let own = fleetStatements
      let listed = own.differing(from: told, cryptography.hash)
      sessions[id]?.exchange?.awaited = .wanted
      tell(id, .tips(listed: listed, own.list(listed)), &step)
    case (.tips, .tips(let listed, let told)): answer(id, told, in: listed, &step)
    case (.wanted, .wanted(let told)):
      sessions[id]?.exchange?.awaited = .nothing
      sendMissing(id, told, &step)
    default: outOfTurn(id, &step)
    }
  }

  /// The listener's answer. What the dialer lacks follows at once where that can be told from its tips, and otherwise once
  /// its own statements are here.
  private mutating func answer(_ id: SessionID, _ told: [IssuerTips], in buckets: UInt64, _ step: inout Step) {
    let held = fleetStatements
    let differing = held.differing(from: told, in: buckets)
    let wanted = held.wanted(of: differing)
    sessions[id]?.exchange?.awaited = .nothing
    tell(id, .wanted(wanted), &step)
    if sessions[id]?.exchange?.isToBeShown == false, wanted.isEmpty {
      sendMissing(id, differing, &step)
    } else {
      sessions[id]?.exchange?.owed = differing
    }
  }

  /// What the peer lacks by the tips that it told.
  private mutating func sendMissing(_ id: SessionID, _ told: [IssuerTips], _ step: inout Step) {
    guard let exchange = sessions[id]?.exchange else { return }
    let lacking = Set(fleetStatements.missing(by: told).map(\.id)).union(exchange.learnt)
    let missing = passable(ledger.authority.fleetStatements.filter { lacking.contains($0.id) }, to: id)
    sessions[id]?.exchange?.owed = nil
    sessions[id]?.exchange?.isAnswered = true
    sessions[id]?.outbox.put(missing.map(\.encoded), then: .complete)
    pumpStatements(id, &step)
  }

  /// The peer has been sent all that it lacked.
  mutating func statementsSaid(_ id: SessionID, _ step: inout Step) {
    step.emit(.send(id, .statementsComplete()))
    sessions[id]?.exchange?.isComplete = true
    finishStatements(id, &step)
  }

  mutating func peerStatementsComplete(_ id: SessionID, _ scope: Text, _ step: inout Step) {
    guard let session = sessions[id], scope.utf8.isEmpty else { return }
    guard let exchange = session.exchange, !exchange.peerIsComplete, exchange.awaited == .nothing else {
      return outOfTurn(id, &step)
    }
    sessions[id]?.exchange?.peerIsComplete = true
    guard hasShownItself(id, &step) else { return }
    if let owed = exchange.owed { sendMissing(id, owed, &step) } else { finishStatements(id, &step) }
  }

  /// After the peer's statements: its credentials alone are not enough.
  private mutating func hasShownItself(_ id: SessionID, _ step: inout Step) -> Bool {
    guard let session = sessions[id], session.isToBeShown else { return true }
    guard ledger.authority.member(of: session.peer) != nil else {
      fail(id, .notAMember, "its statements do not show it to be a member", &step)
      return false
    }
    sessions[id]?.exchange?.isToBeShown = false
    restateInterest(id, &step)
    return true
  }

  private mutating func finishStatements(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let hello = session.hello, let exchange = session.exchange, exchange.isComplete,
      exchange.peerIsComplete
    else { return }
    beginInterest(id, hello, &step)
  }
}
