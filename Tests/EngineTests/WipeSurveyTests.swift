import Identity
import Testing

@testable import Engine
@testable import Replication

/// Whether a store may be destroyed, as engines judge it on a clock that the test moves.
@Suite struct WipeSurveyTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// All hold what node 0 wrote.
  private func bench(_ count: Int = 3) throws -> EngineBench {
    let bench = try EngineBench(count)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("first"))
    try bench.nodes[0].write(room, Put("second"))
    for other in 1..<count { bench.meet(other, 0) }
    return bench
  }

  private func ask(_ bench: EngineBench, _ slot: Int = 0) {
    let room = room
    bench.nodes[slot].engine.turn([.call { $0.askForHoldings(of: [room]) }])
    bench.run()
    for _ in 0..<3 { bench.advance(600) }
  }

  private func survey(_ bench: EngineBench, _ slot: Int = 0, _ rules: WipeRules = WipeRules()) -> WipeSurvey {
    bench.nodes[slot].engine.wipeSurvey(rules)
  }

  @Test("a device alone may not be wiped, and what would be lost is named with a few of its documents")
  func alone() throws {
    let bench = try EngineBench(1)
    #expect(survey(bench).isSafe, "nothing is here")
    for index in 0..<5 { try bench.nodes[0].write(room, Put(Text("doc\(index)"))) }
    let survey = survey(bench)
    #expect(!survey.isSafe && survey.judgements.map(\.lost) == [5])
    let documents = survey.documents[bench.nodes[0].id(of: room)] ?? []
    #expect(documents == (0..<3).map { DocumentKey(collection: Put.collection, id: .string(Text("doc\($0)"))) })
  }

  @Test("of many partitions those that would lose the most are looked into, in whatever order their ids are")
  func many() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    let rooms = try (0..<20).map { try PartitionName(Text("room=\($0)")) }
    for room in rooms { try bench.nodes[0].write(room, Put("first")) }
    let last = try #require(rooms.max { bench.nodes[0].id(of: $0) < bench.nodes[0].id(of: $1) })
    try bench.nodes[0].write(last, Put("second"))
    bench.meet(1, 0)
    let survey = survey(bench)
    #expect(survey.losses.count == 20)
    let loss = try #require(survey.losses.first)
    #expect(loss.name == last && loss.lost == 2)
    #expect(survey.hearers[loss.partition] == [bench.nodes[1].key.publicKey])
    #expect(survey.documents[loss.partition]?.count == 2)
    let told = survey.losses.prefix(WipeSurvey.partitionLimit).map(\.partition)
    #expect(Set(survey.hearers.keys) == Set(told) && Set(survey.documents.keys) == Set(told))
  }

  @Test("once two others have said that they hold it, it may be wiped, and no more after the next write")
  func asked() throws {
    let bench = try bench()
    #expect(!survey(bench).isSafe, "that they were sent it is no word of theirs")
    ask(bench)
    #expect(survey(bench).isSafe)
    try bench.nodes[0].write(room, Put("next"))
    #expect(survey(bench).judgements.map(\.lost) == [1])
    var rules = WipeRules()
    rules.devices = 3
    #expect(!survey(bench, 0, rules).isSafe)
  }

  @Test("words that are older than seven days do not count, nor ones that seem to be of the future")
  func ages() throws {
    let bench = try bench()
    ask(bench)
    let week: Int64 = 7 * 86_400_000
    let asked = bench.clock.wallMilliseconds
    func judged(at wall: Int64) -> Bool {
      bench.clock.wallMilliseconds = wall
      return survey(bench).isSafe
    }
    #expect(judged(at: asked + week - 10_000))
    #expect(!judged(at: asked + week + 10_000))
    #expect(judged(at: asked))
    #expect(!judged(at: asked - week), "a clock that went back does not make words young")
  }

  @Test("a clock that has gone back behind anything that was heard by it makes no other word young")
  func clockWentBack() throws {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("first"))
    let sessions = [1, 2].map { bench.meet($0, 0) }
    ask(bench)
    let asked = bench.clock.wallMilliseconds
    bench.cut(sessions[1])
    bench.clock.wallMilliseconds = asked + 2 * 86_400_000
    try bench.nodes[1].write(room, Put("second"))
    for _ in 0..<30 { bench.advance(500) }
    ask(bench)
    bench.clock.wallMilliseconds = asked + 60_000
    func flaws() -> [WipeWord.Flaw?] {
      survey(bench).holdings.flatMap(\.words).filter { $0.speaker != .own }.map { $0.flaw(WipeRules()) }
    }
    #expect(Set(flaws()) == [.clock, nil], "what was heard since the start has its age all the same")
    try bench.restart(0)
    #expect(flaws() == [.clock, .clock])
    for other in [1, 2] { bench.meet(other, 0) }
    try bench.nodes[0].write(room, Put("third"))
    ask(bench)
    #expect(Set(flaws()) == [.clock, nil], "and what is said anew")
  }

  @Test("what was heard in another partition shows as well that the clock has gone back") func clockElsewhere() throws {
    let bench = try bench()
    let other = try PartitionName("room=2")
    ask(bench)
    let asked = bench.clock.wallMilliseconds
    bench.clock.wallMilliseconds = asked + 9 * 86_400_000
    try bench.nodes[1].write(other, Put("second"))
    bench.nodes[0].engine.turn([.call { $0.askForHoldings(of: [other]) }])
    for _ in 0..<30 { bench.advance(500) }
    bench.clock.wallMilliseconds = asked + 60_000
    try bench.restart(0)
    #expect(
      survey(bench).holdings.first { $0.name == room }?.words.compactMap { $0.flaw(WipeRules()) }.contains(.clock)
        == true)
    #expect(!survey(bench).isSafe)
  }

  @Test("who may not carry the partition any more gives it to nobody, and is no second place")
  func barred() throws {
    let bench = try bench()
    ask(bench)
    #expect(survey(bench).isSafe)
    let chain = try #require(bench.nodes[0].state.own.replica).id
    let statement = try bench.grant(.none, ends: try bench.ends([room: [chain: 2]]))
    bench.nodes[0].engine.turn([.call { $0.add([statement]) }])
    let survey = survey(bench)
    #expect(!survey.isSafe)
    #expect(survey.holdings.flatMap(\.words).contains { $0.flaw(WipeRules()) == .barred })
  }

  @Test(
    "what a copy of this very device holds, under whatever replica it writes on, is no second place; another device is")
  func successor() throws {
    let bench = try bench(2)
    let copy = try bench.clone(1)
    try bench.nodes[copy].write(room, Put("by the copy"))
    bench.cut(bench.meet(copy, 0))
    bench.meet(1, copy)
    for _ in 0..<8 { bench.advance(5_000) }
    ask(bench, 1)
    #expect(bench.nodes[copy].received(room).entries == bench.nodes[1].received(room).entries)
    #expect(bench.nodes[1].received(room).entries.count == 2)
    var rules = WipeRules()
    rules.devices = 1
    #expect(survey(bench, 1, rules).judgements.map(\.lost) == [3])
    #expect(survey(bench, 1, rules).holdings.flatMap(\.words).allSatisfy { $0.flaw(rules) != nil })
    bench.meet(1, 0)
    for _ in 0..<8 { bench.advance(5_000) }
    ask(bench, 1)
    #expect(survey(bench, 1, rules).isSafe)
  }

  @Test("words about a partition that is not wanted here any more do not count: nobody would take them back")
  func unwanted() throws {
    let bench = try bench()
    ask(bench)
    #expect(survey(bench).isSafe)
    try bench.nodes[0].subscribe("room=*", isWanted: false)
    try bench.nodes[0].subscribe("room=1", isWanted: false)
    let unwanted = survey(bench)
    #expect(unwanted.judgements.map(\.lost) == [2])
    #expect(unwanted.holdings.flatMap(\.words).compactMap { $0.flaw(WipeRules()) }.contains(.unheard))
    try bench.nodes[0].subscribe("room=*")
    #expect(survey(bench).isSafe)
  }

  @Test("a position that lies ahead of what is here, or has another end, says nothing of what is here")
  func ahead() throws {
    let node = try bench().nodes[0]
    let log = try #require(node.state.mesh.partitions[node.id(of: room)]).log
    let (replica, own) = try #require(log.received.sorted.first)
    func known(_ position: ChainPosition) -> UInt64 { log.known(of: position, of: replica) { _, _ in nil } }
    #expect(known(own) == 2)
    #expect(known(ChainPosition(sequence: 3, tip: own.tip)) == 0)
    #expect(known(ChainPosition(sequence: 2, tip: TipHash(high: 1, low: 1))) == 0)
    #expect(known(ChainPosition(sequence: 1, tip: own.tip)) == 0)
  }

  @Test("a reading of the backend that names another end than is here makes nothing safe")
  func anotherEnd() throws {
    let bench = try bench()
    let log = try #require(bench.nodes[0].state.mesh.partitions[bench.nodes[0].id(of: room)]).log
    let (replica, own) = try #require(log.received.sorted.first)
    let ahead = ChainPosition(sequence: own.sequence + 1, tip: own.tip)
    let other = ChainPosition(sequence: own.sequence, tip: TipHash(high: 1, low: 1))
    for (position, isSafe) in [(ahead, false), (other, false), (own, true)] {
      var vector = log.received
      vector[replica] = position
      bench.nodes[0].engine.turn([.call { [vector] in $0.noteBackend(room, has: vector) }])
      #expect(survey(bench, 0).isSafe == isSafe)
    }
  }

  @Test(
    "the word of one who has another history of a chain, and the losing branch itself, keep a store from being wiped")
  func fork() throws {
    let bench = try bench(4)
    ask(bench, 0)
    // What the others told node 0 comes with the next comparison.
    for _ in 0..<8 { bench.advance(5_000) }
    #expect(survey(bench, 1).isSafe)
    let copy = try bench.clone(0)
    try bench.nodes[0].write(room, Put("one"))
    try bench.nodes[copy].write(room, Put("two"))
    for slot in [0, copy] { bench.cut(bench.meet(slot, 1)) }
    for slot in [2, 3] { bench.meet(slot, 1) }
    bench.advance(10_000)
    ask(bench, 1)
    let judgement = try #require(survey(bench, 1).judgements.first)
    #expect(judgement.lostApart >= 1 && !judgement.isSafe)
  }
}
