import Testing

@testable import Replication

@Suite struct LevelStreamTests {
  private let name: PartitionName

  init() throws { name = try PartitionName("bench/1") }

  private func vector(_ pair: MeshPair) -> PartitionVector {
    PartitionVector(
      name: name, vector: VersionVector([pair.replica: ChainPosition(sequence: 1, tip: .zero)]))
  }

  /// The listener is live; the dialer has not heard yet what the listener wants.
  private func pairBeforeInterests() throws -> MeshPair {
    var pair = try MeshPair(dialerWants: [], listenerWants: ["bench/"])
    while pair.phase(of: .listener) != .live {
      pair.arrive(at: .listener)
      guard pair.phase(of: .listener) != .live else { break }
      pair.arrive(at: .dialer)
    }
    try #require(pair.phase(of: .dialer) == .awaitingInterest)
    return pair
  }

  /// It comes to want more itself at that moment.
  private func pairThatDisagrees() throws -> MeshPair {
    var pair = try pairBeforeInterests()
    pair.handle(.dialer, .interestChanged(added: Interest(prefixes: ["bench/"]), removed: Interest()))
    pair.settle()
    return pair
  }

  @Test("an interest that changes while the handshake ends does not keep back what the peer then announces")
  func announced() throws {
    var pair = try pairThatDisagrees()
    let answer = pair.handle(.dialer, .received(MeshPair.session, .have(vector(pair))))
    #expect(answer.contains { if case .pull(_, let asked) = $0 { asked.name == name } else { false } })
  }

  @Test("an interest that changes while the handshake ends is told to the peer, which may be live already")
  func told() throws {
    let pair = try pairThatDisagrees()
    let told = pair.meshes[.listener]?.sessions[MeshPair.session]?.peerInterest
    #expect(told == pair.meshes[.dialer]?.interest)
  }

  @Test("vectors that come before the peer's interest lead to another comparison at the next tick")
  func vectorsTooEarly() throws {
    for comesEarly in [false, true] {
      var pair = try pairBeforeInterests()
      if comesEarly {
        pair.handle(.dialer, .received(MeshPair.session, .vectors([vector(pair)])))
      }
      pair.settle()
      try #require(pair.phase(of: .dialer) == .live)
      let sent = pair.handle(.dialer, .tick)
      #expect(sent.contains { if case .summary = $0 { true } else { false } } == comesEarly)
    }
  }

  @Test("what a third wrote is asked for on a stream that only this end took for open, where nobody else can bring it")
  func heldOpenAlone() throws {
    let bench = try MeshBench(Array(0..<3))
    try bench.nodes[0].write(0)
    _ = bench.connected(0, 1)
    bench.pass(3_000)
    bench.cut(bench.connected(0, 2))
    let session = bench.connected(0, 2)
    bench.pass(3_000)
    let isLevel = bench.nodes[2].mesh.sessions[session]?.live?.level.contains(bench.partition, name)
    try #require(isLevel == true)
    // As where an interest that changed during the handshake has reached one end alone.
    bench.nodes[0].mesh.sessions[session]?.live?.level = LevelMarks()
    try bench.nodes[1].write(1)
    bench.pass(2_500)
    #expect(bench.nodes[2].holds(bench.nodes[1]) == 1)
  }

  /// Node 0 between 1 and 2, which have open streams, and 3, with whom all is equal and nothing has changed since. What it is
  /// sent becomes durable when the test says so.
  private func benchBeforeCommit() throws -> MeshBench {
    let bench = try MeshBench(Array(0..<4))
    for slot in 1...2 { _ = bench.connected(0, slot) }
    try bench.nodes[0].write(0)
    bench.pass(3_000)
    bench.cut(bench.connected(0, 3))
    let session = bench.connected(0, 3)
    bench.pass(3_000)
    try #require(bench.nodes[0].mesh.sessions[session]?.live?.streams[bench.partition] == nil)
    bench.nodes[0].holdsCommits = true
    return bench
  }

  @Test("of what becomes durable at once from several, all goes to a peer with whom all was equal before")
  func severalAtOnce() throws {
    let bench = try benchBeforeCommit()
    for slot in 1...2 { try bench.nodes[slot].write(1) }
    bench.run()
    bench.nodes[0].commit()
    bench.pass(2_500)
    for slot in 1...2 { #expect(bench.nodes[3].holds(bench.nodes[slot]) == 1) }
  }

  @Test("a stream that the peer's own run opens does not take for known to it what is here and not yet durable")
  func openedBeforeCommit() throws {
    let bench = try benchBeforeCommit()
    for slot in 1...3 {
      try bench.nodes[slot].write(1)
      bench.run()
    }
    let start = bench.transcript.count
    bench.nodes[0].commit()
    bench.pass(2_500)
    for slot in 1...2 { #expect(bench.nodes[3].holds(bench.nodes[slot]) == 1) }
    // Where it was not passed on, the announcement that follows has it asked for.
    #expect(!bench.said(from: 3, to: 0, since: start).contains("pull"))
  }

  @Test("runs on a stream that only the peer took for open are asked for, instead of waiting for the next comparison")
  func sentUnasked() throws {
    var pair = try MeshPair(dialerWants: ["bench/"], listenerWants: ["bench/"])
    pair.settle()
    try #require(pair.phase(of: .dialer) == .live)
    pair.handle(.dialer, .interestChanged(added: Interest(), removed: Interest(prefixes: ["bench/"])))
    pair.handle(.dialer, .interestChanged(added: Interest(prefixes: ["bench/"]), removed: Interest()))
    let batch = RunBatch(name: name, stream: PeerStream.level, entries: [])
    let answer = pair.handle(.dialer, .receivedRuns(MeshPair.session, batch, []))
    #expect(answer.contains { if case .pull(_, let asked) = $0 { asked.name == name } else { false } })
  }

  @Test("equal summaries open streams without a pull, and what comes on them is not asked for again")
  func level() throws {
    var pair = try MeshPair(dialerWants: ["bench/"], listenerWants: ["bench/"])
    pair.settle()
    let batch = RunBatch(name: name, stream: PeerStream.level, entries: [])
    #expect(pair.handle(.dialer, .receivedRuns(MeshPair.session, batch, [])) == [])
  }

  /// One end lost a right for a time that the other never heard of: it begins the stream anew, and the other goes on.
  @Test("a context on a base of before the stream was begun anew is asked for; on a pulled stream it is a breach")
  func base() throws {
    for isLevel in [true, false] {
      let bench = try MeshBench([0, 1])
      try bench.nodes[1].write(1)
      if !isLevel {
        let first = bench.connected(0, 1)
        bench.pass(1_000)
        bench.cut(first)
        // What only one of them has leads to a pull.
        try bench.nodes[1].write(2)
      } else {
        bench.cut(bench.connected(0, 1))
      }
      let id = bench.connected(0, 1)
      bench.pass(1_000)
      try bench.nodes[0].write(3)
      bench.pass(1_000)
      let before = try #require(bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition])
      try #require(before.incoming.base != nil && before.incoming.isLevel == isLevel)

      bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.base = nil
      let start = bench.transcript.count
      try bench.nodes[0].write(4)
      bench.pass(1_000)
      #expect((bench.nodes[1].mesh.sessions[id] != nil) == isLevel)
      #expect(bench.said(from: 1, to: 0, since: start).contains("pull") == isLevel)
      #expect((bench.nodes[1].holds(bench.nodes[0]) == 2) == isLevel)
    }
  }
}
