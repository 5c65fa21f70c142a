// Statements of the fleet and of rooms: exchanged, learnt, and passed on.
extension Mesh {
  // MARK: The exchange

  mutating func beginStatements(
    _ id: SessionID, _ hello: Hello, isToBeShown: Bool, _ step: inout Step
  ) throws(SessionEnd) {
    guard let session = sessions[id], let greeting = session.greeting, let stated = greeting.statedAuthority else {
      return
    }
    if admission.names(stated, .authority, hello.authority, session) {
      guard !isToBeShown else { throw .notAMember }
      sessions[id]?.tellLearnt(since: greeting, ledger, &step)
      return beginInterest(id, hello, &step)
    }
    let exchange = StatementExchange(isDialer: session.isDialer, isToBeShown: isToBeShown)
    sessions[id]?.state = .handshake(.statements(exchange))
    if !session.isDialer {
      let buckets = ledger.fleetStatements.buckets(cryptography.hash)
      step.emit(.send(id, .statementSet(StatementSet(scope: "", .buckets(buckets)))))
    } else if case .handshake(.unknown(_, let early?)) = session.state {
      try receiveStatementSet(id, early, &step)
    }
  }

  /// Kept until the listener has brought its credentials.
  mutating func receiveEarly(_ id: SessionID, _ set: StatementSet) throws(SessionEnd) {
    guard case .handshake(.unknown(let greeting, nil))? = sessions[id]?.state, case .buckets = set.step else {
      throw .outOfTurn
    }
    sessions[id]?.state = .handshake(.unknown(greeting, early: set))
  }

  mutating func receiveStatementSet(_ id: SessionID, _ set: StatementSet, _ step: inout Step) throws(SessionEnd) {
    guard set.scope.utf8.isEmpty else { return receiveRoomSet(id, set, &step) }
    guard let answers = try sessions[id]?.exchange?.receive(set.step, ledger) else { throw .outOfTurn }
    for answer in answers {
      switch answer {
      case .say(let content): step.emit(.send(id, .statementSet(StatementSet(scope: "", content))))
      case .sendMissing(let told): sendMissing(id, by: told, &step)
      }
    }
  }

  private mutating func sendMissing(_ id: SessionID, by told: [IssuerTips], _ step: inout Step) {
    sessions[id]?.putMissing(by: told, ledger)
    sayStatements(id, &step)
  }

  /// Says what waits for the session, as far as there is room.
  mutating func sayStatements(_ id: SessionID, _ step: inout Step) {
    switch sessions[id]?.sayStatements(&step) {
    case .complete:
      step.emit(.send(id, .statementsComplete()))
      sessions[id]?.exchange?.noteComplete()
      finishStatements(id, &step)
    case .joined(let acceptance):
      step.emit(.send(id, .joinAccepted(acceptance)))
      close(id, .stopping, &step)
    case nil: break
    }
  }

  mutating func peerStatementsComplete(_ id: SessionID, _ scope: Text, _ step: inout Step) throws(SessionEnd) {
    guard let session = sessions[id], scope.utf8.isEmpty else { return }
    guard session.exchange != nil else { throw .outOfTurn }
    try sessions[id]?.exchange?.notePeerComplete()
    let isMember = ledger.authority.member(of: session.peer) != nil
    if try sessions[id]?.exchange?.showMembership(isMember) == true { restateInterest(id, &step) }
    if let owed = session.exchange?.owed { sendMissing(id, by: owed, &step) } else { finishStatements(id, &step) }
  }

  private mutating func finishStatements(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], let hello = session.hello, session.exchange?.isOver == true else { return }
    beginInterest(id, hello, &step)
  }

  // MARK: What is learnt

  mutating func receiveStatements(
    _ id: SessionID, _ list: [[UInt8]], _ scope: Text, _ step: inout Step
  ) throws(SessionEnd) {
    guard scope.utf8.isEmpty || wantedRoom(scope) != nil else { return }
    let told = try admission.statements(list, of: scope)
    sessions[id]?.lastOfStatements = step.now
    adopt(told, from: id, &step)
  }

  /// Keeps new statements and passes them on at once: whatever is sent from now on may stand on them. What does not come
  /// into the set, because nothing that is here leads to it or its issuer has used up his allowance, is not kept
  /// beyond an exchange.
  private mutating func adopt(_ list: [Statement], from source: SessionID, _ step: inout Step) {
    let brought =
      sessions[source]?.exchange?.aside.joining(
        list, isHeld: { ledger.statements[$0.id.tip] != nil },
        read: { ledger.authority[$0] ?? cryptography.checkedStatement($1) }) ?? list
    let judged = ledger.admissible(brought)
    sessions[source]?.exchange?.aside.keep(list, besides: judged?.grown ?? ledger.authority)
    guard let (fresh, grown) = judged else { return }
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
    scopeChanged(of: reach?.concerned)
    if !displaced.isEmpty {
      step.emit(.discard(displaced.map(\.id).sorted()))
      for id in sessions.ids { sessions[id]?.exchange?.aside.keep(displaced: displaced) }
    }
    let ended = pulls.closeStreamsOutOfScope(of: reach.map { Set($0.rooms.map(ledger.id)) }, &sessions, ledger)
    sessions.dropUnhearable(ledger)
    let ofFleet = fresh.filter(\.isOfFleet)
    sessions.hear(grown.namedOfTalkers(by: ofFleet) + ofFleet, exceptTo: source, ledger, &step)
    goOnWithMembersAgain(since: before, &step)
    spreadRooms(fresh.filter { !$0.isOfFleet }, before, exceptTo: source, &step)
    tellLines(listedBy: ofFleet, &step)
    if before.fullDevices != grown.fullDevices { ledger.countTakes() }
    reconsiderAcceptance(reach, &step)
    trees.review(sessions, ledger, step)
    pulls.askOthers(ended, &sessions, ledger, &step)
    pulls.reopenAll(&sessions, ledger, &step)
    sessions.askForHandedOverEarly(ledger, &step)
    if fresh.contains(where: \.mayWiden) { sessions.scopeWidened(step.now) }
  }

  /// New statements may move what counts of every chain, unless their reach is known.
  private mutating func reconsiderAcceptance(_ reach: StatementReach?, _ step: inout Step) {
    let moved = reach.map { ledger.takeOver($0) } ?? ledger.partitions.keys.sorted()
    for partition in moved { adoptAuthority(partition, &step) }
    if !moved.isEmpty { ledger.countTakes() }
  }

  // MARK: Rooms

  /// The room with this scope, where it is wanted here.
  private func wantedRoom(_ scope: Text) -> PartitionName? {
    guard let name = PartitionName(roomOf: scope) else { return nil }
    return interest.wants(ledger.id(of: name), name: name) ? name : nil
  }

  private mutating func receiveRoomSet(_ id: SessionID, _ set: StatementSet, _ step: inout Step) {
    guard let name = wantedRoom(set.scope) else { return }
    tell(id, &step) { $0.receive(set.step, of: name, $1, in: $2) }
  }

  mutating func tellEndedRooms(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.live?.comparison.isUnderWay == false else { return }
    tell(id, &step) { $0.tellEnded($1, on: id, in: $2) }
  }

  /// Statements that have just come into rooms.
  private mutating func spreadRooms(
    _ fresh: [Statement], _ before: Authority, exceptTo source: SessionID?, _ step: inout Step
  ) {
    let listeners = sessions.ids.filter { $0 != source && sessions[$0]?.phase == .live }
    guard !listeners.isEmpty else { return }
    for (scope, said) in Dictionary(grouping: fresh, by: \.scope).sorted(by: { $0.key < $1.key }) {
      guard let name = PartitionName(roomOf: scope) else { continue }
      let held = ScopeStatements(ledger.authority.statements(of: scope))
      for id in listeners {
        tell(id, &step) { $0.tellNews(said, among: held, of: name, before, $1, in: $2) }
      }
    }
  }

  /// What ended a room for somebody counts no longer once an end lists a later statement, until that is known, too: he is
  /// told of it though he heard of the room's end before.
  private mutating func tellLines(listedBy fresh: [Statement], _ step: inout Step) {
    let scopes = Set(fresh.lazy.flatMap(\.tips).map(\.scope)).sorted()
    let listed = scopes.compactMap(PartitionName.init(roomOf:)).filter {
      ledger.partitions.holdsStatements(of: ledger.id(of: $0))
    }
    for name in listed.prefix(RoomExchange.tellLimit) {
      for id in sessions.ids where sessions[id]?.phase == .live {
        tell(id, &step) { $0.tellLines(of: name, $1, in: $2) }
      }
    }
  }

  private mutating func tell(
    _ id: SessionID, _ step: inout Step,
    _ words: (inout RoomExchange, RoomHearer, UInt64) -> [RoomExchange.Word]
  ) {
    for word in sessions[id]?.speakOfRooms(ledger, words) ?? [] {
      switch word {
      case .set(let set): step.emit(.send(id, .statementSet(set)))
      case .statements(let list, let name):
        guard !list.isEmpty else { continue }
        sessions[id]?.outbox.put(list, of: name.text)
        sayStatements(id, &step)
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
