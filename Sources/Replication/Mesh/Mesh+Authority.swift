extension Mesh {
  /// Statements go before everything that is judged under them.
  mutating func beginStatements(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if hello.authority == session.statedAuthority {
      for batch in Mesh.batches(session.statementsSinceHello) { step.emit(.send(id, .statements(batch))) }
      return beginInterest(id, hello, &step)
    }
    sessions[id]?.phase = .exchangingStatements(peerIsComplete: false, isComplete: false)
    step.emit(.send(id, .statementIDs(statements.keys.sorted())))
  }

  mutating func sendMissingStatements(_ id: SessionID, _ held: [TipHash], _ step: inout Step) {
    guard case .exchangingStatements(let peerIsComplete, false)? = sessions[id]?.phase else { return }
    let missing = Set(statements.keys).subtracting(held).sorted().compactMap { statements[$0] }
    for batch in Mesh.batches(missing) { step.emit(.send(id, .statements(batch))) }
    step.emit(.send(id, .statementsComplete))
    sessions[id]?.phase = .exchangingStatements(peerIsComplete: peerIsComplete, isComplete: true)
    finishStatements(id, &step)
  }

  mutating func peerStatementsComplete(_ id: SessionID, _ step: inout Step) {
    guard case .exchangingStatements(_, let isComplete)? = sessions[id]?.phase else { return }
    sessions[id]?.phase = .exchangingStatements(peerIsComplete: true, isComplete: isComplete)
    finishStatements(id, &step)
  }

  private mutating func finishStatements(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let hello = session.hello,
      session.phase == .exchangingStatements(peerIsComplete: true, isComplete: true)
    else { return }
    beginInterest(id, hello, &step)
  }

  mutating func receiveStatements(_ id: SessionID, _ list: [[UInt8]], _ step: inout Step) {
    var fresh: [Statement] = []
    for encoded in list {
      guard let statement = cryptography.statement(encoded), statement.fleet == local.fleet else {
        return fail(id, .protocolError, "a statement that does not hold", &step)
      }
      if statements[statement.id.tip] == nil { fresh.append(statement) }
    }
    adopt(fresh, from: id, &step)
  }

  /// Keeps new statements and passes them on at once: whatever is sent from now on may stand on them.
  mutating func adopt(_ list: [Statement], from source: SessionID?, _ step: inout Step) {
    let fresh = list.filter { statements[$0.id.tip] == nil }.prefix(max(0, Statement.countLimit - statements.count))
    guard !fresh.isEmpty else { return }
    step.emit(.store(Array(fresh)))
    learn(Array(fresh), exceptTo: source, &step)
  }

  /// Own statements that the shell has stored.
  mutating func statementsStored(_ list: [Statement], _ step: inout Step) {
    let fresh = list.filter { statements[$0.id.tip] == nil }
    guard !fresh.isEmpty else { return }
    learn(fresh, exceptTo: nil, &step)
  }

  private mutating func learn(_ fresh: [Statement], exceptTo source: SessionID?, _ step: inout Step) {
    for statement in fresh { statements[statement.id.tip] = statement.encoded }
    authority = authority.adding(fresh)
    closeStreamsOutOfScope()
    for id in sessions.keys where sessions[id]?.phase == .awaitingHello && sessions[id]?.statedAuthority != nil {
      sessions[id]?.statementsSinceHello += fresh.map(\.encoded)
    }
    for other in sessions.values.sorted(by: { $0.id < $1.id }) where other.id != source && other.hasStatements {
      for batch in Mesh.batches(fresh.map(\.encoded)) { step.emit(.send(other.id, .statements(batch))) }
    }
    reconsiderAcceptance(&step)
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

  // MARK: Joining

  mutating func receiveJoinRequest(_ id: SessionID, _ request: JoinRequest, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.phase = .joining
    guard request.fleet == local.fleet else { return refuseJoin(id, .otherFleet, &step) }
    guard let admissionKey = authority.admissionKey, request.device == session.peer, let proof = request.proof,
      cryptography.verify(proof, request.signedBytes(exporter: session.exporter), admissionKey)
    else { return refuseJoin(id, .wrongCode, &step) }
    step.emit(.admit(id, request))
  }

  private mutating func refuseJoin(_ id: SessionID, _ refusal: JoinRefusal, _ step: inout Step) {
    step.emit(.note(id, .joinRefused(refusal)))
    step.emit(.send(id, .joinRefused(refusal)))
    step.emit(.close(id, .notAMember))
    closed(id, &step)
  }

  mutating func admitted(_ id: SessionID, _ done: Bool, _ step: inout Step) {
    guard sessions[id]?.phase == .joining else { return }
    guard done else { return refuseJoin(id, .cannotAdmit, &step) }
    for batch in Mesh.batches(statements.keys.sorted().compactMap { statements[$0] }) {
      step.emit(.send(id, .statements(batch)))
    }
    step.emit(.send(id, .joinAccepted))
    step.emit(.close(id, .stopping))
    closed(id, &step)
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
