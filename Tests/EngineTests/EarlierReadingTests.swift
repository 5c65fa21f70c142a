import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// Somebody who reads elsewhere changes a document through a node that knows more by then. His change has seen what he read.
@Suite struct EarlierReadingTests {
  private let room: PartitionName
  private let bench: EngineBench
  private var vessel: BenchNode { bench.nodes[0] }
  private var relay: BenchNode { bench.nodes[1] }

  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
  }

  /// Makes the document what it says, with the hint of a list.
  private struct Make: DocumentEdit {
    let id: Value
    let body: ValueMap
    var collection: Text { Put.collection }

    init(_ id: Text, _ body: KeyValuePairs<Text, Value>) { (self.id, self.body) = (.string(id), map(body)) }

    func outcome(on present: PresentDocument) -> DocumentOutcome {
      .body(body, hints: WriteHints([([.key("list")], .list(key: "name"))]))
    }
  }

  private func settle() {
    for (a, b) in [(0, 1), (0, 2), (1, 2), (0, 1)] { bench.cut(bench.meet(a, b)) }
  }

  private func state(_ node: BenchNode, _ id: Text) throws -> DocumentState? {
    let key = DocumentKey(collection: Put.collection, id: .string(id))
    return try node.store.document(key, in: node.id(of: room)).map { try DocumentState(encoded: $0.state) }
  }

  @discardableResult
  private func write(
    _ edit: any DocumentEdit, reading state: DocumentState?, at node: BenchNode? = nil
  ) throws -> ChangeReceipt {
    let answer = BenchNode.Answer<ChangeReceipt>()
    let reading = EarlierReading(
      state: state, wall: WallTime(milliseconds: 1_000),
      extensions: [ChangeExtension(type: ChangeExtension.Registered.cause, content: [1, 7])])
    let job = LocalWriteJob(partition: room, edits: [edit], reading: reading) { answer.take($0) }
    (node ?? relay).engine.turn([.write(job)])
    return try answer.get()
  }

  /// Every node shows the same, on the same entries.
  private func expectAgreement(_ id: Text) throws {
    settle()
    let states = try bench.nodes.map { try state($0, id) }
    #expect(states[0] != nil && states.allSatisfy { $0 == states[0] })
  }

  @Test func whatCameSinceStaysBesideTheChangeAsAConflictEverywhere() throws {
    try vessel.write(room, Make("d", ["a": .int(1), "b": .int(1)]))
    settle()
    let read = try state(relay, "d")
    try vessel.write(room, Make("d", ["a": .int(2), "b": .int(1)]))
    settle()
    try write(Make("d", ["a": .int(3), "b": .int(1)]), reading: read)
    try expectAgreement("d")
    for node in bench.nodes {
      let conflicts = try #require(try state(node, "d")).inbox()
      #expect(try node.shown(room, "d") == map(["a": .int(3), "b": .int(1)]))
      #expect(conflicts.count == 1 && conflicts.first?.value == .int(2))
    }
  }

  @Test func changesOfTwoFieldsBothStayWithoutAConflict() throws {
    try vessel.write(room, Make("d", ["a": .int(1), "b": .int(1)]))
    settle()
    let read = try state(relay, "d")
    try vessel.write(room, Make("d", ["a": .int(2), "b": .int(1)]))
    settle()
    try write(Make("d", ["a": .int(1), "b": .int(3)]), reading: read)
    try expectAgreement("d")
    #expect(try relay.shown(room, "d") == map(["a": .int(2), "b": .int(3)]))
    #expect(try #require(try state(relay, "d")).inbox().isEmpty)
  }

  @Test func aDeleteWinsAgainstAnEditThatItsAuthorHadNotRead() throws {
    try vessel.write(room, Make("d", ["a": .int(1)]))
    settle()
    let read = try state(relay, "d")
    try vessel.write(room, Make("d", ["a": .int(2)]))
    settle()
    try write(Erase("d"), reading: read)
    try expectAgreement("d")
    #expect(try vessel.shown(room, "d") == nil)
    #expect(try #require(try state(vessel, "d")).inbox().count == 1)
  }

  /// The element's insert lost to a write at it, so that no entry but the path names it.
  @Test func anElementThatAnotherWroteAnewIsNamedLawfully() throws {
    try vessel.write(room, Make("d", ["list": .array([.map(map(["name": .string("a"), "n": .int(1)]))])]))
    settle()
    try bench.nodes[2].write(room, Make("d", ["list": .array([.map(map(["name": .string("a"), "n": .int(2)]))])]))
    settle()
    let read = try state(relay, "d")
    let new: Value = .array([.map(map(["name": .string("b"), "n": .int(3)]))])
    try write(Make("d", ["list": new]), reading: read)
    try expectAgreement("d")
    #expect(try vessel.shown(room, "d")?["list"] == new)
  }

  @Test func whatTheOwnChainHasSeenIsNotReplacedUnread() throws {
    for id: Text in ["d", "e"] { try vessel.write(room, Make(id, ["a": .int(1), "b": .int(1)])) }
    settle()
    let early = try state(relay, "d")
    try vessel.write(room, Make("d", ["a": .int(2), "b": .int(1)]))
    try vessel.write(room, Make("e", ["a": .int(2), "b": .int(1)]))
    settle()
    try write(Make("e", ["a": .int(3), "b": .int(1)]), reading: try state(relay, "e"))
    #expect(throws: EngineError.changedSinceRead) {
      try write(Make("d", ["a": .int(3), "b": .int(1)]), reading: early)
    }
    try write(Make("d", ["a": .int(1), "b": .int(3)]), reading: early)
    try expectAgreement("d")
    #expect(try vessel.shown(room, "d") == map(["a": .int(2), "b": .int(3)]))
  }

  /// A relay wrote an edit and was away for so long that another took it over: what both set agrees and is no conflict, also of
  /// arrays, which are one value without a hint.
  @Test func anEditThatTwoRelaysWroteIsThereOnce() throws {
    let other = bench.nodes[2]
    func plain(_ a: Int64, _ items: [Value]) -> Make { Make("d", ["a": .int(a), "items": .array(items)]) }
    try vessel.write(room, plain(1, [.int(1)]))
    settle()
    let read = try state(relay, "d")
    let edit = plain(3, [.int(1), .int(2)])
    try write(edit, reading: read)
    try write(edit, reading: read, at: other)
    try expectAgreement("d")
    #expect(try vessel.shown(room, "d") == map(["a": .int(3), "items": .array([.int(1), .int(2)])]))
    #expect(try #require(try state(vessel, "d")).inbox().isEmpty)
  }

  /// Who wrote on one of the two has not seen the other.
  @Test func theLateTwinOfAnEditStaysBesideWhatWasWrittenOnTheFirst() throws {
    let other = bench.nodes[2]
    func plain(_ a: Int64) -> Make { Make("d", ["a": .int(a)]) }
    try vessel.write(room, plain(1))
    settle()
    let read = try state(relay, "d")
    try write(plain(3), reading: read, at: other)
    try write(plain(3), reading: read)
    bench.cut(bench.meet(0, 1))
    try vessel.write(room, plain(4))
    try expectAgreement("d")
    #expect(try vessel.shown(room, "d") == map(["a": .int(4)]))
    let open = try #require(try state(vessel, "d")).openDecisions()
    #expect(open.map(\.place) == [[.key("a")]] && open.flatMap(\.conflicts).map(\.value) == [.int(3)])
  }

  @Test func aVersionThatStandsOnMoreThanIsHereIsRefused() throws {
    try vessel.write(room, Make("d", ["a": .int(1)]))
    settle()
    try vessel.write(room, Make("d", ["a": .int(2)]))
    let read = try state(vessel, "d")
    #expect(throws: EngineError.versionNotHere) { try write(Make("d", ["a": .int(3)]), reading: read) }
    settle()
    try write(Make("d", ["a": .int(3)]), reading: read)
    try expectAgreement("d")
    #expect(try #require(try state(vessel, "d")).inbox().isEmpty)
  }

  @Test func theChangeSaysWhenAndWhyItWasMade() throws {
    try write(Make("d", ["a": .int(1)]), reading: nil)
    settle()
    let replica = try #require(relay.state.own.replica?.id)
    let chain = ChainIdentity(fleet: vessel.state.identity.fleet, partition: vessel.id(of: room), replica: replica)
    let stored = try #require(try vessel.store.runs(of: chain, after: 0, byteLimit: .max).first)
    let header = try #require(
      try RunReader(vessel.state.identity).decode(stored, in: vessel.id(of: room)).changes.first
    ).header
    #expect(header.wall.milliseconds == 1_000)
    #expect(header.extensions.contains { $0.type == ChangeExtension.Registered.cause && $0.content == [1, 7] })
  }

  @Test func anEditThatChangesNothingMakesNoChange() throws {
    try vessel.write(room, Make("d", ["a": .int(1)]))
    settle()
    #expect(try write(Make("d", ["a": .int(1)]), reading: try state(relay, "d")).dot == nil)
    #expect(relay.state.own.replica == nil || relay.state.own.sequence(in: relay.id(of: room)) == 0)
  }

  @Test func aRefusedChangeDrawsNoReplicaIDAndWantsNothing() throws {
    try vessel.write(room, Make("d", ["a": .int(1)]))
    settle()
    try vessel.write(room, Make("d", ["a": .int(2)]))
    let unseen = try state(vessel, "d")
    #expect(throws: EngineError.versionNotHere) { try write(Make("d", ["a": .int(3)]), reading: unseen) }
    #expect(relay.state.own.replica == nil)
    let early = try state(relay, "d")
    settle()
    try relay.write(room, Make("other", ["a": .int(1)]))
    try relay.subscribe("room=*", isWanted: false)
    #expect(throws: EngineError.changedSinceRead) { try write(Make("d", ["a": .int(3)]), reading: early) }
    #expect(relay.state.subscriptions.isEmpty)
  }

  @Test(
    "what stands on a run that is damaged here is refused alone in its commit, and done when that has come anew",
    arguments: [true, false])
  func readingOfADamagedRun(hasSum: Bool) throws {
    try vessel.write(room, Put("x", BenchNode.number))
    settle()
    let read = try state(relay, "x")
    try vessel.write(room, Put("y"))
    settle()
    let chain = try #require(vessel.state.own.replica).id
    let last = try #require(try relay.rows(room, chain).dropLast().last)
    if hasSum {
      try relay.flip(room, chain) { $0.arrival == last.arrival }
    } else {
      try relay.cutShort(room, chain) { $0.arrival == last.arrival }
    }
    let answers = (BenchNode.Answer<ChangeReceipt>(), BenchNode.Answer<ChangeReceipt>())
    let reading = EarlierReading(state: read, wall: WallTime(milliseconds: 1_000), extensions: [])
    relay.engine.turn([
      .write(LocalWriteJob(partition: room, edits: [Put("x", 2)], reading: reading) { answers.0.take($0) }),
      .write(LocalWriteJob(partition: room, edits: [Put("z")]) { answers.1.take($0) }),
    ])
    #expect(throws: EngineError.versionDamaged) { try answers.0.get() }
    _ = try answers.1.get()
    #expect(relay.engine.storeFailure == nil && relay.state.damagedRuns.count == 1)
    bench.meet(0, 1)
    bench.catchUp(100)
    #expect(relay.state.damagedRuns.isEmpty)
    try write(Put("x", 2), reading: read)
    try expectAgreement("x")
  }

  @Test("a document that does not read here is made anew from the log before it is held against what was read")
  func readingOfADamagedDocument() throws {
    try vessel.write(room, Put("x"))
    settle()
    let read = try state(relay, "x")
    // The second time under a replica id that is there.
    for n in [2, 3] as [Int64] {
      try relay.overwrite("x", with: [0xff])
      try write(Put("x", n), reading: n == 2 ? read : try state(vessel, "x"))
      #expect(relay.state.quarantine.mendedCount == Int(n) - 1)
      try expectAgreement("x")
      #expect(try relay.shown(room, "x") == map(["n": .int(n)]))
    }
    try relay.overwrite("x", with: [0xff])
    try relay.store.store.database.execute("UPDATE runs SET body=x'ff'")
    #expect(throws: DamagedDocument.self) { try write(Put("x", 9), reading: try state(vessel, "x")) }
  }
}
