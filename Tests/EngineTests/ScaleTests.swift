import CSQLite
import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Replication
@testable import Storage

/// What a run or a session costs follows what is new, and not what lies beside it.
@Suite struct ScaleTests {
  private let bench: EngineBench
  private let author: HostileAuthor
  private let room: PartitionName

  /// Nodes 0 and 1 are honest, in slot 2 is a member who signs whatever he likes.
  init() throws {
    bench = try EngineBench(3)
    room = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("*") }
    author = HostileAuthor(bench, slot: 2)
    let declarations = try author.declare(20).map(\.encoded)
    for slot in 0..<2 {
      let session = bench.meet(2, slot)
      author.say([.statements(declarations)], to: slot, on: session)
      bench.cut(session)
    }
  }

  private func offer(_ runs: [Run], to slot: Int) {
    let session = bench.meet(2, slot)
    author.offer(room, runs, to: slot, on: session)
    bench.cut(session)
  }

  private func pageVisits(_ slot: Int) -> Int {
    [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS].reduce(0) { sum, counter in
      var (current, highest): (Int32, Int32) = (0, 0)
      sqlite3_db_status(bench.nodes[slot].store.store.database.handle, counter, &current, &highest, 0)
      return sum + Int(current)
    }
  }

  // MARK: Held

  @Test("a run that is held reads nothing of what counts beside it, and no watcher has to read anew")
  func heldBesideMuch() throws {
    let unknown = PayloadCodec(rawValue: 7)
    let (held, plain) = (author.replicas[0], author.replicas[1])
    offer([try author.run(room, held, codec: unknown)], to: 0)
    func visits() throws -> Int {
      let next = try author.run(room, held, codec: unknown)
      let session = bench.meet(2, 0)
      let before = pageVisits(0)
      author.offer(room, [next], to: 0, on: session)
      defer { bench.cut(session) }
      return pageVisits(0) - before
    }
    let (few, rebuilds) = (try visits(), bench.nodes[0].store.store.end.rebuilds)
    offer(try (0..<60).map { _ in try author.run(room, plain, count: 64) }, to: 0)
    try #require(bench.nodes[0].accepted(room).sequence(of: plain) == 60 * 64)
    let many = try visits()
    #expect(bench.nodes[0].received(room).sequence(of: held) == 3)
    #expect(many < few + 40, "\(few), then \(many)")
    #expect(bench.nodes[0].store.store.end.rebuilds == rebuilds)
  }

  // MARK: Forks

  /// A chain that is forked at its second change, with so many runs on the branch that goes on, at both honest nodes.
  private func fork(_ count: Int) throws -> ReplicaID {
    let replica = author.replicas[0]
    let first = try author.run(room, replica)
    let rest = try (0..<count).map { _ in try author.run(room, replica, count: 16) }
    let other = try author.run(room, replica, fork: (1, first.record.hashAtLast, 77))
    for slot in 0..<2 {
      offer([first] + rest, to: slot)
      let session = bench.meet(2, slot)
      author.say([author.batch(room, [other], asEvidence: true)], to: slot, on: session)
      bench.cut(session)
      try #require(
        bench.nodes[slot].state.mesh.partitions[bench.nodes[slot].id(of: room)]?.log.forkPoints[replica] == 1)
    }
    return replica
  }

  @Test(
    "a session between two that know a fork reads and says little of the chain, however long it is, and brings what is new"
  )
  func forkKnown() throws {
    _ = try fork(40)
    try bench.nodes[1].write(room, Put("news"))
    for node in bench.nodes {
      node.links.clearSent()
      node.store.runsRead = 0
    }
    bench.meet(0, 1)
    for _ in 0..<3 { bench.advance(30_000) }
    #expect(try bench.nodes[0].shown(room, "news") != nil)
    let said = bench.nodes.flatMap(\.links.sent)
    let evidence = said.count { if case .runs(let batch) = $0 { batch.isForkEvidence } else { false } }
    #expect(evidence == 0)
    #expect(said.contains { if case .chainProbe = $0 { true } else { false } })
    // That one run, and of the chain nothing.
    #expect(bench.nodes[..<2].allSatisfy { $0.store.runsRead < 10 }, "\(bench.nodes.map(\.store.runsRead))")
  }

  @Test("who knows one branch alone is shown the other, and not once more what he has")
  func oneBranch() throws {
    let replica = author.replicas[0]
    let first = try author.run(room, replica)
    let rest = try (0..<40).map { _ in try author.run(room, replica, count: 16) }
    let other = try author.run(room, replica, fork: (1, first.record.hashAtLast, 77))
    for slot in 0..<2 { offer([first] + rest, to: slot) }
    let session = bench.meet(2, 1)
    author.say([author.batch(room, [other], asEvidence: true)], to: 1, on: session)
    bench.cut(session)
    for node in bench.nodes { node.links.clearSent() }
    bench.meet(0, 1)
    for _ in 0..<3 { bench.advance(30_000) }
    #expect(bench.nodes[0].state.mesh.partitions[bench.nodes[0].id(of: room)]?.log.forkPoints[replica] == 1)
    let shown = bench.nodes[1].links.sent.flatMap { message -> [ArraySlice<UInt8>] in
      if case .runs(let batch) = message, batch.isForkEvidence { batch.entries.map(\.encoded) } else { [] }
    }
    #expect(Set(shown) == [RunCodec.encode(other)[...]])
    #expect(bench.nodes[0].received(room) == bench.nodes[1].received(room))
  }

  @Test("two who parted below what memory has of a chain show each other both histories whole")
  func partedBelow() throws {
    let replica = author.replicas[0]
    let first = try author.run(room, replica, count: 4)
    let left = try (0..<3).map { _ in try author.run(room, replica, count: 4) }
    let tip = try #require(left.last?.record)
    let leftFork = try author.run(room, replica, fork: (tip.last, tip.hashAtLast, 7))
    let leftEnd = try author.run(room, replica)
    let right = try author.run(room, replica, count: 2, fork: (first.record.last, first.record.hashAtLast, 8))
    offer([first] + left + [leftEnd], to: 0)
    offer([first, right], to: 1)
    let session = bench.meet(2, 0)
    author.say([author.batch(room, [leftFork], asEvidence: true)], to: 0, on: session)
    bench.cut(session)
    bench.meet(0, 1)
    for _ in 0..<3 { bench.advance(30_000) }
    let logs = bench.nodes[..<2].compactMap { $0.state.mesh.partitions[$0.id(of: room)]?.log }
    #expect(logs.count == 2 && logs[0].forkProofs == logs[1].forkProofs && logs[0].forkProofs.count == 2)
    #expect(logs[0].accepted == logs[1].accepted && logs[0].received == logs[1].received)
  }

  // MARK: Many replicas

  /// Three rounds in which each of twenty replicas writes, having seen all that was written before it.
  private func rounds() throws -> [Run] {
    var (runs, seen): ([Run], VersionVector) = ([], VersionVector())
    for _ in 0..<3 {
      for replica in author.replicas {
        var context = seen
        context[replica] = nil
        let run = try author.run(room, replica, seen: context)
        seen[replica] = ChainPosition(sequence: run.record.last, tip: run.record.hashAtLast.tip)
        runs.append(run)
      }
    }
    return runs
  }

  @Test(
    "what a peer lacks of many chains comes in the order in which it came here, and little more is read than is answered"
  )
  func manyChains() throws {
    let runs = try rounds()
    let session = bench.meet(2, 0)
    for run in runs { author.offer(room, [run], to: 0, on: session) }
    let node = bench.nodes[0]
    try #require(node.accepted(room).count == 20)
    let reader = LogReader(node.state)
    var (have, found, hasMore) = (VersionVector(), [LoggedRun](), true)
    node.store.runsRead = 0
    while hasMore {
      let loaded = try reader.runs(node.id(of: room), lackedBy: have, byteLimit: 2_000)
      hasMore = loaded.hasMore
      #expect(!loaded.runs.isEmpty && loaded.runs.count < runs.count)
      for run in loaded.runs { have[run.replica] = ChainPosition(sequence: run.last, tip: .zero) }
      found += loaded.runs
    }
    #expect(found.map(\.encoded) == runs.map { RunCodec.encode($0)[...] })
    #expect(found.map(\.context) == runs.map(\.record.context))
    #expect(node.store.runsRead < runs.count * 2, "\(node.store.runsRead)")
  }

  @Test("the contexts of replicas that write by turns refer to one another's, and are read as they were written")
  func sharedContexts() throws {
    let runs = try rounds()
    let session = bench.meet(2, 0)
    for run in runs { author.offer(room, [run], to: 0, on: session) }
    let count = try bench.nodes[0].store.store.database.integer("SELECT count(*) FROM runs WHERE context_base IS NULL")
    let full = try #require(count)
    // While few have written, a context is no longer than what leads to it.
    #expect(full <= 20, "\(full) of \(runs.count)")
    try bench.restart(0)
    for replica in author.replicas {
      let chain = ChainIdentity(fleet: bench.founding.fleet, partition: bench.nodes[0].id(of: room), replica: replica)
      let read = try bench.nodes[0].store.runs(of: chain, after: 0, byteLimit: .max)
      #expect(read.map(\.context) == runs.filter { $0.record.chain.replica == replica }.map(\.record.context))
    }
  }

  @Test("who joins later writes where others have written, and is taken there")
  func joinsLater() throws {
    offer([try author.run(room, author.replicas[0])], to: 0)
    let late = try author.declare(1).map(\.encoded)
    let session = bench.meet(2, 0)
    author.say([.statements(late)], to: 0, on: session)
    author.offer(room, [try author.run(room, author.replicas[20])], to: 0, on: session)
    #expect(bench.nodes[0].accepted(room).sequence(of: author.replicas[20]) == 1)
    #expect(bench.nodes[0].state.mesh.takes[author.identity.device]?.chains == 2)
  }

  // MARK: Catch-up

  @Test(
    "who has brought the work of several replicas hears at once that all of it is here, in how many messages it came")
  func heardAtOnce() throws {
    let replicas = author.replicas.prefix(3)
    for replica in replicas { offer([try author.run(room, replica, count: 64)], to: 0) }
    let session = bench.connect(0, 1)
    // What node 0 says is taken in by the other in one turn, as where it comes faster than the disk takes it.
    let deliver = bench.nodes[0].links.deliver
    var runs: [[UInt8]] = []
    bench.nodes[0].links.deliver = { frame, session in
      if BenchLinks.kind(frame) == "runs" { runs.append(frame) } else { deliver?(frame, session) }
    }
    bench.run()
    let batch = try #require(runs.first.flatMap { try? MessageCodec.decode($0[...]) })
    guard case .runs(let all) = batch, all.entries.count == 3 else {
      Issue.record("another batch: \(batch)")
      return
    }
    // Each in a message of its own.
    let parts = all.entries.map { RunBatch(name: all.name, stream: all.stream, entries: [$0]) }
    bench.nodes[1].engine.turn(parts.map { bench.event(MessageCodec.encode(.runs($0)), session, 1) })
    bench.run()
    let known = bench.nodes[0].state.mesh.sessions[session]?.live?.streams[bench.nodes[0].id(of: room)]?.known
    #expect(known == bench.nodes[0].received(room))
  }
}
