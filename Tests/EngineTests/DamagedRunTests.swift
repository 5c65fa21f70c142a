import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// A run of which the disk gives other bytes than were written: nobody is sent it, everything else goes on, and who has it
/// gives it anew.
@Suite struct DamagedRunTests {
  private let room: PartitionName
  private let other: PartitionName
  init() throws { (room, other) = (try PartitionName("room=1"), try PartitionName("room=2")) }

  /// Node 0 has written three runs, node 1 has them and its own word on top, and the two have parted.
  private func parted() throws -> (bench: EngineBench, chain: ReplicaID) {
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    for id in ["a", "b", "c"] as [Text] { try bench.nodes[0].write(room, Put(id, BenchNode.number)) }
    let session = bench.meet(1, 0)
    try #require(try bench.nodes[1].shown(room, "c") != nil)
    bench.cut(session)
    try bench.nodes[1].write(room, Put("own"))
    try bench.nodes[1].write(other, Put("elsewhere"))
    return (bench, try #require(bench.nodes[0].state.own.replica).id)
  }

  private func flip(_ node: BenchNode, _ chain: ReplicaID, _ sequences: ClosedRange<UInt64>) throws {
    try node.flip(room, chain) { sequences.contains($0.first) }
  }

  private func catchUp(_ bench: EngineBench, _ seconds: Int = 40) { bench.catchUp(seconds) }

  @Test("what is before it and beside it is sent, not the run nor what has seen it, and the session goes on")
  func notSent() throws {
    let (bench, chain) = try parted()
    try flip(bench.nodes[1], chain, 2...2)
    let session = bench.meet(1, 2)
    catchUp(bench)
    let (node, newcomer) = (bench.nodes[1], bench.nodes[2])
    #expect(newcomer.state.mesh.sessions[session] != nil && node.state.mesh.sessions[session] != nil)
    #expect(newcomer.received(room).sequence(of: chain) == 1)
    #expect(try newcomer.shown(room, "a") != nil && newcomer.shown(room, "own") == nil)
    #expect(try newcomer.shown(other, "elsewhere") != nil)
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil && node.state.damagedRuns.count == 1)
    #expect(node.journal.lines.filter { $0.message.contains("reading the store failed") }.count == 1, "said once")
    try node.write(other, Put("goes on"))
    catchUp(bench, 2)
    #expect(try newcomer.shown(other, "goes on") != nil)
  }

  @Test(
    "who has it gives it anew without a restart, then all get all, also where others refer to its context",
    arguments: [1...1, 2...2, 3...3, 1...2, 1...3] as [ClosedRange<UInt64>])
  func comesAnew(sequences: ClosedRange<UInt64>) throws {
    let (bench, chain) = try parted()
    let node = bench.nodes[1]
    let rows = try node.store.store.runs(
      of: ChainIdentity(fleet: node.state.identity.fleet, partition: node.id(of: room), replica: chain), after: 0,
      byteLimit: .max)
    try flip(node, chain, sequences)
    bench.meet(1, 2)
    #expect(!node.state.damagedRuns.isEmpty)
    bench.meet(1, 0)
    catchUp(bench, 200)
    #expect(node.state.damagedRuns.isEmpty && node.state.damagedRuns.mendedCount == sequences.count)
    let again = try node.store.store.runs(
      of: ChainIdentity(fleet: node.state.identity.fleet, partition: node.id(of: room), replica: chain), after: 0,
      byteLimit: .max)
    #expect(again == rows)
    for place in [room, other] {
      #expect(bench.nodes[2].accepted(place) == node.accepted(place))
      #expect(bench.nodes[0].accepted(place) == node.accepted(place))
    }
    for id in ["a", "b", "c", "own"] as [Text] { #expect(try bench.nodes[2].shown(room, id) != nil, "\(id)") }
    #expect(node.state.own.causes.isEmpty)
  }

  @Test(
    "it comes anew also where nothing is remembered of the contexts that others refer to",
    arguments: [1...1, 2...2, 1...2, 1...3] as [ClosedRange<UInt64>])
  func comesAnewAfterRestart(sequences: ClosedRange<UInt64>) throws {
    let (bench, chain) = try parted()
    try flip(bench.nodes[1], chain, sequences)
    try bench.restart(1)
    bench.meet(1, 2)
    bench.meet(1, 0)
    catchUp(bench, 200)
    let node = bench.nodes[1]
    // Those whose contexts refer to the first one come with it.
    #expect(node.state.damagedRuns.isEmpty && node.state.damagedRuns.mendedCount >= sequences.count)
    for id in ["a", "b", "c", "own"] as [Text] { #expect(try bench.nodes[2].shown(room, id) != nil, "\(id)") }
  }

  @Test("a chain that comes in vain is asked for ever more seldom, until something is mended or somebody else is met")
  func everMoreSeldom() {
    let chain = DamagedRuns.Chain(partition: PartitionID(.zero), replica: ReplicaID(high: 1, low: 1))
    let run = DamagedRun(replica: chain.replica, first: 1, last: 1, arrival: 1)
    var runs = DamagedRuns()
    runs.note(run, in: chain.partition)
    runs.note(DamagedRun(replica: chain.replica, first: 2, last: 2, arrival: 2), in: chain.partition)
    var now = MonotonicTime(milliseconds: 0)
    func wait(_ meanwhile: (inout DamagedRuns) -> Void = { _ in }) -> UInt64 {
      runs.noteAsked(SessionID(rawValue: 1), chain, now)
      meanwhile(&runs)
      let asked = now
      while runs.due(now).isEmpty { now = now.advanced(byMilliseconds: 1_000) }
      return now.millisecondsSince(asked) / 1_000
    }
    #expect((0..<8).map { _ in wait() } == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600])
    let devices = (1...2).map { DeviceID(Digest(words: ($0, 0, 0, 0))) }
    runs.noteAsked(SessionID(rawValue: 1), of: devices[0], chain, now)
    #expect(wait { $0.noteMet(devices[0]) } == 3_600)
    #expect([wait { $0.noteMet(devices[1]) }, wait()] == [60, 120])
    #expect([wait { $0.noteMended(run, chain) }, wait()] == [60, 120])
  }

  @Test("a chain counts as damaged also where its runs are more than are remembered, and for a core that begins anew")
  func beyondLimit() {
    let (partition, other) = (PartitionID(.zero), ReplicaID(high: 2, low: 2))
    var runs = DamagedRuns()
    for number in 1...DamagedRuns.limit {
      let last = UInt64(number)
      let replica = ReplicaID(high: 1, low: 1)
      runs.note(DamagedRun(replica: replica, first: last, last: last, arrival: Int64(number)), in: partition)
    }
    func moved() -> [PartitionID] { runs.takeMoved() }
    #expect(moved() == [partition])
    let isNew = runs.note(DamagedRun(replica: other, first: 1, last: 1, arrival: 9_999), in: partition)
    #expect(!isNew && runs.count == DamagedRuns.limit && runs.chains[partition]?.contains(other) == true)
    #expect([moved(), moved()] == [[partition], []])
    runs.moveAll()
    #expect(moved() == [partition])
  }

  @Test("a document whose row does not read is made anew as soon as the run has come that its log lacked")
  func documentWithIt() throws {
    let (bench, chain) = try parted()
    let node = bench.nodes[1]
    let key = DocumentKey(collection: Put.collection, id: .string("b"))
    let whole = try #require(try node.stored(room, "b"))
    try flip(node, chain, 2...2)
    try node.overwrite("b", with: [0xff])
    #expect(!node.engine.mend([key], in: node.id(of: room)))
    #expect(node.state.quarantine.holds(key, in: node.id(of: room)) && node.state.damagedRuns.count == 1)
    bench.meet(1, 0)
    catchUp(bench, 2)
    #expect(try node.stored(room, "b") == whole && node.state.quarantine.count == 0)
  }

  private func ends(
    _ bench: EngineBench, _ last: [PartitionName: [ReplicaID: UInt64]]
  ) throws -> [Statement.PartitionEnds] { try bench.ends(last) }

  private func say(_ bench: EngineBench, _ statement: Statement) throws { try bench.say(statement, to: 1) }

  private func key(_ id: Text) -> DocumentKey { DocumentKey(collection: Put.collection, id: .string(id)) }

  /// Nodes 0 and 1 hold and show the same, and nothing is left to be made anew.
  private func expectAlike(_ bench: EngineBench) throws {
    let node = bench.nodes[1]
    for place in [room, other] {
      #expect(bench.nodes[0].accepted(place) == node.accepted(place))
      for id in ["a", "b", "c", "own", "late", "elsewhere", "goes on"] as [Text] {
        #expect(try bench.nodes[0].stored(place, id) == node.stored(place, id), "\(id)")
      }
    }
    #expect(node.state.damagedRuns.isEmpty && node.state.quarantine.count == 0)
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
    #expect(try node.store.ownFacts().understanding == node.state.identity.cryptography.formats.understanding)
  }

  @Test(
    "where it keeps documents from being made anew, these are refused and all else goes on, until it has come anew",
    arguments: [false, true], [false, true])
  func takenAway(comesBack: Bool, isRestarted: Bool) throws {
    let (bench, chain) = try parted()
    try bench.nodes[1].write(room, Put("late"))
    bench.cut(bench.meet(1, 0))
    let own = try #require(bench.nodes[1].state.own.replica).id
    try flip(bench.nodes[1], chain, 2...2)
    try bench.restart(1)
    try say(bench, try bench.grant(.read, ends: try ends(bench, [room: [chain: 3, own: 1], other: [own: 1]])))
    if comesBack { try say(bench, try bench.grant(.write)) }
    if isRestarted { try bench.restart(1) }
    let node = bench.nodes[1]
    #expect(node.engine.failure == nil && node.engine.storeFailure == nil)
    #expect(node.accepted(room).sequence(of: own) == (comesBack ? 2 : 1))
    #expect(node.state.quarantine.holds(key("late"), in: node.id(of: room)))
    #expect(throws: (any Error).self) { try node.shown(room, "late") }
    #expect(try node.shown(room, "own") != nil && node.shown(other, "elsewhere") != nil)
    if comesBack { try node.write(other, Put("goes on")) }
    bench.meet(1, 0)
    catchUp(bench, 200)
    try expectAlike(bench)
    #expect(try (node.shown(room, "late") != nil) == comesBack)
  }

  @Test(
    "documents that it alone writes are made anew with it, where it came to count meanwhile", arguments: [false, true])
  func comesToCount(isRestarted: Bool) throws {
    let (bench, chain) = try parted()
    bench.cut(bench.meet(1, 0))
    let own = try #require(bench.nodes[1].state.own.replica).id
    try say(bench, try bench.grant(.read, ends: try ends(bench, [room: [chain: 2, own: 1], other: [own: 1]])))
    #expect(try bench.nodes[1].shown(room, "c") == nil)
    try flip(bench.nodes[1], chain, 3...3)
    try say(bench, try bench.grant(.write))
    if isRestarted { try bench.restart(1) }
    #expect(bench.nodes[1].engine.storeFailure == nil && bench.nodes[1].accepted(room).sequence(of: chain) == 3)
    bench.meet(1, 0)
    catchUp(bench, 200)
    try expectAlike(bench)
    #expect(try bench.nodes[1].shown(room, "c") != nil)
  }

  @Test("what a run writes that came anew is made anew also where the node crashed right behind that")
  func crashBehindMending() throws {
    let (bench, chain) = try parted()
    bench.cut(bench.meet(1, 0))
    let own = try #require(bench.nodes[1].state.own.replica).id
    try say(bench, try bench.grant(.read, ends: try ends(bench, [room: [chain: 2, own: 1], other: [own: 1]])))
    try flip(bench.nodes[1], chain, 3...3)
    try say(bench, try bench.grant(.write))
    let place = try #require(bench.nodes[1].state.damagedRuns.due(MonotonicTime(milliseconds: .max)).first)
    bench.nodes[1].state.damagedRuns.noteAsked(SessionID(rawValue: 99), place.chain, bench.clock.now)
    let batch = RunBatch(name: room, stream: 0, entries: [], isForkEvidence: true)
    #expect(bench.nodes[1].engine.mendLog(with: [try incoming(of: bench.nodes[0], at: 2)], of: batch).isEmpty)
    #expect(bench.nodes[1].state.damagedRuns.mendedCount == 1)
    try bench.restart(1)
    bench.meet(1, 0)
    catchUp(bench, 20)
    try expectAlike(bench)
    #expect(try bench.nodes[1].shown(room, "c") != nil)
  }

  /// A run of the node's log as a peer brings it, or claims it to be of another chain.
  private func incoming(of node: BenchNode, at index: Int, as chain: ReplicaID? = nil) throws -> IncomingRun {
    let (runs, _) = try LogReader(node.state).runs(node.id(of: room), lackedBy: VersionVector(), byteLimit: .max)
    let own = runs.filter { $0.replica == node.state.own.replica?.id }
    let logged = try #require(own.indices.contains(index) ? own[index] : nil)
    let decoded = try RunReader(node.state.identity).decode(
      LogRun(
        arrival: 1, first: logged.first, last: logged.last, context: logged.context, body: Array(logged.encoded)),
      in: node.id(of: room))
    return IncomingRun(
      replica: chain ?? logged.replica, first: logged.first, hashBefore: decoded.hashBefore,
      contextDigest: decoded.contextDigest, context: .full(logged.context), hashes: decoded.hashes, facts: [],
      elementDots: [:], signer: node.state.identity.device, encoded: logged.encoded,
      documents: RunContent(decoded, hash: node.state.identity.cryptography.hash).documents)
  }

  @Test("of another history of the chain nothing is put in its place")
  func anotherHistory() throws {
    let (bench, chain) = try parted()
    let node = bench.nodes[1]
    try flip(node, chain, 2...2)
    bench.meet(1, 2)
    let place = try #require(node.state.damagedRuns.due(MonotonicTime(milliseconds: .max)).first)
    node.state.damagedRuns.noteAsked(SessionID(rawValue: 99), place.chain, bench.clock.now)
    // As node 0 would have written it, had it written something else.
    let liar = try EngineBench(1)
    try liar.nodes[0].subscribe("room=*")
    for id in ["x", "y"] as [Text] { try liar.nodes[0].write(room, Put(id)) }
    let replica = try #require(liar.nodes[0].state.own.replica).id
    let run = try incoming(of: liar.nodes[0], at: 1, as: chain)
    #expect(replica != chain)
    let batch = RunBatch(name: room, stream: 0, entries: [], isForkEvidence: true)
    #expect(node.engine.mendLog(with: [run], of: batch).isEmpty)
    #expect(node.state.damagedRuns.mendedCount == 0 && node.state.damagedRuns.count == 1)
  }
}
