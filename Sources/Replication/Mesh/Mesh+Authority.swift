// Statements as they are learnt, kept and passed on.
extension Mesh {
  mutating func receiveStatements(_ id: SessionID, _ list: [[UInt8]], _ scope: Text, _ step: inout Step) {
    var fresh: [Statement] = []
    for encoded in list {
      switch cryptography.statement(encoded) {
      case .laterVersion: continue
      case .statement(let statement) where statement.fleet == local.fleet && statement.scope == scope:
        if statements[statement.id.tip] == nil { fresh.append(statement) }
      case .statement, .broken: return fail(id, .protocolError, "a statement that does not hold", &step)
      }
    }
    sessions[id]?.handshakeProgress = step.now
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
    authority = grown
    scopeChanged()
    if authority.count != statements.count { forgetDisplaced() }
    closeStreamsOutOfScope()
    for (id, session) in sessions where session.statedAuthority != nil && !session.hasStatements {
      sessions[id]?.statementsSinceHello += fresh.map(\.encoded)
    }
    for other in sessions.values.sorted(by: { $0.id < $1.id }) where other.id != source && other.hasStatements {
      for batch in Mesh.batches(fresh.map(\.encoded)) { step.emit(.send(other.id, .statements(batch))) }
    }
    reconsiderAcceptance(&step)
    reopenStreamsWithLeftOut(&step)
  }

  /// What fell out of the set when other statements of the same issuer came in before it (rule C26).
  private mutating func forgetDisplaced() {
    let standing = Set(authority.statementIDs.lazy.map(\.tip))
    statements = statements.filter { standing.contains($0.key) }
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
    case .awaitingHello, .awaitingCredentials, .joining: false
    case .exchangingStatements, .awaitingInterest, .live: true
    }
  }
}
