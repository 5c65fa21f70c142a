import Engine
import Replication
import Testing
import Wire

@testable import Simulation

/// Each shows the onlooker what no node should say, when all is quiet, and what it may say just before.
@Suite("The onlooker hears what no node should say") struct ConversationTests {
  private let world: World
  private let (speaker, hearer): (NodeProcess, NodeProcess)
  private let link: NodePorts.Link

  init() throws {
    var options = SimulationOptions()
    (options.nodes, options.partitions, options.faults) = (3...3, 1...1, [])
    (options.troubledMilliseconds, options.usesDisk, options.hasRooms) = (3_000, false, false)
    world = World(seed: 2, options)
    try #require(world.run().violations.isEmpty)
    (speaker, hearer) = (try #require(world.nodes[0].process), try #require(world.nodes[2].process))
    link = try #require(speaker.ports.links.values.first { $0.remoteSlot == 2 })
  }

  private func say(_ message: Message, over link: NodePorts.Link? = nil) {
    world.oracle.sending(MessageCodec.encode(message), by: speaker.node, over: link ?? self.link)
  }

  private var rules: [String] { world.report.violations.map(\.rule) }

  /// What the root says next, and nobody has heard.
  private func said() throws -> Statement {
    let everything = Fleet.Register(subject: .everyone, pattern: "*")
    return try #require(world.fleet.grant(.write, everything, ends: [])?.last)
  }

  /// The same, which the speaker has stored and told.
  private func stated() throws -> Statement {
    let statement = try said()
    speaker.put(.call { $0.add([statement]) })
    speaker.turn()
    try #require(rules.isEmpty)
    return statement
  }

  @Test("a statement goes ahead of what it goes on from")
  func order() throws {
    let (first, second) = (try said(), try said())
    say(.statements([first.encoded, second.encoded]))
    // That the speaker has not stored them is another fault.
    #expect(!rules.contains("order"))
    let (third, fourth) = (try said(), try said())
    say(.statements([fourth.encoded, third.encoded]))
    #expect(rules.contains("order"))
  }

  @Test("an ended device is told what is not said of it")
  func ended() throws {
    let (device, author) = (
      hearer.node.key.publicKey, StatementAuthor(key: speaker.node.key.publicKey, sign: speaker.node.key.sign)
    )
    let before = try stated()
    speaker.put(
      .call { engine in
        guard let plan = try? engine.plan(.end(device, .retire, nil), authors: [author]) else { return }
        try? engine.carryOut(plan, authors: [author])
      })
    speaker.turn()
    let ends = speaker.node.directory.book.statements.values.filter { if case .end = $0.body { true } else { false } }
    try #require(ends.count == 1 && rules.isEmpty)
    say(.statements([before.encoded] + ends.map(\.encoded)))
    #expect(rules.isEmpty)
    say(.statements([try stated().encoded]))
    #expect(rules == ["I11"])
  }

  @Test("nothing is compared for long")
  func comparisons() {
    world.clock += 1_000
    say(.ping(nonce: 1))
    #expect(rules.isEmpty)
    world.clock += 4 * world.plan.mesh.antiEntropyMilliseconds + 5_000
    say(.ping(nonce: 2))
    #expect(rules == ["silence"])
  }

  @Test("something overtakes on a stream the rest of a payload")
  func turns() throws {
    let name = try #require(world.plan.partitions.first)
    func piece(from offset: UInt64, of hash: Digest) -> Message {
      .payloadPiece(
        PayloadPiece(
          name: name, stream: 7, hash: hash, total: 40_000, offset: offset, bytes: .init(repeating: 1, count: 20_000)))
    }
    let pull = Message.pull(stream: 7, PartitionVector(name: name, vector: VersionVector()))
    let other = try #require(hearer.ports.links.values.first { $0.connection == link.connection })
    world.oracle.sending(MessageCodec.encode(pull), by: hearer.node, over: other)
    let runs = Message.runs(RunBatch(name: name, stream: 7, entries: []))
    for offset in [0, 20_000] as [UInt64] { say(piece(from: offset, of: world.fleet.id.digest)) }
    say(runs)
    #expect(rules.isEmpty)
    say(piece(from: 0, of: .zero))
    say(runs)
    #expect(rules == ["twice"])
  }

  @Test("a node wakes again and again for nothing")
  func idle() {
    for _ in 0..<90 { speaker.turn() }
    #expect(rules.isEmpty)
    for _ in 0..<20 { speaker.turn() }
    #expect(rules.allSatisfy { $0 == "idle" } && !rules.isEmpty)
  }

  @Test("writes wait for a claim after writes have waited for one in vain")
  func claims() {
    let start = world.clock
    func waited(from begin: UInt64, to end: UInt64) {
      world.clock = end
      world.oracle.conduct.checkTrust(in: 1, takenAt: begin, by: speaker)
    }
    waited(from: start, to: start + 2_000)
    waited(from: start + 100, to: start + 2_000)
    waited(from: start + 3_000, to: start + 3_020)
    #expect(rules.isEmpty)
    waited(from: start + 4_000, to: start + 6_000)
    #expect(rules == ["claims"])
  }

  @Test("a write is answered by the first turn since it was long due")
  func patience() {
    world.oracle.conduct.checkPatience(with: 1, takenAt: world.clock, by: speaker)
    #expect(rules.isEmpty)
    let asked = world.clock
    world.clock += OwnChainClaims.holdMilliseconds + 51
    world.oracle.conduct.checkPatience(with: 1, takenAt: asked, by: speaker)
    #expect(rules == ["answer"])
  }

  @Test("a payload is stored under a hash that is not its own")
  func payload() {
    var commit = ObservedCommit()
    let bytes: [UInt8] = [1, 2, 3]
    commit.payloads = [ApartPayload(hash: bytes.withUnsafeBytes(FakeCryptography.hash), bytes: bytes[...])]
    world.oracle.committed(commit, by: speaker)
    #expect(rules.isEmpty)
    commit.payloads = [ApartPayload(hash: .zero, bytes: bytes[...])]
    world.oracle.committed(commit, by: speaker)
    #expect(rules == ["store"])
  }
}
