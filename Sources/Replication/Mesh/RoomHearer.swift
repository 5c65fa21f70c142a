/// The peer of one session as one to whom statements of rooms may be told: they go to who may carry the room, and to those for
/// whose user it has ended. Nobody else hears of it.
struct RoomHearer {
  private let peer: PublicKey
  private let wished: Interest?
  private let passage: Passage
  let ledger: Ledger

  init(_ session: PeerSession, _ ledger: Ledger) {
    (peer, wished, passage) = (session.peer, session.peerInterest, session.passage)
    self.ledger = ledger
  }

  func held(_ name: PartitionName) -> ScopeStatements { ScopeStatements(ledger.authority.statements(of: name.text)) }

  /// The peer may carry it, and wants it. Whether this node may carry it still is not asked: who leaves a room tells so.
  func mayHear(of name: PartitionName) -> Bool {
    wants(name) && mayCarry(name, by: ledger.authority)
  }

  func mayCarry(_ name: PartitionName, by authority: Authority) -> Bool {
    authority.level(of: peer, in: name) >= .carry
  }

  func wants(_ name: PartitionName) -> Bool {
    let id = ledger.id(of: name)
    return wished?.wants(id, name: name) == true && passage.rank(id, name) != nil
  }

  /// All of them to who may carry the room, otherwise what may have ended it for the peer's user.
  func passable(_ statements: [Statement], of name: PartitionName, _ held: ScopeStatements) -> [Statement] {
    guard !mayHear(of: name) else { return statements }
    guard wants(name) else { return [] }
    let listed = ledger.authority.listed(in: name.text)
    let lines = held.lines(endingFor: users, listed: listed) { ledger.authority.inviter($0) }
    return statements.filter { lines.contains($0.id) }
  }

  private var users: Set<Text> { Set(ledger.authority.members(of: peer).map(\.user)) }

  /// Rooms that have ended for the peer's user for all that is known here, with where the lines end that he may hear.
  var ended: [(name: PartitionName, tips: [IssuerTips])] {
    let lost = ledger.partitions.all { room, name in
      ledger.partitions.holdsStatements(of: room) && wants(name) && !mayHear(of: name)
    }.sorted()
    return lost.compactMap { room in ledger.partitions.name(of: room).flatMap { lines(of: $0) } }
  }

  /// What may have ended the room for the peer, who may not carry it. Nil where there is nothing, and of a room that he never
  /// was in: he does not hear that there is one.
  func lines(of name: PartitionName) -> (name: PartitionName, tips: [IssuerTips])? {
    let held = held(name)
    guard held.everNamed(users, { ledger.authority[$0]?.member?.user }) else { return nil }
    let lines = passable(held.ordered, of: name, held)
    return lines.isEmpty ? nil : (name, ScopeStatements(lines).list(.max))
  }
}
