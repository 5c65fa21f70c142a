import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: catch-up, statements and moments in between") struct MeshCatchUpTests {
  @Test("what is written while the handshake goes on arrives without a wait, whenever it is written")
  func duringHandshake() throws {
    for step in 0..<14 {
      let bench = try MeshBench([0, 1])
      _ = bench.connect(0, 1)
      bench.run(step)
      try bench.nodes[0].write(1)
      bench.run()
      #expect(bench.nodes[1].holds(bench.nodes[0]) == 1, "after \(step) messages")
    }
  }

  @Test("one statement of ten thousand that differs costs the tips of its bucket and itself", arguments: [0, 1])
  func oneStatementOfMany(slot: Int) throws {
    // Of five thousand devices, each with a membership and a replica.
    let bench = try MeshBench([0, 4_980])
    try #require(bench.nodes.allSatisfy { $0.mesh.authority.count > 9_900 })
    let more = try #require(bench.state(.rule(Statement.Rule(key: "vessel"))))
    bench.nodes[slot].deliver(.statementsStored([more]))
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    #expect(bench.nodes.allSatisfy { $0.mesh.authority.holds(more.id) })
    let spoken = bench.transcript.dropFirst(start).reduce(0) { $0 + MessageCodec.encode($1.message).count + 4 }
    #expect(spoken <= 8_192, "\(spoken) bytes")
  }

  /// Nodes 0 and 1 hold the same three runs; node 2 lacks them, and commits only when told so.
  private func sources() throws -> MeshBench {
    let bench = try MeshBench([0, 1, 2])
    for value in 0..<3 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.cut(bench.connected(0, 1))
    try #require(bench.nodes[1].log.count == 3)
    bench.nodes[2].holdsCommits = true
    return bench
  }

  private func pulls(_ bench: MeshBench, to slot: Int) -> Int {
    bench.said(from: 2, to: slot).count { $0 == "pull" }
  }

  @Test("a catch-up goes on with another peer when the session that did it closes, at whatever moment")
  func closed() throws {
    for step in 0..<24 {
      for closing in 0..<2 {
        let bench = try sources()
        let ids = [bench.connect(2, 0), bench.connect(2, 1)]
        bench.run(step)
        bench.cut(ids[closing])
        bench.run()
        bench.nodes[2].commit()
        #expect(bench.nodes[2].holds(bench.nodes[0]) == 3, "session \(closing) after \(step) messages")
      }
    }
  }

  @Test("one peer at a time does a catch-up; once level, the streams of the others are opened, too")
  func onePeer() throws {
    let bench = try sources()
    bench.nodes[2].holdsCommits = false
    let silent = bench.connect(2, 0)
    bench.run()
    #expect(bench.nodes[2].log.count == 3)
    bench.cut(silent)

    let other = try sources()
    other.nodes[0].holdsLoads = true
    _ = other.connected(2, 0)
    _ = other.connected(2, 1)
    #expect(pulls(other, to: 0) == 1 && pulls(other, to: 1) == 0)
    other.nodes[0].holdsLoads = false
    other.nodes[0].deliver(.tick)
    other.run()
    other.nodes[2].holdsCommits = false
    other.nodes[2].commit()
    other.run()
    #expect(pulls(other, to: 1) == 1 && other.nodes[2].holds(other.nodes[0]) == 3)
    #expect(other.nodes[2].notes.contains(.levelWith(other.name)))
  }

  enum Leaving: CaseIterable { case right, interest }

  @Test(
    "who may not carry any more what he was asked for, or will not, is not waited for: another is asked at once",
    arguments: Leaving.allCases)
  func outOfScope(leaving: Leaving) throws {
    let bench = try MeshBench([0, 1, 2])
    func grant(_ level: AccessLevel, to slot: Int) -> Statement.Body {
      let device = Statement.Subject.device(bench.nodes[slot].key.publicKey)
      return .grant(Statement.Grant(subject: device, level: level, pattern: "*"))
    }
    let nothing = Statement.Grant(subject: .everyone, level: .none, pattern: "*")
    bench.state([.grant(nothing), grant(.carry, to: 0), grant(.write, to: 1), grant(.carry, to: 2)])
    for value in 0..<3 as Range<Int64> { try bench.nodes[1].write(value) }
    bench.cut(bench.connected(0, 1))
    bench.nodes[0].holdsLoads = true
    for slot in 0..<2 { _ = bench.connected(2, slot) }
    try #require(pulls(bench, to: 0) == 1 && pulls(bench, to: 1) == 0)
    switch leaving {
    case .right: bench.state([grant(.none, to: 0)])
    case .interest:
      let (narrow, wide) = (bench.fleet.interest("user=*"), bench.fleet.interest("*"))
      bench.nodes[0].deliver(.interestChanged(added: narrow, removed: wide))
    }
    bench.run()
    #expect(pulls(bench, to: 1) == 1 && bench.nodes[2].holds(bench.nodes[1]) == 3)
  }

  @Test("what this node does not want any more it asks of nobody, whoever was to bring it")
  func isNotWanted() throws {
    let bench = try sources()
    bench.nodes[0].holdsLoads = true
    for slot in 0..<2 { _ = bench.connected(2, slot) }
    try #require(pulls(bench, to: 0) == 1 && pulls(bench, to: 1) == 0)
    bench.nodes[2].deliver(.interestChanged(added: Interest(), removed: bench.fleet.interest("*")))
    bench.run()
    #expect(pulls(bench, to: 1) == 0)
  }

  @Test("a catch-up that brings nothing for five seconds goes to the next peer, one that brings something does not")
  func silent() throws {
    let bench = try sources()
    bench.nodes[0].holdsLoads = true
    bench.nodes[2].holdsCommits = false
    _ = bench.connected(2, 0)
    _ = bench.connected(2, 1)
    bench.pass(5_000)
    #expect(pulls(bench, to: 1) == 0)
    bench.pass(50)
    #expect(pulls(bench, to: 1) == 1 && bench.nodes[2].holds(bench.nodes[0]) == 3)
  }

  @Test("runs that were committed keep a catch-up with its peer")
  func progress() throws {
    let bench = try sources()
    bench.nodes[0].holdsLoads = true
    let first = bench.connected(2, 0)
    _ = bench.connected(2, 1)
    bench.pass(4_000)
    let stream = try #require(bench.nodes[2].mesh.sessions[first]?.live?.streams[bench.partition]?.incoming.number)
    let run = bench.nodes[0].log[0]
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    bench.nodes[2].receive(.runs(RunBatch(name: bench.name, stream: stream, entries: [entry])), on: first)
    bench.nodes[2].commit()
    bench.pass(4_000)
    #expect(pulls(bench, to: 1) == 0, "heard of a second time four seconds ago")
    bench.pass(1_100)
    #expect(pulls(bench, to: 1) == 1)
  }

  @Test("a stream that stays silent although its peer has more is asked for anew, after five seconds")
  func askedAnew() throws {
    for wait in [4_900, 5_100] as [UInt64] {
      let bench = try MeshBench([0, 1])
      try bench.nodes[0].write(0)
      let id = bench.connected(0, 1)
      try bench.nodes[0].write(1)
      bench.loseMessages()
      bench.now = bench.now.advanced(byMilliseconds: wait)
      let start = bench.transcript.count
      let held = try #require(bench.nodes[0].state?.clipped)
      bench.nodes[1].receive(.have(PartitionVector(name: bench.name, vector: held)), on: id)
      bench.run()
      #expect(bench.said(from: 1, to: 0, since: start).contains("pull") == (wait > 5_000))
      #expect((bench.nodes[1].holds(bench.nodes[0]) == 2) == (wait > 5_000))
    }
  }

  // MARK: Statements

  private func rule(_ bench: MeshBench, _ key: Text, fleet: FleetID? = nil) throws -> Statement {
    let rule = Statement.Body.rule(Statement.Rule(key: key))
    return try #require(
      bench.fleet.root.statement(fleet ?? bench.fleet.id, rule, after: bench.fleet.statements.last))
  }

  private func holds(_ bench: MeshBench, _ slot: Int, _ statement: Statement) -> Bool {
    bench.nodes[slot].mesh.authority.holds(statement.id)
  }

  @Test("statements that differ are exchanged before anything else, and nobody goes on before both are through")
  func exchange() throws {
    let bench = try MeshBench([0, 1])
    let rules = [try rule(bench, "a"), try rule(bench, "bb")]
    for slot in 0..<2 { bench.nodes[slot].deliver(.statementsStored([rules[slot]])) }
    _ = bench.connected(0, 1)
    for slot in 0..<2 {
      #expect(rules.allSatisfy { holds(bench, slot, $0) } && bench.nodes[slot].stored == [rules[1 - slot]])
      let said = bench.said(from: slot, to: 1 - slot)
      let sets = [String](repeating: "statementSet", count: slot + 1)
      #expect(said == ["hello"] + sets + ["statements", "statementsComplete", "summary"])
    }
  }

  @Test("who has told all it has still waits for the peer, and hears of its tips once")
  func waits() throws {
    let bench = try MeshBench([0, 1])
    bench.nodes[1].deliver(.statementsStored([try rule(bench, "a")]))
    let id = bench.connect(0, 1)
    bench.run(1)
    bench.loseMessages()
    let tips = Message.statementSet(StatementSet(scope: "", .tips(listed: .max, [])))
    bench.nodes[1].receive(tips, on: id)
    #expect(bench.said(from: 1, to: 0).suffix(2) == ["statements", "statementsComplete"])
    let count = bench.transcript.count
    bench.nodes[1].receive(.statementsComplete(), on: id)
    #expect(bench.said(from: 1, to: 0, since: count) == ["summary"])
    bench.nodes[1].receive(tips, on: id)
    #expect(bench.messages(from: 1, to: 0).last == .goodbye(.protocolError))
  }

  @Test("a statement in an envelope of a later version is skipped, and what came with it is taken")
  func laterVersion() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let rule = try rule(bench, "a")
    var later = rule.encoded
    later[1] = 2
    bench.nodes[1].receive(.statements([later, [0x82, 2, 0], rule.encoded]), on: id)
    #expect(bench.nodes[1].stored == [rule] && bench.nodes[1].mesh.sessions[id] != nil)
  }

  @Test("a statement of another scope than its message ends the session")
  func otherScope() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.nodes[1].receive(
      .statements([try rule(bench, "a").encoded], of: PartitionName.room(createdBy: .zero)), on: id)
    #expect(bench.nodes[1].mesh.sessions[id] == nil && bench.nodes[1].stored.isEmpty)
  }

  @Test("a statement learnt at any moment of a handshake reaches the peer")
  func learntMeanwhile() throws {
    for slot in 0..<2 {
      for step in 0..<8 {
        let bench = try MeshBench([0, 1])
        let rule = try rule(bench, "late")
        _ = bench.connect(0, 1)
        bench.run(step)
        bench.nodes[slot].deliver(.statementsStored([rule]))
        bench.run()
        #expect(holds(bench, 1 - slot, rule), "node \(slot) after \(step) messages")
      }
    }
  }

  @Test("what is learnt while statements are exchanged goes behind what leads to it, whoever else signed that")
  func learntBehind() throws {
    for slot in 0..<2 {
      for step in 0..<8 {
        let bench = try MeshBench([0, 1])
        let newcomer = FakeKey(&bench.random)
        let membership = Statement.Membership(
          device: newcomer.publicKey, user: "zoe", label: "", role: "officer", profile: ValueMap())
        let admits = try #require(bench.state(.membership(membership)))
        let says = try #require(newcomer.statement(bench.fleet.id, .rule(Statement.Rule(key: "late"))))
        bench.nodes[slot].deliver(.statementsStored([admits]))
        _ = bench.connect(0, 1)
        bench.run(step)
        bench.nodes[slot].deliver(.statementsStored([says]))
        bench.run()
        #expect(holds(bench, 1 - slot, says), "node \(slot) after \(step) messages")
      }
    }
  }

  @Test("a statement goes to every other peer and not back; known ones go to nobody")
  func passedOn() throws {
    let bench = try MeshBench([0, 1, 2])
    _ = bench.connected(0, 1)
    let second = bench.connected(1, 2)
    let rule = try rule(bench, "a")
    let start = bench.transcript.count
    bench.nodes[0].deliver(.statementsStored([rule]))
    bench.run()
    #expect(holds(bench, 2, rule) && !bench.said(from: 1, to: 0, since: start).contains("statements"))
    let count = bench.transcript.count
    bench.nodes[2].receive(.statements([rule.encoded]), on: second)
    #expect(bench.transcript.count == count && bench.nodes[2].stored == [rule])
  }

  @Test("a statement of another fleet, or none at all, ends the session")
  func foreign() throws {
    for encoded in [try rule(MeshBench([0, 1]), "a", fleet: FleetID(.zero)).encoded, [1, 2, 3]] {
      let bench = try MeshBench([0, 1])
      let id = bench.connected(0, 1)
      bench.nodes[1].receive(.statements([encoded]), on: id)
      #expect(bench.nodes[1].mesh.sessions[id] == nil && bench.nodes[1].stored.isEmpty)
      #expect(bench.messages(from: 1, to: 0).last == .goodbye(.protocolError))
    }
  }

  @Test("so many statements are kept, one more is not")
  func statementLimit() throws {
    for room in [1, 0] {
      let bench = try MeshBench([0, 1])
      let id = bench.connected(0, 1)
      for number in 0..<UInt64(Statement.countLimit - room - bench.nodes[1].mesh.ledger.statements.count) {
        bench.nodes[1].mesh.ledger.statements[TipHash(high: 1, low: number)] = []
      }
      let one = try rule(bench, "a").encoded
      // What fills the room are no statements, and the core would say so.
      Invariant.unheard { bench.nodes[1].receive(.statements([one]), on: id) }
      #expect(bench.nodes[1].stored.count == room)
    }
  }

  @Test("members leave the last room for statements to root, to admins and to those who have said little")
  func reserve() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let talker = FakeKey(&bench.random)
    let membership = Statement.Membership(
      device: talker.publicKey, user: "zoe", label: "", role: "officer", profile: ValueMap())
    bench.nodes[1].deliver(.statementsStored([try #require(bench.state(.membership(membership)))]))
    var said: [Statement] = []
    for number in 0..<30 {
      let rule = Statement.Body.rule(Statement.Rule(key: Text("key\(number)")))
      said.append(try #require(talker.statement(bench.fleet.id, rule, after: said.last)))
    }
    bench.nodes[1].deliver(.statementsStored(Array(said[..<10])))
    let held = bench.nodes[1].mesh.ledger.statements.count
    for number in 0..<UInt64(Statement.countLimit - FleetRoom.reserve - held) {
      bench.nodes[1].mesh.ledger.statements[TipHash(high: 1, low: number)] = []
    }
    // What fills the room are no statements, and the core would say so.
    Invariant.unheard { bench.nodes[1].receive(.statements(said[10...].map(\.encoded)), on: id) }
    #expect(bench.nodes[1].stored.map(\.id) == said[10..<FleetRoom.littleSaid].map(\.id))
    let byRoot = try rule(bench, "later")
    Invariant.unheard { bench.nodes[1].receive(.statements([byRoot.encoded]), on: id) }
    #expect(bench.nodes[1].stored.last?.id == byRoot.id)
  }

  @Test("batches of statements stay below their bound of bytes")
  func batches() {
    let statement = [UInt8](repeating: 0, count: 10_000)
    let batches = StatementOutbox.batches([[UInt8]](repeating: statement, count: 60))
    #expect(batches.map(\.count) == [Int](repeating: 6, count: 10))
    #expect(StatementOutbox.batches([]).isEmpty)
  }

  @Test("what new statements move is told to the shell, to be built anew")
  func moved() throws {
    let bench = try MeshBench([0, 1])
    _ = bench.connected(0, 1)
    try bench.nodes[0].write(1)
    bench.pass(100)
    let lowering = Statement.Grant(subject: .everyone, level: .none, pattern: "*")
    let statement = try #require(bench.state(.grant(lowering)))
    bench.nodes[0].deliver(.statementsStored([statement]))
    bench.run()
    for node in bench.nodes {
      #expect(node.rebuilt.flatMap(\.acceptance).map(\.shared) == [0], "node \(node.slot)")
      #expect(node.holds(bench.nodes[0]) == 0)
    }
  }

  @Test("what is to be stored comes before what tells of it")
  func storedFirst() throws {
    let bench = try MeshBench([0, 1, 2])
    let id = bench.connected(0, 1)
    _ = bench.connected(1, 2)
    let rule = try rule(bench, "a")
    let directives = bench.nodes[1].mesh.handle(
      .received(id, .statements([rule.encoded])), bench.nodes[1].surroundings, random: &bench.random)
    let isStoring = directives.map { if case .store = $0 { true } else { false } }
    #expect(isStoring == [true, false])
  }
}
