/// Where one session stands with the statements of rooms.
///
/// They are part of what partitions are compared by. Where a room differs, one side tells the tips of its statements; the
/// other sends what they do not cover, and asks for what it lacks itself.
struct RoomExchange: Sendable {
  /// What is said to the peer of a room.
  enum Word {
    case set(StatementSet)
    case statements([Statement], of: PartitionName)

    static func set(_ name: PartitionName, _ content: StatementSet.Step) -> Word {
      .set(StatementSet(scope: name.text, content))
    }
  }

  /// Rooms of which the peer told its tips since the last comparison: each is answered once.
  private(set) var heard: Set<PartitionID> = []
  /// Rooms of which the peer was told tips, and may ask for what it lacks.
  private var open: Set<PartitionID> = []
  /// The comparisons in which rooms that still differ were told last.
  private var toldIn: [PartitionID: UInt64] = [:]

  /// Those that have ended for the peer's user are told once.
  private var tellingEnded = Once()
  /// Those of them of which there is more to tell: the peer answers once in each comparison, and was told of them in this one.
  private var endedLater: Set<PartitionID> = []

  /// Rooms whose tips are told for one comparison. Where statements come of it, the next one follows at once.
  static let tellLimit = 256
  static let answerLimit = 1_024

  /// Those of the rooms that differ which have waited longest.
  func next(of differing: Set<PartitionID>) -> [PartitionID] {
    let order = differing.sorted { (toldIn[$0, default: 0], $0) < (toldIn[$1, default: 0], $1) }
    return Array(order.prefix(RoomExchange.tellLimit))
  }

  mutating func tell(_ room: PartitionID, in comparison: UInt64) {
    open.insert(room)
    toldIn[room] = comparison
  }

  /// Rooms that the two hold alike by now.
  mutating func forgetLevel(besides differing: Set<PartitionID>) {
    toldIn = toldIn.filter { differing.contains($0.key) || heard.contains($0.key) }
    open.formIntersection(toldIn.keys)
  }

  /// Whether the peer's tips are to be answered.
  mutating func hear(_ room: PartitionID) -> Bool {
    heard.count < RoomExchange.answerLimit && heard.insert(room).inserted
  }

  /// Whether the peer may ask for statements: once for each time that it was told of them.
  mutating func takeAnswer(_ room: PartitionID) -> Bool { open.remove(room) != nil }

  mutating func concludeComparison() { heard = [] }

  // MARK: Answering

  /// - Parameter comparison: the one that is under way.
  mutating func receive(
    _ content: StatementSet.Step, of name: PartitionName, _ hearer: RoomHearer, in comparison: UInt64
  ) -> [Word] {
    let room = hearer.ledger.id(of: name)
    switch content {
    case .buckets: return []
    case .tips(let listed, let told):
      guard hear(room) else { return [] }
      let held = hearer.held(name)
      let asked = Self.ask(held.wanted(of: told), of: name, held, hearer)
      // Told in answer, they are not answered with tips again.
      guard listed != 0 else { return asked }
      return asked + offer(held.differing(from: told, in: listed), of: name, held, hearer, in: comparison)
    case .wanted(let told):
      guard takeAnswer(room) else { return [] }
      let held = hearer.held(name)
      return [.statements(hearer.passable(held.missing(by: told), of: name, held), of: name)]
    }
  }

  /// For what is lacking here.
  private static func ask(
    _ wanted: [IssuerTips], of name: PartitionName, _ held: ScopeStatements, _ hearer: RoomHearer
  ) -> [Word] {
    guard !wanted.isEmpty else { return [] }
    let (isCarrier, counts, ledger) = (hearer.mayHear(of: name), held.counts, hearer.ledger)
    // The issuer has said as much in the room as counts (rule C26).
    func isFull(_ issuer: PublicKey) -> Bool {
      counts[issuer, default: 0] >= ledger.authority.limit && !ledger.authority.wasEverAdmin(issuer)
    }
    // Who may not carry the room is shown no tips of it.
    let asked = wanted.filter { !ledger.roomAllowance.isSpent(by: $0.issuer) && !isFull($0.issuer) }
      .map { isCarrier ? $0 : IssuerTips(issuer: $0.issuer, tips: []) }
    return asked.isEmpty ? [] : [.set(name, .wanted(asked))]
  }

  /// What the peer lacks, for it to ask. Of issuers of whom something is lacking here that cannot be told yet: it is left
  /// to a later comparison.
  private mutating func offer(
    _ differing: [IssuerTips], of name: PartitionName, _ held: ScopeStatements, _ hearer: RoomHearer,
    in comparison: UInt64
  ) -> [Word] {
    let unknown = Set(held.wanted(of: differing).map(\.issuer))
    let missing = held.missing(by: differing.filter { !unknown.contains($0.issuer) })
    guard hearer.mayHear(of: name) else { return [.statements(hearer.passable(missing, of: name, held), of: name)] }
    guard !missing.isEmpty else { return [] }
    return [tell(name, held.tips(of: Set(missing.map(\.issuer))), hearer, in: comparison)]
  }

  private mutating func tell(
    _ name: PartitionName, _ tips: [IssuerTips], _ hearer: RoomHearer, in comparison: UInt64
  ) -> Word {
    tell(hearer.ledger.id(of: name), in: comparison)
    return .set(name, .tips(listed: 0, tips))
  }

  // MARK: What is over

  /// Rooms that have ended for the peer's user, once on a session: the peer asks of whom it takes for one who may carry them,
  /// and that need not be this node, nor anybody whom it still meets. It is told where the lines end that it may hear, and
  /// asks for what it lacks. Later what this comparison lets tell anew.
  mutating func tellEnded(_ hearer: RoomHearer, on id: SessionID, in comparison: UInt64) -> [Word] {
    guard tellingEnded.take() else {
      let rooms = endedLater.sorted()
      endedLater = []
      return rooms.compactMap(hearer.ledger.partitions.name).flatMap { tellLines(of: $0, hearer, in: comparison) }
    }
    let ended = hearer.ended
    // Of more than are told at once another part has its turn with each session.
    let start = ended.count > RoomExchange.tellLimit ? Int(id.rawValue % UInt64(ended.count)) : 0
    return (ended[start...] + ended[..<start]).prefix(RoomExchange.tellLimit).map {
      tell($0.name, $0.tips, hearer, in: comparison)
    }
  }

  // MARK: What is new

  /// Of statements that have just come into a room. Who may carry it only now has none of what was said in it before, and
  /// nothing of its content goes ahead of that. Of what ends it for somebody the rest of its line is known to who was in the
  /// room until now.
  mutating func tellNews(
    _ said: [Statement], among held: ScopeStatements, of name: PartitionName, _ before: Authority,
    _ hearer: RoomHearer, in comparison: UInt64
  ) -> [Word] {
    if hearer.mayCarry(name, by: before) { return [.statements(hearer.passable(said, of: name, held), of: name)] }
    if hearer.mayHear(of: name) { return [.statements(held.ordered, of: name)] }
    return hearer.passable(said, of: name, held).isEmpty ? [] : tellLines(of: name, hearer, in: comparison)
  }

  /// Where the lines end by which the room has ended for the peer's user, as far as it has.
  mutating func tellLines(of name: PartitionName, _ hearer: RoomHearer, in comparison: UInt64) -> [Word] {
    guard hearer.wants(name), !hearer.mayHear(of: name) else { return [] }
    let room = hearer.ledger.id(of: name)
    guard toldIn[room] != comparison else {
      if endedLater.count < RoomExchange.tellLimit { endedLater.insert(room) }
      return []
    }
    return hearer.lines(of: name).map { [tell(name, $0.tips, hearer, in: comparison)] } ?? []
  }
}
