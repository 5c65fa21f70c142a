// Statements go before everything that is judged under them: where two sets differ, both learn what they lack first.
extension Mesh {
  mutating func beginStatements(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id], let stated = session.statedAuthority else { return }
    if names(stated, .authority, hello.authority, session) {
      guard !session.isToBeShown else { return fail(id, .notAMember, "not a member of this fleet", &step) }
      for batch in Mesh.batches(session.statementsSinceHello) { step.emit(.send(id, .statements(batch))) }
      return beginInterest(id, hello, &step)
    }
    sessions[id]?.phase = .exchangingStatements
    if session.isDialer {
      sessions[id]?.exchange.awaited = .buckets
      if let early = session.exchange.early { receiveStatementSet(id, early, &step) }
    } else {
      sessions[id]?.exchange.awaited = .tips
      tell(id, .buckets(fleetStatements.buckets(cryptography.hash)), &step)
    }
  }

  private var fleetStatements: ScopeStatements { ScopeStatements(ledger.authority.fleetStatements) }

  private func tell(_ id: SessionID, _ content: StatementSet.Step, _ step: inout Step) {
    step.emit(.send(id, .statementSet(StatementSet(scope: "", content))))
  }

  /// Kept until the listener has brought its credentials.
  mutating func receiveEarly(_ id: SessionID, _ set: StatementSet, _ step: inout Step) {
    guard sessions[id]?.exchange.early == nil, case .buckets = set.step else { return outOfTurn(id, &step) }
    sessions[id]?.exchange.early = set
  }

  mutating func receiveStatementSet(_ id: SessionID, _ set: StatementSet, _ step: inout Step) {
    guard set.scope.utf8.isEmpty else { return receiveRoomSet(id, set, &step) }
    guard let session = sessions[id] else { return }
    switch (session.exchange.awaited, set.step) {
    case (.buckets, .buckets(let told)):
      let own = fleetStatements
      let listed = own.differing(from: told, cryptography.hash)
      sessions[id]?.exchange.awaited = .wanted
      tell(id, .tips(listed: listed, own.list(listed)), &step)
    case (.tips, .tips(let listed, let told)): answer(id, told, in: listed, &step)
    case (.wanted, .wanted(let told)):
      sessions[id]?.exchange.awaited = .nothing
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
    sessions[id]?.exchange.awaited = .nothing
    tell(id, .wanted(wanted), &step)
    if sessions[id]?.isToBeShown == false, wanted.isEmpty {
      sendMissing(id, differing, &step)
    } else {
      sessions[id]?.exchange.owed = differing
    }
  }

  /// What the peer lacks by the tips that it told.
  private mutating func sendMissing(_ id: SessionID, _ told: [IssuerTips], _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let lacking = Set(fleetStatements.missing(by: told).map(\.id)).union(session.exchange.learnt)
    let missing = passable(ledger.authority.fleetStatements.filter { lacking.contains($0.id) }, to: id)
    sessions[id]?.exchange.owed = nil
    sessions[id]?.exchange.isAnswered = true
    sessions[id]?.outbox.put(missing.map(\.encoded), then: .complete)
    pumpStatements(id, &step)
  }

  /// The peer has been sent all that it lacked.
  mutating func statementsSaid(_ id: SessionID, _ step: inout Step) {
    step.emit(.send(id, .statementsComplete()))
    sessions[id]?.exchange.isComplete = true
    finishStatements(id, &step)
  }

  mutating func peerStatementsComplete(_ id: SessionID, _ scope: Text, _ step: inout Step) {
    guard let session = sessions[id], scope.utf8.isEmpty else { return }
    guard session.phase == .exchangingStatements, !session.exchange.peerIsComplete, session.exchange.awaited == .nothing
    else {
      return outOfTurn(id, &step)
    }
    sessions[id]?.exchange.peerIsComplete = true
    guard hasShownItself(id, &step) else { return }
    if let owed = session.exchange.owed { sendMissing(id, owed, &step) } else { finishStatements(id, &step) }
  }

  /// After the peer's statements: its credentials alone are not enough.
  private mutating func hasShownItself(_ id: SessionID, _ step: inout Step) -> Bool {
    guard let session = sessions[id], session.isToBeShown else { return true }
    guard ledger.authority.member(of: session.peer) != nil else {
      fail(id, .notAMember, "its statements do not show it to be a member", &step)
      return false
    }
    sessions[id]?.isToBeShown = false
    restateInterest(id, &step)
    return true
  }

  private mutating func finishStatements(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let hello = session.hello, session.phase == .exchangingStatements,
      session.exchange.isComplete, session.exchange.peerIsComplete
    else { return }
    beginInterest(id, hello, &step)
  }
}

/// Where one session's exchange of statements stands.
struct StatementExchange: Sendable {
  /// Which step the peer has to say next.
  enum Awaited: Sendable {
    case nothing
    case buckets
    case tips
    case wanted
  }

  var awaited = Awaited.nothing
  /// What came before the peer had brought its credentials.
  var early: StatementSet?
  /// The peer's tips of those issuers of whom it holds something else: what it lacks waits for its own statements.
  var owed: [IssuerTips]?
  /// Learnt since the exchange began, and not among what the peer is being sent.
  var learnt: Set<Digest> = []
  /// What the peer lacks is on its way.
  var isAnswered = false
  /// All of it was sent.
  var isComplete = false
  var peerIsComplete = false
}
