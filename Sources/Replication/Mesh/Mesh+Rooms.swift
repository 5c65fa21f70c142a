// The statements of a room go to who may carry it, and to those for whose user it has ended: nobody else hears of it.
//
// They are part of what partitions are compared by. Where a room differs, one side tells the tips of its statements; the
// other sends what they do not cover, and asks for what it lacks itself.
extension Mesh {
  /// The room with this scope, where it is wanted here.
  func wantedRoom(_ scope: Text) -> PartitionName? {
    guard let name = PartitionName(roomOf: scope) else { return nil }
    return interest.wants(ledger.id(of: name), name: name) ? name : nil
  }

  /// The peer may carry it, and wants it. Whether this node may carry it still is not asked: who leaves a room tells so.
  private func mayHear(_ session: PeerSession, of name: PartitionName) -> Bool {
    wants(session, name) && ledger.authority.level(of: session.peer, in: name) >= .carry
  }

  private func wants(_ session: PeerSession, _ name: PartitionName) -> Bool {
    let id = ledger.id(of: name)
    return session.peerInterest?.wants(id, name: name) == true && session.passage.rank(id, name) != nil
  }

  // MARK: Answering

  private func tell(_ id: SessionID, _ name: PartitionName, _ content: StatementSet.Step, _ step: inout Step) {
    step.emit(.send(id, .statementSet(StatementSet(scope: name.text, content))))
  }

  mutating func receiveRoomSet(_ id: SessionID, _ set: StatementSet, _ step: inout Step) {
    guard let session = sessions[id], let name = wantedRoom(set.scope) else { return }
    let room = ledger.id(of: name)
    let held = ScopeStatements(ledger.authority.statements(of: name.text))
    switch set.step {
    case .buckets: break
    case .tips(let listed, let told):
      guard sessions[id]?.rooms.hear(room) == true else { return }
      ask(session, name, held, held.wanted(of: told), &step)
      // Told in answer, they are not answered with tips again.
      guard listed != 0 else { return }
      offer(session, name, held, held.differing(from: told, in: listed), &step)
    case .wanted(let told):
      guard sessions[id]?.rooms.takeAnswer(room) == true else { return }
      say(passable(held.missing(by: told), of: name, held, to: session), of: name, to: id, &step)
    }
  }

  /// For what is lacking here.
  private func ask(
    _ session: PeerSession, _ name: PartitionName, _ held: ScopeStatements, _ wanted: [IssuerTips], _ step: inout Step
  ) {
    guard !wanted.isEmpty else { return }
    let isCarrier = mayHear(session, of: name)
    let counts = held.counts
    // Who may not carry the room is shown no tips of it.
    let asked = wanted.filter { !ledger.roomAllowance.isSpent(by: $0.issuer) && !isFull(of: $0.issuer, counts) }
      .map { isCarrier ? $0 : IssuerTips(issuer: $0.issuer, tips: []) }
    if !asked.isEmpty { tell(session.id, name, .wanted(asked), &step) }
  }

  /// The issuer has said as much in the room as counts (rule C26).
  private func isFull(of issuer: PublicKey, _ counts: [PublicKey: Int]) -> Bool {
    counts[issuer, default: 0] >= AdmittedStatements.limit && !ledger.authority.wasEverAdmin(issuer)
  }

  /// What the peer lacks, for it to ask. Of issuers of whom something is lacking here that cannot be told yet: it is left
  /// to a later comparison.
  private mutating func offer(
    _ session: PeerSession, _ name: PartitionName, _ held: ScopeStatements, _ differing: [IssuerTips],
    _ step: inout Step
  ) {
    let unknown = Set(held.wanted(of: differing).map(\.issuer))
    let missing = held.missing(by: differing.filter { !unknown.contains($0.issuer) })
    guard mayHear(session, of: name) else {
      return say(passable(missing, of: name, held, to: session), of: name, to: session.id, &step)
    }
    guard !missing.isEmpty else { return }
    let room = ledger.id(of: name)
    sessions[session.id]?.rooms.tell(room, in: session.live?.comparison.count ?? 0)
    tell(session.id, name, .tips(listed: 0, held.tips(of: Set(missing.map(\.issuer)))), &step)
  }

  /// All of them to who may carry the room, otherwise what may have ended it for the peer's user.
  private func passable(
    _ statements: [Statement], of name: PartitionName, _ held: ScopeStatements, to session: PeerSession
  ) -> [Statement] {
    guard !mayHear(session, of: name) else { return statements }
    guard wants(session, name) else { return [] }
    let lines = held.lines(endingFor: users(of: session)) { ledger.authority.inviter($0) }
    return statements.filter { lines.contains($0.id) }
  }

  private func users(of session: PeerSession) -> Set<Text> {
    Set(ledger.authority.members(of: session.peer).map(\.user))
  }

  private mutating func say(
    _ statements: [Statement], of name: PartitionName, to id: SessionID, _ step: inout Step
  ) {
    guard !statements.isEmpty else { return }
    sessions[id]?.outbox.put(statements.map(\.encoded), of: name.text)
    pumpStatements(id, &step)
  }

  // MARK: What is over

  /// Rooms that have ended for the peer's user for all that is known here, once on a session: the peer asks of whom it takes
  /// for one who may carry them, and that need not be this node, nor anybody whom it still meets. It is told where the lines
  /// end that it may hear, and asks for what it lacks.
  mutating func tellEndedRooms(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.live?.handOvers.mayOffer == true,
      sessions[id]?.rooms.tellingEnded.take() == true
    else { return }
    let lost = ledger.partitions.all { room, name in
      ledger.partitions.holdsStatements(of: room) && wants(session, name) && !mayHear(session, of: name)
    }.sorted()
    let ended = lost.compactMap { room in ledger.partitions.name(of: room).flatMap { lines(of: $0, for: session) } }
    // Of more than are told at once another part has its turn with each session.
    let start = ended.count > RoomExchange.tellLimit ? Int(id.rawValue % UInt64(ended.count)) : 0
    for lines in (ended[start...] + ended[..<start]).prefix(RoomExchange.tellLimit) { tellEnded(lines, to: id, &step) }
  }

  /// What may have ended the room for the peer, who may not carry it. Nil where there is nothing, and of a room that he never
  /// was in: he does not hear that there is one.
  private func lines(of name: PartitionName, for session: PeerSession) -> (name: PartitionName, tips: [IssuerTips])? {
    let held = ScopeStatements(ledger.authority.statements(of: name.text))
    guard held.everNamed(users(of: session), { ledger.authority[$0]?.member?.user }) else { return nil }
    let lines = passable(held.ordered, of: name, held, to: session)
    return lines.isEmpty ? nil : (name, ScopeStatements(lines).list(.max))
  }

  private mutating func tellEnded(
    _ lines: (name: PartitionName, tips: [IssuerTips]), to id: SessionID, _ step: inout Step
  ) {
    let comparison = sessions[id]?.live?.comparison.count ?? 0
    sessions[id]?.rooms.tell(ledger.id(of: lines.name), in: comparison)
    tell(id, lines.name, .tips(listed: 0, lines.tips), &step)
  }

  /// Of rooms that a peer may carry no longer nothing more goes out that waits for it. Lines that were among it are told
  /// when the peer, who does not know yet, next finds the room to differ.
  mutating func dropUnhearable() {
    for (id, session) in sessions where !session.outbox.isEmpty {
      let dropped = session.outbox.scopes.filter { scope in
        PartitionName(roomOf: scope).map { !mayHear(session, of: $0) } ?? false
      }
      sessions[id]?.outbox.drop(dropped)
    }
  }

  // MARK: What is new

  /// Statements that have just come into rooms.
  mutating func spreadRooms(
    _ fresh: [Statement], _ before: Authority, exceptTo source: SessionID?, _ step: inout Step
  ) {
    let listeners = sessions.values.filter { $0.id != source && $0.phase == .live }.map(\.id).sorted()
    guard !listeners.isEmpty else { return }
    for (scope, said) in Dictionary(grouping: fresh, by: \.scope).sorted(by: { $0.key < $1.key }) {
      guard let name = PartitionName(roomOf: scope) else { continue }
      let held = ScopeStatements(ledger.authority.statements(of: scope))
      for id in listeners { tell(said, among: held, of: name, to: id, before, &step) }
    }
  }

  /// Who may carry the room only now has none of what was said in it before, and nothing of its content goes ahead of
  /// that. Of what ends it for somebody the rest of its line is known to who was in the room until now.
  private mutating func tell(
    _ said: [Statement], among held: ScopeStatements, of name: PartitionName, to id: SessionID, _ before: Authority,
    _ step: inout Step
  ) {
    guard let session = sessions[id] else { return }
    if before.level(of: session.peer, in: name) >= .carry {
      say(passable(said, of: name, held, to: session), of: name, to: id, &step)
    } else if mayHear(session, of: name) {
      say(held.ordered, of: name, to: id, &step)
    } else if wants(session, name), !passable(said, of: name, held, to: session).isEmpty,
      let lines = lines(of: name, for: session)
    {
      tellEnded(lines, to: id, &step)
    }
  }
}
