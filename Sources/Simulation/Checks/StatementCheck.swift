import Replication
import Wire

/// What is told of the fleet's statements: each once to a peer, behind what it goes on from, and to a device that was ended
/// what is said of itself alone.
struct StatementCheck: Check {
  let known: Knowledge
  /// What one end of a connection has told, and what it knows the other to hold.
  private struct Telling {
    /// The teller's commits when the connection began.
    let begunAt: Int
    var sent: Set<Digest> = []
    /// At or below the tips that the other told before it was sent anything; nil until then.
    var held: Set<Digest>?
  }

  private struct End: Hashable {
    let connection: UInt64
    let side: Int
  }

  private var tellings: [End: Telling] = [:]

  init(_ known: Knowledge) { self.known = known }

  mutating func ended(_ connection: UInt64) {
    for side in 0...1 { tellings[End(connection: connection, side: side)] = nil }
  }

  /// A frame goes out: from then on the connection counts as begun.
  mutating func check(_ message: Message, by node: SimulatedNode, over link: NodePorts.Link) {
    let end = End(connection: link.connection, side: link.side)
    var telling = tellings[end] ?? Telling(begunAt: node.directory.book.commits)
    defer { tellings[end] = telling }
    guard case .statements(let list, let scope) = message, scope.utf8.isEmpty else { return }
    let peer = world.nodes[link.remoteSlot]
    guard peer.liar == nil, world.options.builds == nil else { return }
    for statement in list.compactMap({ FakeCryptography.statement($0).statement }) {
      if isHeard(link, by: peer) { checkOrder(of: statement, telling, node, peer) }
      checkHearing(of: statement, telling, node, peer)
      // What an admin names of a member that floods is told again with what names it.
      if telling.held?.contains(statement.id) == true, !known.floods(statement.issuer) {
        world.violate("twice", "node \(node.slot) tells node \(peer.slot) a statement that it has said to hold")
      }
      telling.sent.insert(statement.id)
    }
  }

  /// The node at the end of a connection was asked for what the other lacks, by the tips that it has.
  mutating func delivered(_ frame: [UInt8], to node: SimulatedNode, on connection: UInt64, side: Int) {
    // A set is an array, and its number the first item: others need not be read once more.
    guard frame.count > 2, frame[1] == 4, case .statementSet(let set)? = try? MessageCodec.decode(frame[...]),
      case .wanted(let list) = set.step, set.scope.utf8.isEmpty
    else { return }
    let end = End(connection: connection, side: side)
    guard tellings[end]?.sent.isEmpty == true, tellings[end]?.held == nil else { return }
    let tips = Set(list.flatMap(\.tips).map(\.id))
    let (book, begunAt) = (node.directory.book, tellings[end]?.begunAt ?? 0)
    // What was learnt since then goes with the rest.
    let known = book.statements.values.filter { tips.contains($0.id.tip) }
    let held = lines(to: known, book).filter { book.learntAt[$0] ?? 0 <= begunAt }
    tellings[end]?.held = held
  }

  /// These, and all that they go on from.
  private func lines(to statements: [Statement], _ book: NodeBook) -> Set<Digest> {
    var lines: Set<Digest> = []
    for statement in statements {
      var next: Statement? = statement
      while let step = next, lines.insert(step.id).inserted {
        next = step.previous.flatMap { book.statements[$0] }
      }
    }
    return lines
  }

  // MARK: Order

  /// The other end may be a process that is gone, and its directory may have gone back since.
  private func isHeard(_ link: NodePorts.Link, by peer: SimulatedNode) -> Bool {
    peer.process?.ports.links.values.contains { $0.connection == link.connection } == true
  }

  /// C26: what it goes on from is there, or was told before.
  private func checkOrder(of statement: Statement, _ telling: Telling, _ node: SimulatedNode, _ peer: SimulatedNode) {
    guard let previous = statement.previous, !telling.sent.contains(previous),
      peer.directory.book.statements[previous] == nil,
      // Others of their issuer may have pushed it out there, since it was told of.
      world.plan.flood == nil || !known.isFull(of: statement.issuer, at: peer)
    else { return }
    world.violate("order", "node \(node.slot) tells node \(peer.slot) a statement ahead of what it goes on from")
  }

  // MARK: Who was ended

  /// Who is a member no longer hears what is said of himself, with what that stands on. What was on its way when the end came
  /// may still go out.
  private func checkHearing(
    of statement: Statement, _ telling: Telling, _ node: SimulatedNode, _ peer: SimulatedNode
  ) {
    let (book, key) = (node.directory.book, peer.key.publicKey)
    guard let endedAt = end(of: key, node), telling.begunAt > endedAt || book.learntAt[statement.id] ?? 0 >= endedAt,
      !said(of: key, node).contains(statement.id)
    else { return }
    world.violate("I11", "node \(node.slot) tells node \(peer.slot), which was ended, what is not said of it")
  }

  /// The number of the commit with which the device's last membership ended; nil where one stands, or there never was one.
  private func end(of device: PublicKey, _ node: SimulatedNode) -> Int? {
    let (book, rights) = (node.directory.book, rights(of: node).rights)
    let members = rights.rank.members.filter { $0.device == device }
    let ends = members.map { member in rights.ends(on: .membership(member.id)) }
    guard !members.isEmpty, ends.allSatisfy({ !$0.isEmpty }) else { return nil }
    return ends.joined().compactMap { book.learntAt[$0.id] }.max()
  }

  /// Its memberships, their ends and what raises those, with all that these stand on: what they go on from, what their tips
  /// name, and the memberships of whoever issued them.
  private func said(of device: PublicKey, _ node: SimulatedNode) -> Set<Digest> {
    let all = node.directory.book.statements.values.filter(\.isOfFleet)
    func members(of device: PublicKey) -> Set<Digest> {
      Set(all.filter { NaiveMember($0)?.device == device }.map(\.id))
    }
    var said = members(of: device)
    for statement in all {
      if case .end(let end) = statement.body, case .membership(let id) = end.target, said.contains(id) {
        said.insert(statement.id)
      }
    }
    for statement in all {
      if case .raise(let raise) = statement.body, said.contains(raise.end) { said.insert(statement.id) }
    }
    var (closure, waiting): (Set<Digest>, [Digest]) = ([], Array(said))
    while let id = waiting.popLast() {
      guard let statement = node.directory.book.statements[id], closure.insert(id).inserted else { continue }
      waiting += statement.previous.map { [$0] } ?? []
      waiting += (NaiveListing.own(of: statement)?.tips ?? []).filter { $0.scope.utf8.isEmpty }.flatMap(\.tips).map(
        \.id)
      waiting += members(of: statement.issuer)
    }
    return closure
  }
}
