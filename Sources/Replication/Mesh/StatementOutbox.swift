/// Statements that one session is still to be told, in order, and what is said behind the last of them.
///
/// A fleet may have more of them than a connection takes at once. They go out a window at a time, each once the session
/// has room again.
struct StatementOutbox: Sendable {
  enum End: Sendable {
    /// The peer has all that it lacked.
    case complete
    case joined(JoinAcceptance)
  }

  private var waiting: [(scope: Text, statement: Statement)] = []
  /// Those before this one are said.
  private var next = 0
  private var end: End?
  /// What a peer that is a member no longer was not told.
  private var withheld: Set<Digest> = []

  var count: Int { waiting.count - next }
  var isEmpty: Bool { next == waiting.count && end == nil }

  mutating func put(_ statements: [Statement], of scope: Text = "") { waiting += statements.map { (scope, $0) } }
  mutating func put(_ statements: [Statement], then end: End) {
    put(statements)
    self.end = end
  }

  /// Statements of the fleet wait, or what is said behind the last of them.
  var holdsFleet: Bool { end != nil || waiting[next...].contains { $0.scope.utf8.isEmpty } }

  var scopes: Set<Text> { Set(waiting[next...].lazy.map(\.scope)) }

  /// Takes out what waits of these scopes.
  mutating func drop(_ scopes: Set<Text>) {
    guard !scopes.isEmpty else { return }
    (waiting, next) = (waiting[next...].filter { !scopes.contains($0.scope) }, 0)
  }

  /// Takes out what waits of the fleet and a peer that is a member no longer does not hear.
  mutating func withhold(from peer: PublicKey, _ authority: Authority) {
    guard authority.isEnded(peer) else { return }
    let about = authority.statements(about: peer)
    var passed: [(scope: Text, statement: Statement)] = []
    for item in waiting[next...] {
      if item.scope.utf8.isEmpty, !about.contains(item.statement.id) {
        withheld.insert(item.statement.id)
      } else {
        passed.append(item)
      }
    }
    (waiting, next) = (passed, 0)
  }

  /// The next of so many bytes, in messages: said at once, before the shell may look whether too much waits.
  mutating func takeWindow(_ byteCount: Int) -> [Message] {
    var (count, bytes) = (0, 0)
    while next + count < waiting.count, bytes < byteCount {
      bytes += waiting[next + count].statement.encoded.count
      count += 1
    }
    var window = waiting[next..<next + count]
    next += count
    if next == waiting.count { (waiting, next) = ([], 0) }
    var messages: [Message] = []
    while let scope = window.first?.scope {
      let said = window.prefix { $0.scope == scope }
      messages += StatementOutbox.batches(said.map(\.statement.encoded)).map { .statements($0, of: scope) }
      window = window.dropFirst(said.count)
    }
    return messages
  }

  /// What is said behind the last statement, once.
  mutating func takeEnd() -> End? {
    guard next == waiting.count else { return nil }
    defer { end = nil }
    return end
  }

  /// Who is a member no longer hears what is said of himself, with what that stands on, and nothing else.
  mutating func passable(_ statements: [Statement], to peer: PublicKey, _ authority: Authority) -> [Statement] {
    guard authority.isEnded(peer) else {
      guard !withheld.isEmpty else { return statements }
      // A member again: what comes from now on may stand on what was kept from it.
      let owed = withheld.union(statements.map(\.id))
      withheld = []
      return TellingOrder(of: owed, lacking: owed, authority).told
    }
    let about = authority.statements(about: peer)
    let candidates = withheld.union(statements.map(\.id))
    // What is said of it later may go on from one of these.
    withheld = candidates.subtracting(about)
    return authority.fleetStatements.filter { candidates.contains($0.id) && about.contains($0.id) }
  }

  /// What is learnt at once is told in one message up to so many bytes: what an admin names of a device that has said all that
  /// it may comes into the set with his statement alone.
  static let togetherByteLimit = 2 * 1_024 * 1_024

  /// Batches well below the limit of a message.
  static func batches(_ encoded: [[UInt8]], byteTarget: Int = RunBatch.byteTarget) -> [[[UInt8]]] {
    var batches: [[[UInt8]]] = []
    var bytes = byteTarget
    for statement in encoded {
      if bytes + statement.count > byteTarget {
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
  /// Statements of the fleet that were learnt elsewhere.
  mutating func hear(_ fresh: [Statement], _ ledger: Ledger, _ step: inout Step) {
    if greeting?.statedAuthority != nil {
      let told = passable(fresh, ledger)
      greeting?.note(told)
    }
    guard hasStatements else { return }
    // What leads to them may not have been sent yet: they go with the rest.
    guard exchange?.isAnswered != false else { return exchange?.learn(fresh) ?? () }
    let told = passable(fresh, ledger)
    // Behind those that they may go on from. Those of rooms lead to none of them, and may wait for long: who is not told
    // of a replica before its runs takes them for a breach.
    guard !outbox.holdsFleet else { return outbox.put(told) }
    say(told, &step)
  }

  /// What was learnt since this side's hello and the peer, who has just said his, is to be told.
  mutating func tellLearnt(since greeting: Greeting, _ ledger: Ledger, _ step: inout Step) {
    say(passable(greeting.statementsSinceHello, ledger), &step)
  }

  private func say(_ statements: [Statement], _ step: inout Step) {
    let batches = StatementOutbox.batches(statements.map(\.encoded), byteTarget: StatementOutbox.togetherByteLimit)
    for batch in batches { step.emit(.send(id, .statements(batch))) }
  }

  private mutating func passable(_ statements: [Statement], _ ledger: Ledger) -> [Statement] {
    outbox.passable(statements, to: peer, ledger.authority)
  }

  /// What the peer lacks by the tips that it told.
  mutating func putMissing(by told: [IssuerTips], _ ledger: Ledger) {
    guard let exchange else { return }
    let lacking = Set(ledger.fleetStatements.missing(by: told).map(\.id)).union(exchange.learnt)
    let authority = ledger.authority
    let passing = outbox.passable(authority.fleetStatements.filter { lacking.contains($0.id) }, to: peer, authority)
    let missing = TellingOrder(of: Set(passing.map(\.id)), lacking: lacking, authority).told
    self.exchange?.noteAnswered()
    outbox.put(missing, then: .complete)
  }

  /// Says what waits, as far as there is room: the rest goes with the next tick, or when there is room again. Answers with
  /// what follows on the last of it.
  mutating func sayStatements(_ step: inout Step) -> StatementOutbox.End? {
    guard isWritable, !outbox.isEmpty else { return nil }
    lastOfStatements = step.now
    for message in outbox.takeWindow(step.configuration.statementWindowByteCount) { step.emit(.send(id, message)) }
    return outbox.takeEnd()
  }

  /// - Parameter words: what is to be told, by the exchange of rooms, whom it is with and the number of the comparison.
  mutating func speakOfRooms(
    _ ledger: Ledger, _ words: (inout RoomExchange, RoomHearer, UInt64) -> [RoomExchange.Word]
  ) -> [RoomExchange.Word] {
    let (hearer, comparison) = (RoomHearer(self, ledger), live?.comparison.count ?? 0)
    return words(&rooms, hearer, comparison)
  }

  /// Of rooms that the peer may carry no longer nothing more goes out that waits for it. Lines that were among it are told
  /// when the peer, who does not know yet, next finds the room to differ. Nor does what waits of the fleet, where the peer is a
  /// member no longer.
  mutating func dropUnhearable(_ ledger: Ledger) {
    outbox.withhold(from: peer, ledger.authority)
    let hearer = RoomHearer(self, ledger)
    outbox.drop(outbox.scopes.filter { PartitionName(roomOf: $0).map { !hearer.mayHear(of: $0) } ?? false })
  }
}
