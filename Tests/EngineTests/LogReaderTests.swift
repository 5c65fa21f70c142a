import CSQLite
import Identity
import Testing

@testable import Engine
@testable import Replication
@testable import Storage

@Suite struct LogReaderTests {
  private static let (chains, runs) = (16, 64)

  /// Chains of a MiB each, one after the other, all of one device.
  private func filled(_ partition: PartitionName) throws -> BenchNode {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    for chain in 0..<Self.chains {
      bench.advance(OwnReplica.renewalMilliseconds)
      if chain > 0 { node.engine.keeper.demandRenewal(.peer) }
      for index in 0..<Self.runs {
        try node.write(partition, Put(Text("\(chain)-\(index)"), byteCount: 16_000, of: UInt8(chain)))
      }
    }
    return node
  }

  @Test("a load reads of many lagging chains little more than it answers, and loads together answer all, in order")
  func manyChains() throws {
    let partition = try PartitionName("room=1")
    let node = try filled(partition)
    let reader = LogReader(node.state)
    var (have, loads) = (VersionVector(), [[LoggedRun]]())
    let before = pageVisits(node.store.store)
    var (pages, hasMore) = (0, true)
    while hasMore {
      let loaded = try reader.runs(node.id(of: partition), lackedBy: have, byteLimit: 1_024 * 1_024)
      if loads.isEmpty { pages = pageVisits(node.store.store) - before }
      loads.append(loaded.runs)
      hasMore = loaded.hasMore
      for run in loaded.runs { have[run.replica] = ChainPosition(sequence: run.last, tip: .zero) }
    }
    #expect(loads.joined().count == Self.chains * Self.runs)
    for load in loads.dropLast() { #expect(load.reduce(0) { $0 + $1.byteCount } >= 1_024 * 1_024) }
    // Each chain was written after the one before it.
    var last: [ReplicaID] = []
    for run in loads.joined() where last.last != run.replica { last.append(run.replica) }
    #expect(last.count == Self.chains)
    // Less than half of all that the chains have.
    let pageBytes = Int(try #require(try node.store.store.database.integer("PRAGMA page_size")))
    #expect(pages * pageBytes < Self.chains * Self.runs * 16_000 / 2)
  }

  private func pageVisits(_ store: Store) -> Int {
    [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS].reduce(0) { sum, counter in
      var (current, highest): (Int32, Int32) = (0, 0)
      sqlite3_db_status(store.database.handle, counter, &current, &highest, 0)
      return sum + Int(current)
    }
  }

  @Test("of a partition that is not known nothing is read, and of what the asker has nothing is answered")
  func nothingLacking() throws {
    let partition = try PartitionName("room=1")
    let node = try EngineBench().nodes[0]
    let reader = LogReader(node.state)
    #expect(try reader.runs(node.id(of: partition), lackedBy: VersionVector(), byteLimit: .max).runs.isEmpty)
    #expect(try reader.summaries(node.id(of: partition), ReplicaID.zero, from: 1).isEmpty)
    try node.write(partition, Put("a"))
    let again = LogReader(node.state)
    let all = try again.runs(node.id(of: partition), lackedBy: VersionVector(), byteLimit: .max)
    #expect(all.runs.map(\.last) == [1] && !all.hasMore)
    let none = try again.runs(node.id(of: partition), lackedBy: node.received(partition), byteLimit: .max)
    #expect(none.runs.isEmpty && !none.hasMore)
  }

  @Test("what a peer says of a chain that is plain here is answered from a few of its runs, however long it is")
  func probed()
    throws
  {
    let partition = try PartitionName("room=1")
    let bench = try EngineBench(2)
    let node = bench.nodes[0]
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[1].write(partition, Put("seen"))
    bench.meet(0, 1)
    for index in 0..<300 { try node.write(partition, Put("d", Int64(index))) }
    let (id, replica) = (node.id(of: partition), try #require(node.state.own.replica).id)
    let reader = LogReader(node.state)
    let all = try reader.summaries(id, replica, from: 1)
    #expect(all.map(\.last) == Array(1...300) && all.allSatisfy { $0.context.isEmpty })

    var before = node.store.runsRead + node.store.bodiesRead
    let told = try reader.summaries(id, replica, from: 1, for: .probe(SessionID(rawValue: 1), wantsReply: true))
    #expect(told.map(\.last) == [44, 172, 236, 268, 284, 292, 296, 298, 299, 300])
    #expect(node.store.runsRead + node.store.bodiesRead - before == told.count)

    func position(_ sequence: Int) -> ChainPosition {
      ChainPosition(sequence: UInt64(sequence), tip: all[sequence - 1].hashes[0].tip)
    }
    let strange = ChainPosition(sequence: 250, tip: all[3].hashes[0].tip)
    let ahead = ChainPosition(sequence: 500, tip: all[4].hashes[0].tip)
    for (named, first) in [
      ([position(7), position(137), strange, ahead], 138), ([position(300)], nil), ([strange, ahead], 1), ([], 1),
    ] as [([ChainPosition], UInt64?)] {
      before = node.store.runsRead + node.store.bodiesRead
      let probe = ChainProbe(name: partition, replica: replica, positions: named, wantsReply: false)
      let runs = try reader.summaries(id, replica, from: 1, for: .answer(SessionID(rawValue: 1), probe))
      #expect(probe.firstLacking(ofOneBranch: runs) == first)
      #expect(node.store.runsRead + node.store.bodiesRead - before <= told.count + 5)
    }
  }

  @Test("a chain that was taken apart to judge an old run that is here does not stay so in memory") func unfolded()
    throws
  {
    let bench = try EngineBench(2)
    let partition = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("*") }
    let author = HostileAuthor(bench, slot: 1)
    let session = bench.meet(1, 0)
    author.say([.statements(try author.declare(1).map(\.encoded))], to: 0, on: session)
    let replica = try #require(author.replicas.first)
    let runs = try (0..<64).map { _ in try author.run(partition, replica) }
    author.offer(partition, runs, to: 0, on: session)
    let node = bench.nodes[0]
    func nodeCount() -> Int? { node.state.mesh.partitions[node.id(of: partition)]?.log.nodeCount }
    #expect(node.accepted(partition).sequence(of: replica) == 64 && nodeCount() == 0)
    let read = node.store.runsRead
    author.offer(partition, [runs[3]], to: 0, on: session)
    #expect(node.store.runsRead > read && nodeCount() == 61, "it can be judged by its chain's headers alone")
    let again = node.store.runsRead
    author.offer(partition, [runs[4]], to: 0, on: session)
    #expect(node.store.runsRead == again, "which are not read for each message")
    bench.advance(1_000)
    #expect(nodeCount() == 0)
  }

  @Test("a run that does not decode, in a row without a sum, is named wherever it is met", arguments: [3, 90])
  func undecoded(byteCount: Int) throws {
    let partition = try PartitionName("room=1")
    let node = try EngineBench().nodes[0]
    for id in ["a", "b", "c"] as [Text] { try node.write(partition, Put(id)) }
    let (id, replica) = (node.id(of: partition), try #require(node.state.own.replica).id)
    let row = try #require(try node.rows(partition, replica).dropFirst().first)
    try node.cutShort(partition, replica, to: byteCount) { $0.last == 2 }
    let run = DamagedRun(row, of: replica)
    var named: [DamagedRun?] = []
    let reader = LogReader(node.state) { failure, _ in named.append(failure.runAtFault) }
    let probe = ChainPurpose.probe(SessionID(rawValue: 1), wantsReply: true)
    #expect(try reader.summaries(id, replica, from: 1).map(\.last) == [1, 3] && named == [run])
    #expect(try reader.summaries(id, replica, from: 1, for: probe).map(\.last) == [1, 3] && named == [run, run])
    let following = Following(
      store: node.store, reader: RunReader(node.state.identity), chain: node.chain(partition, replica))
    #expect(try following.intactBody(of: run) == nil)
    // How the run begins reads with more bytes of it.
    guard byteCount == 3 else { return }
    #expect(try reader.runs(id, lackedBy: VersionVector(), byteLimit: .max).runs.map(\.last) == [1])
    #expect(try reader.evidence(id, replica, above: 0).runs.map(\.last) == [1])
    #expect(named == [run, run, run, run])
    #expect(try following.hashes(behind: 1).unread == run)
  }

  @Test("a run of which what it has seen does not decode is named as well")
  func undecodedContext() throws {
    let partition = try PartitionName("room=1")
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[1].write(partition, Put("seen"))
    bench.meet(0, 1)
    let node = bench.nodes[0]
    try node.write(partition, Put("a"))
    let replica = try #require(node.state.own.replica).id
    let row = try #require(try node.rows(partition, replica).first)
    try node.store.store.database.execute(
      "UPDATE runs SET sum=NULL, context_base=NULL, context=x'ff' WHERE arrival=\(row.arrival)")
    var named: [DamagedRun?] = []
    let reader = LogReader(node.state) { failure, _ in named.append(failure.runAtFault) }
    var have = node.received(partition)
    have[replica] = nil
    #expect(try reader.runs(node.id(of: partition), lackedBy: have, byteLimit: .max).runs.isEmpty)
    #expect(!named.isEmpty && named.allSatisfy { $0 == DamagedRun(row, of: replica) })
  }

  @Test("a payload that travels apart is read with its run")
  func apart() throws {
    let partition = try PartitionName("room=1")
    let node = try EngineBench().nodes[0]
    try node.write(partition, Put("large", byteCount: 40_000))
    try node.write(partition, Put("small", byteCount: 100))
    let (runs, _) = try LogReader(node.state).runs(
      node.id(of: partition), lackedBy: VersionVector(), byteLimit: .max)
    #expect(runs.map { $0.apart != nil } == [true, false])
    #expect(runs[0].byteCount > 40_000 && runs[0].encoded.count < 1_000)
  }

  @Test(
    "who lacks what counts of an ended device is not read what it wrote above its limit, where its key is in other hands",
    arguments: [RightsRequest.EndManner.compromised, .revoke])
  func aboveLimit(manner: RightsRequest.EndManner) throws {
    let partition = try PartitionName("room=1")
    let bench = try EngineBench(3)
    for node in bench.nodes { try node.subscribe("room=*") }
    let (admin, author, witness) = (bench.nodes[0], bench.nodes[1], bench.nodes[2])
    for id in ["a", "b"] as [Text] { try author.write(partition, Put(id)) }
    bench.cut(bench.meet(0, 1))
    try author.write(partition, Put("c"))
    bench.cut(bench.meet(1, 2))
    let signer = StatementAuthor(key: admin.key.publicKey, sign: admin.key.sign)
    let plan = try admin.engine.plan(.end(author.key.publicKey, manner, nil), authors: [signer])
    try admin.engine.carryOut(plan, authors: [signer])
    admin.engine.turn([])
    bench.cut(bench.meet(0, 2))
    let log = try #require(witness.state.mesh.partitions[witness.id(of: partition)]?.log)
    #expect(log.received.entries.values.map(\.sequence) == [3] && log.accepted.entries.values.map(\.sequence) == [2])
    let read = try LogReader(witness.state).runs(
      witness.id(of: partition), lackedBy: VersionVector(), byteLimit: .max)
    #expect(read.runs.map(\.last) == (manner == .compromised ? [1, 2] : [1, 2, 3]) && !read.hasMore)
  }
}
