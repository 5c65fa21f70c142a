import Replication
import Wire

/// What leaves a node.
struct FrameCheck: Check {
  let known: Knowledge
  private var sent = SentBook()
  /// The frame that is looked at may have waited for room.
  private var mayBeLate = false

  init(_ known: Knowledge) { self.known = known }

  mutating func ended(_ connection: UInt64) { sent.ended(connection) }

  /// What is said to be held is on the disk (durable before sent), and goes to nobody who may not carry it (I11).
  mutating func check(_ message: Message, of byteCount: Int, by node: SimulatedNode, over link: NodePorts.Link) {
    let peer = world.nodes[link.remoteSlot]
    // What was said before the peer lost a right, and waited for room since, goes out in its order.
    mayBeLate = link.fullSince != nil
    checkLink(message, node, link)
    switch message {
    case .have(let vector):
      world.count(.haveBytes, times: byteCount)
      check([vector], node, peer)
    case .pull(let stream, let vector):
      check([vector], node, peer)
      sent.pulled(other(link, vector.name), number: stream, vector.staged)
    case .interestChange: sent.forget(link.connection)
    case .payloadPiece(let piece) where piece.stream != PayloadPiece.evidence: check(piece, node, link)
    case .vectors(let vectors): check(vectors, node, peer)
    case .runs(let batch):
      check(batch, node, peer)
      checkHeld(batch, node, peer)
      checkSentOnce(batch, node, link)
    // Who may not carry a partition any more is told how far its own work has come.
    case .chainProbe(let probe) where known.owners[probe.replica] != peer.key.publicKey:
      checkRight(probe.name, node, peer)
    case .pushChoice(let choice): checkRight(choice.name, node, peer)
    case .holdings(let message): check(message, node, peer)
    case .statementSet(let set): check(set, node, peer)
    case .statements(let list, let scope):
      checkRoom(list, scope, node, peer)
      for encoded in list where !rights(of: node).holds(encoded) && !mayBePushedOut(encoded, node) {
        world.violate("durable before sent", "node \(node.slot) passes on a statement that it has not stored")
      }
    default: break
    }
  }

  private func check(_ vectors: [PartitionVector], _ node: SimulatedNode, _ peer: SimulatedNode) {
    for item in vectors {
      checkRight(item.name, node, peer)
      let partition = node.directory.book.partitions[world.fleet.partition(item.name)]
      // Where it says how it differs, an entry of number 0 tells that nothing of the chain is here.
      for (replica, position) in item.vector.entries where position.sequence > 0 {
        guard partition?.reaches(position.sequence, of: replica) != true else { continue }
        world.violate("durable before sent", "node \(node.slot) tells of change \(position.sequence) of \(replica)")
      }
    }
  }

  /// Told is what is on disk, to those who may carry the partition.
  private func check(_ message: HoldingsMessage, _ node: SimulatedNode, _ peer: SimulatedNode) {
    switch message {
    case .records(let items):
      for item in items {
        checkRight(item.partition, node, peer)
        let place = HoldingsPlace(partition: world.fleet.partition(item.partition), subject: item.subject)
        guard (node.directory.book.holdings[place]?.number ?? 0) < item.number else { continue }
        world.violate("durable before sent", "node \(node.slot) tells a word that it has not stored")
      }
    case .question(.known(let list, _)): for known in list { checkRight(known.partition, node, peer) }
    case .question(.fresh(let names)): for name in names { checkRight(name, node, peer) }
    case .question: break
    }
  }

  // MARK: Rooms

  private func check(_ set: StatementSet, _ node: SimulatedNode, _ peer: SimulatedNode) {
    guard let name = PartitionName(roomOf: set.scope) else { return }
    switch set.step {
    // Who asks for all that there is says nothing of what it has.
    case .wanted(let list) where list.allSatisfy(\.tips.isEmpty): break
    // Where the lines end of which the peer may hear.
    case .tips(let listed, let list) where listed == 0 && isOfLines(list, set.scope, node, peer): break
    default: checkRight(name, node, peer)
    }
  }

  private func isOfLines(_ list: [IssuerTips], _ scope: Text, _ node: SimulatedNode, _ peer: SimulatedNode) -> Bool {
    let lines = Set(lines(endingFor: peer, scope, node).map(\.tip))
    return list.allSatisfy { $0.tips.allSatisfy { lines.contains($0.id) } }
  }

  /// Statements of a room go to who may carry it; to others what ended it for their user.
  private func checkRoom(_ list: [[UInt8]], _ scope: Text, _ node: SimulatedNode, _ peer: SimulatedNode) {
    guard let name = PartitionName(roomOf: scope),
      rights(of: node).level(of: peer.key.publicKey, in: scope) < .carry
    else { return }
    let lines = lines(endingFor: peer, scope, node)
    guard !list.compactMap({ FakeCryptography.statement($0).statement }).allSatisfy({ lines.contains($0.id) }) else {
      return
    }
    checkRight(name, node, peer)
  }

  /// What ended the room for the peer's user, with all that it goes on from, up to what statements of the fleet list.
  private func lines(endingFor peer: SimulatedNode, _ scope: Text, _ node: SimulatedNode) -> Set<Digest> {
    let said = node.directory.book.statements.values.filter { $0.scope == scope }
    let carriers = carriers(of: peer.user, said)
    let listed = Set(node.directory.book.statements.values.flatMap { tips(of: $0, in: scope) })
    var lines: Set<Digest> = []
    for statement in said {
      let line = line(to: statement, node)
      let hasEnding = line.contains { isEnding($0, peer, carriers) }
      guard isEnding(statement, peer, carriers) || hasEnding && listed.contains(statement.id) else { continue }
      lines.formUnion(line.map(\.id))
    }
    return lines
  }

  private func isEnding(_ statement: Statement, _ peer: SimulatedNode, _ carriers: Set<Text>) -> Bool {
    switch statement.body {
    case .removal(let removal): carriers.contains(removal.user)
    case .leave(let leave): leave.user == peer.user
    default: false
    }
  }

  /// The statement and all that it goes on from.
  private func line(to statement: Statement, _ node: SimulatedNode) -> [Statement] {
    var line = [statement]
    while let previous = line.last?.previous.flatMap({ node.directory.book.statements[$0] }) { line.append(previous) }
    return line
  }

  /// What a statement of the fleet lists of a room.
  private func tips(of statement: Statement, in room: Text) -> [Digest] {
    let groups: [Statement.ScopeTips] =
      switch statement.body {
      case .grant(let grant): grant.listing.tips
      case .end(let end): end.listing.tips
      case .raise(let raise): raise.listing.tips
      case .unknown(let unknown): unknown.tips
      default: []
      }
    return groups.filter { $0.scope == room }.flatMap(\.tips).map(\.id)
  }

  /// The user, and everyone by whose invitation he may have come in.
  private func carriers(of user: Text, _ said: [Statement]) -> Set<Text> {
    var carriers: Set<Text> = [user]
    for _ in said {
      for statement in said {
        guard case .invitation(let invitation) = statement.body, carriers.contains(invitation.user),
          let inviter = world.nodes.first(where: { $0.key.publicKey == statement.issuer })
        else { continue }
        carriers.insert(inviter.user)
      }
    }
    return carriers
  }

  private func check(_ batch: RunBatch, _ node: SimulatedNode, _ peer: SimulatedNode) {
    checkRight(batch.name, node, peer)
    let partition = world.fleet.partition(batch.name)
    let held = node.directory.book.partitions[partition]?.held ?? []
    for entry in batch.entries {
      if let run = known.library.known(entry.encoded, in: partition), held.contains(run.number) { continue }
      world.violate("durable before sent", "node \(node.slot) sends a run that it has not stored")
    }
  }

  /// What was on its way when others of its issuer pushed it out of the set still goes out (C26).
  private func mayBePushedOut(_ encoded: [UInt8], _ node: SimulatedNode) -> Bool {
    guard world.plan.flood != nil, let issuer = FakeCryptography.statement(encoded).statement?.issuer else {
      return false
    }
    return known.isFull(of: issuer, at: node)
  }

  // MARK: Once

  /// The stream on which the peer at the other end sends.
  private func other(_ link: NodePorts.Link, _ name: PartitionName) -> SentBook.Stream {
    SentBook.Stream(connection: link.connection, side: 1 - link.side, partition: name)
  }

  /// Until its reader asks anew no stream brings a run twice, but where a chain has changed its branch or what counts of
  /// it fell.
  private mutating func checkSentOnce(_ batch: RunBatch, _ node: SimulatedNode, _ link: NodePorts.Link) {
    guard !batch.isForkEvidence, !known.wasNarrowed, world.nodes[link.remoteSlot].liar == nil else { return }
    let stream = SentBook.Stream(connection: link.connection, side: link.side, partition: batch.name)
    if sent.isBusy(stream, number: batch.stream) { violateTurns(node) }
    for entry in batch.entries {
      guard let run = known.library.known(entry.encoded, in: world.fleet.partition(batch.name)), !mayFork(run.replica),
        !sent.send(run.number, on: stream, number: batch.stream)
      else { continue }
      world.violate("twice", "node \(node.slot) sends run \(run.replica) \(run.first) twice on one stream")
    }
  }

  /// What a pull says to hold of a payload does not go again.
  private mutating func check(_ piece: PayloadPiece, _ node: SimulatedNode, _ link: NodePorts.Link) {
    guard world.nodes[link.remoteSlot].liar == nil else { return }
    let stream = SentBook.Stream(connection: link.connection, side: link.side, partition: piece.name)
    if sent.isBusy(stream, number: piece.stream, but: piece.hash) { violateTurns(node) }
    sent.go(piece, on: stream)
    if !sent.send(piece, on: stream) {
      world.violate("twice", "node \(node.slot) sends what its peer holds of payload \(piece.hash)")
    }
  }

  /// Nothing overtakes on a stream what is left of a payload.
  private func violateTurns(_ node: SimulatedNode) {
    world.violate("twice", "node \(node.slot) sends something else before a payload under way has gone out")
  }

  /// C15: what a device wrote above its limits is shown to nobody where its key is said to be in other hands.
  private func checkHeld(_ batch: RunBatch, _ node: SimulatedNode, _ peer: SimulatedNode) {
    let rights = rights(of: node).rights
    guard !mayBeLate, rights.ends.contains(where: { $0.content.reason == .compromised }) else { return }
    let partition = world.fleet.partition(batch.name)
    for entry in batch.entries {
      guard let run = known.library.known(entry.encoded, in: partition), !mayFork(run.replica),
        rights.isInOtherHands(run.replica),
        verdict(node, partition, batch.name).acceptance.isAboveLimit(run.observed)
      else { continue }
      world.violate(
        "I11",
        "node \(node.slot) shows node \(peer.slot) run \(run.replica) \(run.first), whose author is no more itself")
    }
  }

  private func checkRight(_ name: PartitionName, _ node: SimulatedNode, _ peer: SimulatedNode) {
    let level = rights(of: node).level(of: peer.key.publicKey, in: name.text)
    guard level < .carry, !mayBeLate else { return }
    world.violate("I11", "node \(node.slot) tells node \(peer.slot) of \(name.text.string), which it may not carry")
  }

  /// No partition is named that the link did not let pass when the session began.
  private func checkLink(_ message: Message, _ node: SimulatedNode, _ link: NodePorts.Link) {
    let names: [PartitionName] =
      switch message {
      case .have(let vector), .pull(_, let vector): [vector.name]
      case .vectors(let vectors): vectors.map(\.name)
      case .runs(let batch): [batch.name]
      case .payloadPiece(let piece): [piece.name]
      case .chainProbe(let probe): [probe.name]
      case .pushChoice(let choice): [choice.name]
      case .statementSet(let set): PartitionName(roomOf: set.scope).map { [$0] } ?? []
      case .statements(_, let scope): PartitionName(roomOf: scope).map { [$0] } ?? []
      default: []
      }
    guard let stray = names.first(where: { !link.state.lets($0) }) else { return }
    world.violate("link", "node \(node.slot) speaks of \(stray.text.string) over a link that does not carry it")
  }
}
