// Statements as they are learnt, kept and passed on.
extension Mesh {
  mutating func receiveStatements(_ id: SessionID, _ list: [[UInt8]], _ scope: Text, _ step: inout Step) {
    guard scope.utf8.isEmpty || wantedRoom(scope) != nil else { return }
    var fresh: [Statement] = []
    for encoded in list {
      switch cryptography.statement(encoded) {
      case .laterVersion: continue
      case .statement(let statement) where statement.fleet == local.fleet && statement.scope == scope:
        if ledger.statements[statement.id.tip] == nil { fresh.append(statement) }
      case .statement, .broken: return fail(id, .protocolError, "a statement that does not hold", &step)
      }
    }
    sessions[id]?.lastOfStatements = step.now
    adopt(fresh, from: id, &step)
  }

  /// Keeps new statements and passes them on at once: whatever is sent from now on may stand on them. What does not come
  /// into the set, because nothing that is here leads to it or its issuer has used up his allowance, is not kept.
  mutating func adopt(_ list: [Statement], from source: SessionID?, _ step: inout Step) {
    guard let (fresh, grown) = ledger.admissible(list) else { return }
    step.emit(.store(fresh))
    learn(fresh, grown, exceptTo: source, &step)
  }

  /// Own statements that the shell has stored.
  mutating func statementsStored(_ list: [Statement], _ step: inout Step) {
    let fresh = list.filter { ledger.statements[$0.id.tip] == nil }
    guard !fresh.isEmpty else { return }
    learn(fresh, ledger.authority.adding(fresh), exceptTo: nil, &step)
  }

  private mutating func learn(
    _ fresh: [Statement], _ grown: Authority, exceptTo source: SessionID?, _ step: inout Step
  ) {
    let before = ledger.authority
    let displaced = ledger.admit(fresh, grown)
    let reach = displaced.isEmpty && before.isInDoubt == grown.isInDoubt ? StatementReach(fresh, before) : nil
    if let reach { scopeChanged(of: reach.devices) } else { scopeChanged() }
    if !displaced.isEmpty { step.emit(.discard(displaced.map(\.id).sorted())) }
    closeStreamsOutOfScope()
    dropUnhearable()
    spreadFleet(fresh.filter(\.isOfFleet), exceptTo: source, &step)
    spreadRooms(fresh.filter { !$0.isOfFleet }, before, exceptTo: source, &step)
    reconsiderAcceptance(reach, &step)
    reopenStreamsWithLeftOut(&step)
    askForHandedOverEarly(&step)
    // What two may speak of now that they might not before is compared at the next tick.
    guard fresh.contains(where: \.mayWiden) else { return }
    for id in sessions.keys {
      sessions[id]?.live?.level.forget()
      sessions[id]?.live?.comparison.hasten(step.now)
    }
  }

  private mutating func spreadFleet(_ fresh: [Statement], exceptTo source: SessionID?, _ step: inout Step) {
    guard !fresh.isEmpty else { return }
    for (id, session) in sessions where session.greeting?.statedAuthority != nil {
      let told = passable(fresh, to: id).map(\.encoded)
      sessions[id]?.greeting?.note(told)
    }
    for other in sessions.values.sorted(by: { $0.id < $1.id }) where other.id != source && other.hasStatements {
      // What leads to them may not have been sent yet: they go with the rest.
      guard !other.isOwedStatements else {
        sessions[other.id]?.exchange?.learnt.formUnion(fresh.map(\.id))
        continue
      }
      let told = passable(fresh, to: other.id).map(\.encoded)
      // Behind those that they may go on from. Those of rooms lead to none of them, and may wait for long: who is not told
      // of a replica before its runs takes them for a breach.
      guard !other.outbox.holdsFleet else {
        sessions[other.id]?.outbox.put(told)
        continue
      }
      for batch in Mesh.batches(told) { step.emit(.send(other.id, .statements(batch))) }
    }
  }

  /// Who is a member no longer hears what is said of himself, with what that stands on, and nothing else.
  mutating func passable(_ statements: [Statement], to id: SessionID) -> [Statement] {
    guard let session = sessions[id], ledger.authority.isEnded(session.peer) else { return statements }
    let about = ledger.authority.statements(about: session.peer)
    let candidates = session.withheldStatements.union(statements.map(\.id))
    // What is said of it later may go on from one of these.
    sessions[id]?.withheldStatements = candidates.subtracting(about)
    return ledger.authority.fleetStatements.filter { candidates.contains($0.id) && about.contains($0.id) }
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
  /// What it lacks was not sent yet.
  fileprivate var isOwedStatements: Bool { exchange.map { !$0.isAnswered } ?? false }
}

/// How far statements reach that let nobody do or hold anything else than before, but for new devices: with many partitions
/// it takes long to look at every chain for each of those.
struct StatementReach {
  private(set) var replicas: Set<ReplicaID> = []
  private(set) var devices: Set<PublicKey> = []

  /// Nil where more may be moved than what is named in them.
  init?(_ fresh: [Statement], _ before: Authority) {
    for statement in fresh {
      switch statement.body {
      case .replica(let declaration): replicas.insert(declaration.replica)
      case .membership(let membership):
        // What it said already may count from now on, and another membership of a device moves its chains.
        guard membership.role != Authority.adminRole, before.members(of: membership.device).isEmpty,
          !before.allStatements.contains(where: { $0.issuer == membership.device })
        else { return nil }
        devices.insert(membership.device)
      default: return nil
      }
    }
  }
}

extension Statement {
  /// It may let somebody carry what he might not before.
  fileprivate var mayWiden: Bool {
    switch body {
    case .grant, .rule, .raise, .membership, .invitation, .room, .unknown: true
    case .genesis, .replica, .end, .baseline, .removal, .leave: false
    }
  }
}
