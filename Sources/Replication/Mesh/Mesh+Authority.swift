extension Mesh {
  /// Statements go before everything that is judged under them.
  mutating func beginStatements(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if hello.authority == session.statedAuthority {
      guard !session.isToBeShown else { return fail(id, .notAMember, "not a member of this fleet", &step) }
      for batch in Mesh.batches(session.statementsSinceHello) { step.emit(.send(id, .statements(batch))) }
      return beginInterest(id, hello, &step)
    }
    sessions[id]?.phase = .exchangingStatements(peerIsComplete: false, isComplete: false)
    step.emit(.send(id, .statementIDs(statements.keys.sorted())))
  }

  mutating func sendMissingStatements(_ id: SessionID, _ held: [TipHash], _ step: inout Step) {
    guard let session = sessions[id], case .exchangingStatements(let peerIsComplete, false) = session.phase,
      !session.hasAnsweredIDs
    else { return }
    if session.isToBeShown, !session.isDialer, !peerIsComplete {
      // The dialer sends first what is missing here.
      if session.postponedIDs == nil { sessions[id]?.postponedIDs = held }
      return
    }
    let held = Set(held)
    let missing = authority.fleetStatements.filter { !held.contains($0.id.tip) }
    sessions[id]?.hasAnsweredIDs = true
    sessions[id]?.outbox.put(missing.map(\.encoded), then: .complete)
    pumpStatements(id, &step)
  }

  /// The peer has been sent all that it lacked.
  mutating func statementsSaid(_ id: SessionID, _ step: inout Step) {
    guard case .exchangingStatements(let peerIsComplete, false)? = sessions[id]?.phase else { return }
    step.emit(.send(id, .statementsComplete))
    sessions[id]?.phase = .exchangingStatements(peerIsComplete: peerIsComplete, isComplete: true)
    finishStatements(id, &step)
  }

  mutating func peerStatementsComplete(_ id: SessionID, _ step: inout Step) {
    guard case .exchangingStatements(_, let isComplete)? = sessions[id]?.phase else { return }
    sessions[id]?.phase = .exchangingStatements(peerIsComplete: true, isComplete: isComplete)
    guard hasShownItself(id, &step) else { return }
    if let held = sessions[id]?.postponedIDs {
      sessions[id]?.postponedIDs = nil
      sendMissingStatements(id, held, &step)
    } else {
      finishStatements(id, &step)
    }
  }

  /// After the peer's statements: its credentials alone are not enough.
  private mutating func hasShownItself(_ id: SessionID, _ step: inout Step) -> Bool {
    guard let session = sessions[id], session.isToBeShown else { return true }
    guard let hello = session.hello, authority.member(of: hello.device) != nil else {
      fail(id, .notAMember, "its statements do not show it to be a member", &step)
      return false
    }
    sessions[id]?.isToBeShown = false
    restateInterest(id, &step)
    return true
  }

  private mutating func finishStatements(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let hello = session.hello,
      session.phase == .exchangingStatements(peerIsComplete: true, isComplete: true)
    else { return }
    beginInterest(id, hello, &step)
  }

  mutating func receiveStatements(_ id: SessionID, _ list: [[UInt8]], _ step: inout Step) {
    sessions[id]?.lastOfStatements = step.now
    var fresh: [Statement] = []
    for encoded in list {
      guard let statement = cryptography.statement(encoded), statement.fleet == local.fleet else {
        return fail(id, .protocolError, "a statement that does not hold", &step)
      }
      if statements[statement.id.tip] == nil { fresh.append(statement) }
    }
    adopt(fresh, from: id, &step)
  }

  /// Keeps new statements and passes them on at once: whatever is sent from now on may stand on them. What does not come
  /// into the set, because nothing that is here leads to it or its issuer has used up his allowance, is not kept.
  mutating func adopt(_ list: [Statement], from source: SessionID?, _ step: inout Step) {
    let new = list.filter { $0.isOfFleet && statements[$0.id.tip] == nil }
      .prefix(max(0, Statement.countLimit - statements.count))
    guard !new.isEmpty else { return }
    let grown = authority.adding(new)
    let fresh = new.filter { grown.holds($0.id) }
    guard !fresh.isEmpty else { return }
    step.emit(.store(Array(fresh)))
    learn(Array(fresh), grown, exceptTo: source, &step)
  }

  /// Own statements that the shell has stored.
  mutating func statementsStored(_ list: [Statement], _ step: inout Step) {
    let fresh = list.filter { statements[$0.id.tip] == nil }
    guard !fresh.isEmpty else { return }
    learn(fresh, authority.adding(fresh), exceptTo: nil, &step)
  }

  private mutating func learn(
    _ fresh: [Statement], _ grown: Authority, exceptTo source: SessionID?, _ step: inout Step
  ) {
    for statement in fresh { statements[statement.id.tip] = statement.encoded }
    let before = authority
    authority = grown
    scopeChanged()
    if authority.count != statements.count { forgetDisplaced(before, fresh, &step) }
    closeStreamsOutOfScope()
    for id in sessions.keys where sessions[id]?.phase == .awaitingHello && sessions[id]?.statedAuthority != nil {
      sessions[id]?.statementsSinceHello += fresh.map(\.encoded)
    }
    for other in sessions.values.sorted(by: { $0.id < $1.id }) where other.id != source && other.hasStatements {
      guard other.outbox.isEmpty else {
        // Behind those that they may go on from.
        sessions[other.id]?.outbox.put(fresh.map(\.encoded))
        continue
      }
      for batch in Mesh.batches(fresh.map(\.encoded)) { step.emit(.send(other.id, .statements(batch))) }
    }
    reconsiderAcceptance(&step)
    reopenStreamsWithLeftOut(&step)
  }

  /// What fell out of the set when other statements of the same issuer came in before it (rule C26).
  private mutating func forgetDisplaced(_ before: Authority, _ fresh: [Statement], _ step: inout Step) {
    let standing = Set(authority.statementIDs.lazy.map(\.tip))
    statements = statements.filter { standing.contains($0.key) }
    let displaced = (before.statementIDs + fresh.map(\.id)).filter { !authority.holds($0) }
    if !displaced.isEmpty { step.emit(.discard(displaced)) }
  }

  /// Batches well below the limit of a message.
  static func batches(_ encoded: [[UInt8]]) -> [[[UInt8]]] {
    var batches: [[[UInt8]]] = []
    var bytes = RunBatch.byteTarget
    for statement in encoded {
      if bytes + statement.count > RunBatch.byteTarget {
        batches.append([])
        bytes = 0
      }
      bytes += statement.count
      batches[batches.count - 1].append(statement)
    }
    return batches
  }
}

extension PeerSession {
  /// The peer's statements were compared with ours, or are being so: new ones have to follow.
  var hasStatements: Bool {
    switch phase {
    case .awaitingHello, .joining: false
    case .exchangingStatements, .awaitingInterest, .live: true
    }
  }
}
