import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: comparing what two nodes hold") struct MeshComparisonTests {
  /// What the messages take with their frames, without TLS.
  private func bytes(_ bench: MeshBench, since start: Int, _ isMeant: (Message) -> Bool = { _ in true }) -> Int {
    bench.transcript.dropFirst(start).filter { isMeant($0.message) }
      .reduce(0) { $0 + MessageCodec.encode($1.message).count + 4 }
  }

  private func isHello(_ message: Message) -> Bool { if case .hello = message { true } else { false } }

  private func steps(_ bench: MeshBench, from: Int, to: Int, since start: Int = 0) -> [Summary.Step] {
    bench.messages(from: from, to: to, since: start).compactMap { message in
      if case .summary(let summary) = message { summary.step } else { nil }
    }
  }

  /// Both hold so many more partitions of twenty chains each, beside the bench's own, which node 0 alone goes on with.
  private func large(_ count: Int) throws -> MeshBench {
    let bench = try MeshBench([0, 19])
    try bench.nodes[0].write(0)
    bench.cut(bench.connected(0, 1))
    let log = try #require(bench.nodes[0].state)
    for slot in 0...1 {
      try bench.nodes[slot].plant { ledger in
        for number in 0..<count {
          let name = try PartitionName(Text("agency=\(number)"))
          let id = bench.fleet.partition(name)
          ledger.partitions[id] = PartitionState(id: id, name: name, log: log)
        }
        ledger.partitions[bench.partition]?.log.lengthen(bench.otherReplicas, bench)
      }
    }
    return bench
  }

  @Test("a reconnect with nothing new costs a question and an answer beside the hellos, whatever is held")
  func nothingNew() throws {
    let bench = try large(500)
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    #expect(bench.said(from: 0, to: 1, since: start) == ["hello", "summary"])
    #expect(bench.said(from: 1, to: 0, since: start) == ["hello", "summary"])
    #expect(bytes(bench, since: start) { !isHello($0) } == 25)
    #expect(bytes(bench, since: start) <= 1_100)
  }

  @Test(
    "one partition of ten thousand that differs costs its own vectors and the listing of its bucket", arguments: [0, 1])
  func oneOfMany(writer: Int) throws {
    let bench = try large(10_000)
    try bench.nodes[writer].write(1)
    let start = bench.transcript.count
    _ = bench.connect(0, 1)
    let flights = bench.flights(since: start) { bench.nodes[1 - writer].holds(bench.nodes[writer]) > 0 }
    #expect(bench.nodes[1 - writer].state?.received == bench.nodes[writer].state?.received)
    // Of the two hellos, and five or six until the change is there: three round trips at most.
    #expect(flights.map { $0 - 2 <= 6 } == true, "\(flights ?? 0) flights")
    let cost = bytes(bench, since: start)
    #expect(cost <= 8_192, "\(cost) B")
    let pulls = bench.transcript.dropFirst(start).count { if case .pull = $0.message { true } else { false } }
    #expect(pulls == 2, "what is level is not pulled")
  }

  @Test("streams of partitions that are level in a bucket that differs open without a pull")
  func levelBesideOneThatDiffers() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(0)
    bench.cut(bench.connected(0, 1))
    let level = bench.partition
    let other = try #require(
      (0..<10_000).lazy.compactMap { try? PartitionName(Text("agency=\($0)")) }.first {
        Summary.bucket(of: bench.fleet.partition($0)) == Summary.bucket(of: level)
      })
    let log = try #require(bench.nodes[0].state)
    let id = bench.fleet.partition(other)
    bench.nodes[0].plant { $0.partitions[id] = PartitionState(id: id, name: other, log: log) }
    bench.nodes[0].holdsLoads = true
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    #expect(bench.said(from: 1, to: 0, since: start).contains("pull"))
    bench.nodes[0].holdsLoads = false
    try bench.nodes[0].write(1)
    bench.run()
    let named = bench.transcript.dropFirst(start).compactMap { line -> PartitionName? in
      if case .pull(_, let vector) = line.message { vector.name } else { nil }
    }
    #expect(Set(named) == [other] && bench.nodes[1].holds(bench.nodes[0]) == 2)
  }

  @Test("sums that follow the changes are those that are made anew, under any changes of what is held and in common")
  func sums() throws {
    for seed in 1...20 as ClosedRange<UInt64> {
      let bench = try MeshBench([0, 1], seed: seed)
      let id = bench.connected(0, 1)
      for _ in 0..<12 {
        switch bench.random.below(5) {
        case 0: try bench.nodes[0].write(Int64(bench.random.below(1_000)))
        case 1: try bench.nodes[1].write(Int64(bench.random.below(1_000)))
        case 2:
          let change = bench.fleet.interest("agency=*")
          bench.nodes[0].deliver(.interestChanged(added: change, removed: Interest()))
        case 3: bench.state([.rule(Statement.Rule(key: Text("k\(bench.random.below(3))")))])
        default: bench.pass(UInt64(bench.random.below(40)) * 1_000)
        }
        bench.run()
        for node in bench.nodes {
          let followed = node.mesh.currentTotal(id)
          node.mesh.scopeChanged()
          #expect(node.mesh.currentTotal(id) == followed, "seed \(seed)")
        }
      }
      bench.pass(100_000)
      #expect(bench.nodes[0].mesh.currentTotal(id) == bench.nodes[1].mesh.currentTotal(id))
    }
  }

  @Test("of questions that cross the dialer's is answered, and one comparison is made of them")
  func crossing() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(0)
    let id = bench.connected(0, 1)
    try bench.nodes[1].write(1)
    bench.loseMessages()
    let start = bench.transcript.count
    for slot in 0...1 { bench.nodes[slot].ask(id) }
    bench.run()
    #expect(steps(bench, from: 0, to: 1, since: start).count == 2)
    #expect(steps(bench, from: 1, to: 0, since: start).count == 3)
    #expect(bench.nodes.allSatisfy { $0.mesh.sessions[id]?.live?.comparison.isUnderWay == false })
  }

  @Test("what is written during a comparison with which the peer does not go on is told after five seconds")
  func lapse() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.nodes[0].ask(id)
    bench.loseMessages()
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    #expect(bench.said(from: 0, to: 1, since: start) == [])
    bench.tick(0, after: 5_000)
    #expect(bench.said(from: 0, to: 1, since: start) == [])
    bench.tick(0, after: 1)
    #expect(bench.said(from: 0, to: 1, since: start) == ["vectors"])
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 1)
  }

  @Test("what both write during a comparison reaches the other when it ends, whether its stream opens before or not")
  func writtenMeanwhile() throws {
    for otherWrites in [true, false] {
      let (bench, id) = try level()
      bench.nodes[0].ask(id)
      try bench.nodes[0].write(1)
      if otherWrites { try bench.nodes[1].write(2) }
      bench.run()
      #expect(bench.nodes[1].holds(bench.nodes[0]) == 2, "the other writes: \(otherWrites)")
      #expect(bench.nodes[0].holds(bench.nodes[1]) == (otherWrites ? 1 : 0))
    }
  }

  @Test("what is written during a comparison reaches the peer when it ends, also where vectors cross it")
  func vectorsCross() throws {
    let (bench, id) = try level()
    bench.nodes[0].deliver(.interestChanged(added: bench.fleet.interest("agency=*"), removed: Interest()))
    bench.nodes[0].ask(id)
    try bench.nodes[0].write(1)
    bench.run()
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 2)
  }

  /// Two that have found to hold the same, and have no stream yet.
  private func level() throws -> (bench: MeshBench, id: SessionID) {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(0)
    bench.cut(bench.connected(0, 1))
    let id = bench.connected(0, 1)
    try #require(bench.nodes[0].mesh.sessions[id]?.live?.streams.isEmpty == true)
    return (bench, id)
  }

  @Test("an answer to another question than the last is none")
  func lateAnswers() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.nodes[0].ask(id)
    let asked = try #require(bench.nodes[0].mesh.sessions[id]?.live?.comparison.stage)
    let words = [UInt64](repeating: 1, count: Summary.bucketCount)
    for step in [Summary.Step.equal, .buckets(words), .partitions(equal: 0, []), .differing([1])] {
      bench.nodes[0].receive(.summary(Summary(9_999, step)), on: id)
      #expect(bench.nodes[0].mesh.sessions[id]?.live?.comparison.stage == asked)
    }
  }

  @Test("on an open stream a vector names only what is new to the peer; all of it, where that was of no use")
  func untold() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[1].write(9)
    let id = bench.connected(0, 1)
    try bench.nodes[0].write(1)
    bench.pass(100)
    bench.nodes[0].mesh.pause(id)
    try bench.nodes[0].write(2)
    func told() -> Int {
      let start = bench.transcript.count
      bench.nodes[0].ask(id)
      // The other session below is none.
      Invariant.unheard { bench.run() }
      let vectors = bench.messages(from: 0, to: 1, since: start).compactMap { message -> Int? in
        if case .vectors(let list) = message { list.first?.vector.count } else { nil }
      }
      return vectors.first ?? 0
    }
    let other = SessionID(rawValue: 99)
    bench.nodes[1].mesh.pulls.catchUps.begin(bench.partition, on: other, for: VersionVector(), bench.now)
    #expect(told() == 1)
    #expect(told() == 2)
  }
}

extension PartitionLog {
  /// Gives each of these replicas a chain of one change.
  mutating func lengthen(_ replicas: [(ReplicaID, PublicKey)], _ bench: MeshBench) {
    for (replica, key) in replicas where received[replica] == nil {
      let run = RunSummary(
        partition: partition, replica: replica, first: 1, hashBefore: genesis(replica),
        hashes: [Digest(words: (replica.high, 1, 2, 3))], context: VersionVector(), signer: key)
      _ = learn(run)
    }
  }
}

extension Mesh {
  mutating func currentTotal(_ id: SessionID) -> UInt64 {
    settleSums()
    return sessions[id]?.sums(ledger).total ?? 0
  }
}
