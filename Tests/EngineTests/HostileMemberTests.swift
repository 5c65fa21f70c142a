import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// One member who uses up all that a member may: what that costs an honest node, and that honest devices go on.
@Suite struct HostileMemberTests {
  private let bench: EngineBench
  private let room: PartitionName
  /// The hostile device has no engine: it says what it likes.
  private let hostile: Int

  init() throws {
    // An eighth of what a device may take, so that it is soon taken; what that costs is counted eight times.
    bench = try EngineBench(3) {
      $0.mesh.takes.partitions /= Self.scale
      $0.mesh.takes.chains /= Self.scale
      $0.mesh.takes.heldChanges /= Self.scale
    }
    room = try PartitionName("room=1")
    hostile = 2
    for node in bench.nodes { try node.subscribe("*") }
    try bench.nodes[0].write(room, Put("a"))
    author = HostileAuthor(bench, slot: hostile)
  }

  private static let scale = 8
  private let author: HostileAuthor

  private var node: BenchNode { bench.nodes[0] }

  /// What an entry of each kind takes at most in memory, with what a dictionary adds.
  private func memory(_ footprint: Footprint) -> Int {
    // Decoded beside their bytes.
    footprint.statementBytes * 3 + footprint.statementsToSay * 16 + footprint.announcedChains * 96
      + footprint.interestItems * 84 + footprint.postponedBytes + footprint.awaitedStreams * 768
      + (footprint.heldChanges * 140 + footprint.partitions * 1_536 + footprint.chains * 640 + footprint.streams * 768)
      * Self.scale
  }

  private static let mebibyte = 1_024 * 1_024

  private func say(_ message: Message, _ session: SessionID) {
    node.engine.turn([.message(session, message, byteCount: 100)])
  }

  // MARK: Statements

  /// As many as it likes: declarations first, then grants that list much, then branches at the start.
  private func statements() throws -> [Statement] {
    let (identity, state) = (bench.nodes[hostile].state.identity, bench.nodes[hostile].state)
    let membership = try #require(state.mesh.authority.member(of: identity.device)).id
    let chains = (0..<240).map {
      Statement.ChainEnd(
        replica: ReplicaID(high: 9, low: $0), position: ChainPosition(sequence: 1 << 40, tip: TipHash(high: $0, low: 7))
      )
    }
    let listing = Statement.Listing(ends: [Statement.PartitionEnds(partition: "x=1", chains: chains)])
    var (said, last) = ([Statement](), state.mesh.authority.lastStatement(of: identity.device))
    let start = last
    func grant(_ number: Int) -> Statement.Body {
      .grant(Statement.Grant(subject: .everyone, level: .read, pattern: Text("x\(number)"), listing: listing))
    }
    func add(_ body: Statement.Body, after link: Statement.Link?) throws {
      let statement = try identity.statement(body, after: link)
      said.append(statement)
      last = Statement.Link(sequence: statement.sequence, id: statement.id)
    }
    for number in 0..<600 as Range<UInt64> {
      let nonce = UUIDValue(high: 5, low: number)
      let replica = ReplicaID.derived(device: identity.deviceID, nonce: nonce, identity.cryptography.hash)
      let declaration = Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership)
      try add(.replica(declaration), after: last)
    }
    for number in 0..<500 { try add(grant(number), after: last) }
    for number in 500..<600 { try add(grant(number), after: start) }
    return said
  }

  // MARK: Partitions, replicas and pieces

  /// One change in each of more partitions than a device may have; one under every replica id where others write; and
  /// more under each in what it has to itself.
  private func writesEverywhere(_ session: SessionID) throws {
    let limit = node.state.options.mesh.takes.partitions
    let replicas = node.state.mesh.authority.replicas(of: author.identity.device)
    for number in 0..<limit + 100 {
      let name = try PartitionName(Text("begun=\(number)"))
      author.offer(name, [try author.run(name, replicas[0])], to: 0, on: session)
    }
    let seen = node.accepted(room)
    for replica in replicas {
      author.offer(room, [try author.run(room, replica, seen: seen)], to: 0, on: session)
    }
    for number in 0..<4 {
      let name = try PartitionName(Text("begun=\(number)"))
      for replica in replicas.dropFirst() { author.offer(name, [try author.run(name, replica)], to: 0, on: session) }
    }
    let take = try #require(node.state.mesh.takes[author.identity.device])
    #expect(take.partitions == limit + 1 || take.partitions == limit)
    #expect(take.leftOutRuns > 100)
  }

  /// Changes that nobody can read, at the end of a chain: as many as may be held one by one, and more.
  private func writesWhatIsHeld(_ session: SessionID) throws {
    let (limit, name) = (node.state.options.mesh.takes.heldChanges, try PartitionName("begun=0"))
    let replica = node.state.mesh.authority.replicas(of: author.identity.device)[0]
    var held = 0
    while held < limit + 1_000 {
      let run = try author.run(name, replica, count: 64, codec: PayloadCodec(rawValue: 7))
      author.say([author.batch(name, [run], asEvidence: true)], to: 0, on: session)
      held += 64
    }
    let take = try #require(node.state.mesh.takes[author.identity.device])
    #expect((limit..<limit + 64).contains(take.heldChanges))
    #expect(node.state.mesh.footprint.heldChanges == take.heldChanges)
  }

  /// Payloads of the largest size but for their last piece, each in another partition and on another of its sessions.
  private func beginsPayloads(_ session: SessionID) throws {
    let sessions = [session, bench.connect(hostile, 0), bench.connect(hostile, 0)]
    let total = Run.changePayloadByteLimit
    for number in 0..<12 as Range<UInt64> {
      let name = try PartitionName(Text("begun=\(number)"))
      let bytes = [UInt8](repeating: 7, count: PayloadPiece.byteLimit)[...]
      let hash = Digest(words: (number, 1, 2, 3))
      for offset in stride(from: 0, to: total - 2 * PayloadPiece.byteLimit, by: PayloadPiece.byteLimit) {
        let piece = PayloadPiece(
          name: name, stream: PayloadPiece.evidence, hash: hash, total: UInt64(total), offset: UInt64(offset),
          bytes: bytes)
        author.say([.payloadPiece(piece)], to: 0, on: sessions[Int(number) % sessions.count])
      }
    }
    let staged = try node.store.stagedShares().reduce(0) { $0 + Int($1.byteCount) }
    #expect(staged > 8 * Self.mebibyte && staged <= StagedPayloads.deviceByteLimit, "\(staged)")
  }

  // MARK: All at once

  @Test("a member who spends every allowance costs so much memory, disk and reconnecting, and honest devices go on")
  func spends() throws {
    bench.cut(bench.meet(0, 1))
    let diskBefore = node.store.store.databaseBytes + node.store.store.writeAheadLogBytes
    let memoryBefore = memory(node.state.mesh.footprint)
    let session = bench.meet(hostile, 0)
    try #require(node.state.mesh.sessions[session]?.phase == .live)

    let said = try statements()
    for batch in stride(from: 0, to: said.count, by: 20) {
      say(.statements(said.dropFirst(batch).prefix(20).map(\.encoded)), session)
    }
    #expect(node.state.mesh.footprint.statementBytes < 5 * Self.mebibyte)
    #expect(try node.count("statements") == node.state.mesh.ledger.statements.count)

    let own = node.state.mesh.authority.replicas(of: bench.nodes[hostile].state.identity.device)
    let vector = VersionVector(
      Dictionary(own.map { ($0, ChainPosition(sequence: 7, tip: .zero)) }) { first, _ in first })
    for number in 0..<700 {
      let name = try PartitionName(Text("flood=\(number)"))
      say(.have(PartitionVector(name: name, vector: vector)), session)
    }
    let items = (0..<100_000).map { PartitionID(Digest(words: (UInt64($0), 0, 0, 1))) }
    say(.interestChange(added: Interest(partitions: Set(items)), removed: Interest()), session)

    try writesEverywhere(session)
    try writesWhatIsHeld(session)
    try beginsPayloads(session)
    let cost = memory(node.state.mesh.footprint) - memoryBefore
    #expect(cost < 64 * Self.mebibyte, "\(cost) bytes: \(node.state.mesh.footprint)")
    let disk = node.store.store.databaseBytes + node.store.store.writeAheadLogBytes - diskBefore
    #expect(disk < 64 * Self.mebibyte, "\(disk) bytes")

    bench.dropWire()
    // Honest devices go on, and what they say when they meet again is little.
    let spoken = try reconnectAfterAWrite("b")
    #expect(spoken < 64 * 1_024, "\(spoken) bytes")
    try bench.nodes[1].write(room, Put("c"))
    bench.run()
    #expect(try node.shown(room, "c") != nil)
    // What a peer wanted and announced goes with its sessions.
    // Not all ends know of one another any more, since words were lost.
    node.engine.turn(node.state.mesh.sessions.ids.map { .closed($0, reason: "lost") })
    #expect(node.state.mesh.footprint.announcedChains == 0)
  }

  /// The two honest ones are level and part, one writes, and they meet again: bytes of what they then say.
  private func reconnectAfterAWrite(_ id: Text) throws -> Int {
    bench.cut(bench.meet(0, 1))
    try node.write(room, Put(id))
    node.links.clearSent()
    bench.nodes[1].links.clearSent()
    bench.meet(1, 0)
    #expect(try bench.nodes[1].shown(room, id) != nil)
    return (node.links.sent + bench.nodes[1].links.sent).reduce(0) { $0 + MessageCodec.encode($1).count }
  }

  @Test("beside a member who writes where others do under each replica id that it may declare a reconnect costs little")
  func replicas() throws {
    let session = bench.meet(hostile, 0)
    let declared = try author.declare(1_010)
    for start in stride(from: 0, to: declared.count, by: 100) {
      say(.statements(declared.dropFirst(start).prefix(100).map(\.encoded)), session)
    }
    let seen = node.accepted(room)
    for replica in author.replicas {
      author.offer(room, [try author.run(room, replica, seen: seen)], to: 0, on: session)
    }
    #expect(node.accepted(room).count == author.replicas.count + 1)
    bench.dropWire()
    let spoken = try reconnectAfterAWrite("b")
    #expect(spoken < 64 * 1_024, "\(spoken) bytes")
    // A run of the peer's, which stands on all of it, comes back.
    try bench.nodes[1].write(room, Put("c"))
    bench.run()
    #expect(try node.shown(room, "c") != nil)
  }

  @Test("sessions of one device that together want more than one may give way, the oldest first")
  func interests() throws {
    func wish(_ number: UInt64) -> Message {
      let items = (0..<60_000 as Range<UInt64>).map { PartitionID(Digest(words: ($0, number, 0, 1))) }
      return .interestChange(added: Interest(partitions: Set(items)), removed: Interest())
    }
    let first = bench.meet(hostile, 0)
    let copy = try bench.clone(hostile)
    let second = bench.meet(copy, 0)
    say(wish(1), first)
    #expect(node.state.mesh.sessions[first]?.phase == .live)
    say(wish(2), second)
    #expect(node.state.mesh.sessions[first] == nil && node.state.mesh.sessions[second]?.phase == .live)
  }
}
