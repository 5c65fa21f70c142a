import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// The log is read over while nobody asks for it.
@Suite struct LogScrubTests {
  private let room: PartitionName
  private let bench: EngineBench
  private let chain: ReplicaID
  private var node: BenchNode { bench.nodes[1] }

  /// Nodes 0 and 1 have what node 0 wrote.
  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    for number in 1...3 { try bench.nodes[0].write(room, Put(Text("\(number)"), BenchNode.number)) }
    bench.cut(bench.meet(1, 0))
    chain = try #require(bench.nodes[0].state.own.replica).id
  }

  private struct Unread: Error {}

  /// So many runs that one part does not hold them.
  private func writeMany() throws {
    for number in 0..<LogScrub.partRunCount {
      try bench.nodes[0].write(room, Put(Text("many \(number)"), BenchNode.number))
    }
    bench.cut(bench.meet(1, 0))
    bench.cut(bench.meet(1, 0))
    try #require(node.received(room) == bench.nodes[0].received(room))
  }

  private func word(of other: Int, at slot: Int) -> Holdings? {
    let node = bench.nodes[slot]
    let subject = Holdings.Subject(device: bench.nodes[other].key.publicKey, kind: .received)
    return node.state.mesh.holdings.book[node.id(of: room), subject]?.holdings
  }

  private func ask(_ slot: Int) {
    let room = room
    bench.nodes[slot].engine.turn([.call { $0.askForHoldings(of: [room]) }])
    bench.run()
    bench.advance(100)
  }

  @Test("a start finds what nobody reads, and it comes anew")
  func start() throws {
    let rows = try node.rows(room, chain)
    try node.flip(room, chain) { $0.last == 2 }
    try bench.restart(1)
    bench.advance(500)
    #expect(node.state.damagedRuns.count == 1 && node.state.scrub.passCount == 1)
    bench.meet(1, 0)
    for _ in 0..<4 { bench.advance(500) }
    #expect(try node.state.damagedRuns.isEmpty && node.rows(room, chain) == rows)
  }

  @Test(
    "of rows without a sum those are found that are no runs, whether or not they begin as such",
    arguments: [3, 90, 150])
  func withoutSums(count: Int) throws {
    let rows = try node.rows(room, chain)
    try #require(rows.allSatisfy { $0.body.count > 150 })
    try node.cutShort(room, chain, to: count) { $0.last == 2 }
    for pass in 1...2 {
      try bench.restart(1)
      bench.advance(500)
      #expect(node.state.damagedRuns.count == 1 && node.state.scrub.passCount == 1, "\(pass)")
      #expect(try node.store.ownFacts().isLogDamaged)
    }
    bench.advance(LogScrub.passMilliseconds)
    #expect(node.state.damagedRuns.count == 1 && node.state.scrub.passCount == 2, "nor does it count as mended")
    bench.meet(1, 0)
    for _ in 0..<4 { bench.advance(500) }
    #expect(try node.state.damagedRuns.isEmpty && node.rows(room, chain).map(\.body) == rows.map(\.body))
  }

  @Test("a row without a sum that begins as a run and is none is not sent, and ends no session", arguments: [90, 150])
  func sentWithoutSum(count: Int) throws {
    try node.cutShort(room, chain, to: count) { $0.last == 2 }
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    let session = bench.meet(late, 1)
    #expect(bench.nodes[late].state.mesh.sessions[session] != nil && node.state.mesh.sessions[session] != nil)
    #expect(bench.nodes[late].received(room)[chain]?.sequence == 1 && node.state.damagedRuns.count == 1)
  }

  @Test("a node that goes on reads its log over once in a day")
  func daily() throws {
    try bench.restart(1)
    bench.advance(500)
    try node.flip(room, chain) { $0.last == 2 }
    bench.advance(LogScrub.passMilliseconds - 1_000)
    #expect(node.state.damagedRuns.isEmpty && node.state.scrub.passCount == 1)
    bench.advance(1_000)
    #expect(node.state.damagedRuns.count == 1 && node.state.scrub.passCount == 2)
    bench.advance(LogScrub.passMilliseconds)
    #expect(node.state.damagedRuns.count == 1 && node.state.scrub.passCount == 3)
  }

  @Test("a long log is read in parts, one at a tick, and in spite of whoever writes without a pause")
  func parts() throws {
    try writeMany()
    try bench.restart(1)
    bench.advance(500)
    #expect(node.state.scrub.passCount == 0 && node.state.scrub.position == Int64(LogScrub.partRunCount))
    bench.advance(100)
    #expect(node.state.scrub.position == Int64(LogScrub.partRunCount), "nothing between two ticks")
    for _ in 0..<(LogScrub.crowdedMilliseconds / 500 - 1) {
      try node.write(room, Put("own"))
      bench.advance(500)
    }
    #expect(node.state.scrub.passCount == 0)
    for _ in 0..<2 {
      try node.write(room, Put("own"))
      bench.advance(500)
    }
    #expect(node.state.scrub.passCount == 1)
  }

  @Test("what was found damaged before a start is not said to be held behind it, before it is found again")
  func words() throws {
    try node.write(room, Put("own"))
    let session = bench.meet(1, 0)
    bench.advance(6_000)
    ask(0)
    #expect(word(of: 1, at: 0)?.vector.count == 2)
    bench.cut(session)
    try node.flip(room, chain) { $0.last == 2 }
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    bench.meet(late, 1)
    for _ in 0..<20 { bench.advance(500) }
    #expect(word(of: 1, at: 1).map { $0.vector[chain] } == .some(nil))
    try bench.restart(1)
    node.store.scrubFailure = Unread()
    bench.meet(0, 1)
    bench.advance(6_000)
    ask(0)
    #expect(node.state.damagedRuns.isEmpty && word(of: 1, at: 0).map { $0.vector[chain] } == .some(nil))
  }

  @Test("a word is taken back also where nobody is there to be told, and given again once the log was read over")
  func alone() throws {
    bench.meet(1, 0)
    bench.advance(6_000)
    ask(0)
    #expect(word(of: 1, at: 0)?.vector == bench.nodes[0].received(room))
    let rows = try node.rows(room, chain)
    try node.flip(room, chain) { $0.last == 2 }
    try bench.restart(1)
    try node.refuse("INSERT", on: "holdings")
    bench.advance(500)
    bench.advance(6_000)
    #expect(word(of: 1, at: 1)?.vector[chain] != nil && node.state.damagedRuns.count == 1)
    try node.allow("holdings")
    bench.advance(6_000)
    #expect(node.state.mesh.sessions.isEmpty && word(of: 1, at: 1).map { $0.vector[chain] } == .some(nil))
    try node.overwrite(rows[1])
    try node.write(room, Put("own"))
    try bench.restart(1)
    node.store.scrubFailure = Unread()
    bench.meet(1, 0)
    for _ in 0..<20 { bench.advance(500) }
    ask(0)
    #expect(word(of: 1, at: 0).map { $0.vector.count } == 0, "what is damaged is not known")
    node.store.scrubFailure = nil
    bench.advance(LogScrub.retryMilliseconds)
    bench.meet(1, 0)
    bench.advance(6_000)
    ask(0)
    #expect(node.state.scrub.passCount == 1 && word(of: 1, at: 0)?.vector == bench.nodes[0].received(room))
    try bench.restart(1)
    #expect(try !node.store.ownFacts().isLogDamaged)
  }

  @Test("a run that the disk gives again by itself is damaged no more")
  func again() throws {
    let rows = try node.rows(room, chain)
    try node.flip(room, chain) { $0.last == 2 }
    try bench.restart(1)
    bench.advance(500)
    #expect(node.state.damagedRuns.count == 1)
    try node.overwrite(rows[1])
    bench.advance(LogScrub.passMilliseconds)
    #expect(node.state.damagedRuns.isWhole && node.state.damagedRuns.mendedCount == 0)
  }

  @Test("a pass ends where the log ended when it began, whoever goes on writing")
  func end() {
    var (scrub, now) = (LogScrub(), MonotonicTime(milliseconds: 0))
    for number in 1...3 as ClosedRange<Int64> {
      var part = ScrubbedRuns(end: number * 10)
      part.logEnd = 25 * number
      let isPass = scrub.note(part, now)
      #expect(isPass == (number == 3))
      now = now.advanced(byMilliseconds: 500)
    }
    #expect(scrub.passCount == 1 && !scrub.isDue(now, isCrowded: false))
  }

  @Test("another pass that is asked for follows on the one that is under way")
  func demand() {
    var (scrub, now) = (LogScrub(), MonotonicTime(milliseconds: 0))
    var part = ScrubbedRuns(end: 10)
    part.logEnd = 20
    var isPass = scrub.note(part, now)
    #expect(!isPass)
    scrub.demandPass(now)
    #expect(scrub.position == 10)
    part.end = 20
    now = now.advanced(byMilliseconds: 500)
    isPass = scrub.note(part, now)
    #expect(isPass && scrub.isDue(now, isCrowded: true) && scrub.position == 0)
    isPass = scrub.note(part, now)
    #expect(isPass && !scrub.isDue(now, isCrowded: false))
  }

  @Test("a chain of which nothing could be remembered has its turn when there is room again")
  func starved() {
    var damaged = DamagedRuns()
    let (partition, other) = (node.id(of: room), ReplicaID(high: 7, low: 7))
    let runs = (1...DamagedRuns.limit).map { number in
      DamagedRun(replica: chain, first: UInt64(number), last: UInt64(number), arrival: Int64(number))
    }
    for run in runs { damaged.note(run, in: partition) }
    damaged.note(DamagedRun(replica: other, first: 1, last: 1, arrival: 9_999), in: partition)
    for run in runs { damaged.noteMended(run, DamagedRuns.Chain(partition: partition, replica: chain)) }
    var isDemanded = damaged.takeDemand()
    #expect(isDemanded && damaged.chains == [partition: [other]] && damaged.leastCount == 1)
    damaged.noteScrubbed()
    isDemanded = damaged.takeDemand()
    #expect(isDemanded)
    damaged.noteScrubbed()
    isDemanded = damaged.takeDemand()
    #expect(!isDemanded && damaged.isWhole && damaged.leastCount == 0)
  }

  @Test("a chain with more damaged runs than are remembered is not whole before the log was read over once more")
  func beyond() {
    var damaged = DamagedRuns()
    let place = DamagedRuns.Chain(partition: node.id(of: room), replica: chain)
    let runs = (1...DamagedRuns.limit + 1).map { number in
      DamagedRun(replica: chain, first: UInt64(number), last: UInt64(number), arrival: Int64(number))
    }
    for run in runs { damaged.note(run, in: place.partition) }
    damaged.noteScrubbed()
    for run in runs.dropLast() { damaged.noteMended(run, place) }
    let demands = [damaged.takeDemand(), damaged.takeDemand()]
    #expect(damaged.isEmpty && !damaged.isWhole && demands == [true, false])
    damaged.note(runs[runs.count - 1], in: place.partition)
    damaged.noteScrubbed()
    #expect(damaged.count == 1 && !damaged.isWhole)
    damaged.noteMended(runs[runs.count - 1], place)
    let isDemanded = damaged.takeDemand()
    #expect(damaged.isWhole && !isDemanded)
  }

  @Test("a part that the disk does not give is passed over, and the rest is read; that pass counts for none")
  func sector() throws {
    try node.flip(room, chain) { $0.last == 2 }
    try bench.restart(1)
    node.store.unreadable = [0]
    bench.advance(500)
    #expect(node.state.damagedRuns.isEmpty && node.state.scrub.failure != nil && node.state.scrub.position == 0)
    bench.advance(LogScrub.retryMilliseconds)
    #expect(node.state.damagedRuns.isEmpty && node.state.scrub.position == 1)
    bench.advance(LogScrub.crowdedMilliseconds)
    #expect(node.state.damagedRuns.count == 1)
    #expect(node.state.scrub.passCount == 1 && node.state.scrub.wholePassCount == 0)
    #expect(node.state.scrub.failure != nil && node.state.scrub.position == 0)
    node.store.unreadable = []
    bench.advance(LogScrub.retryMilliseconds)
    #expect(node.state.scrub.wholePassCount == 1 && node.state.scrub.failure == nil)
  }

  @Test("where the log cannot be read over, the node goes on and looks again later")
  func failure() throws {
    node.store.scrubFailure = Unread()
    bench.advance(LogScrub.passMilliseconds)
    #expect(node.state.scrub.failure != nil && node.engine.storeFailure == nil)
    try node.write(room, Put("goes on"))
    #expect(!node.state.surroundings.knowsDamage, "so nothing new is said of what is held")
    node.store.scrubFailure = nil
    bench.advance(LogScrub.retryMilliseconds - 500)
    #expect(node.state.scrub.failure != nil)
    bench.advance(500)
    #expect(node.state.scrub.failure == nil && node.state.scrub.passCount == 2)
    #expect(node.state.surroundings.knowsDamage)
  }
}
