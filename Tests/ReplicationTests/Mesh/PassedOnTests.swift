import Testing

@testable import Replication
@testable import Simulation

@Suite("What a nearer neighbour is to pass on, and does not get")
struct PassedOnTests {
  /// Node 0 writes. These are linked with it and with node `end`, which is not, and with one another; the nearest to that
  /// comes first, to which all others leave what node 0 writes.
  private struct Ring {
    let bench: MeshBench
    let between: [Int]
    let end: Int
    /// Of the nearest with node 0.
    let link: SessionID

    init(between count: Int, besides others: Int = 0) throws {
      let end = count + 1
      bench = try MeshBench(Array(0...(end + others)))
      let marks = bench.nodes.map { DeviceMark($0.device) }
      between = (1...count).sorted { marks[$0].isNearer(to: marks[end], than: marks[$1]) }
      self.end = end
      link = bench.connected(0, between[0])
      for slot in between.dropFirst() { _ = bench.connected(0, slot) }
      for a in between { for b in between where b < a { _ = bench.connected(a, b) } }
      for slot in between { _ = bench.connected(slot, end) }
    }

    /// All streams are open.
    func settle(_ writers: [Int]) throws {
      for value in 0..<2 as Range<Int64> {
        for writer in writers { try bench.nodes[writer].write(value) }
        bench.pass(3_000)
      }
      for writer in writers { try #require(held(by: end, of: writer) == 2) }
    }

    func held(by slot: Int, of writer: Int = 0) -> UInt64 { bench.nodes[slot].holds(bench.nodes[writer]) }

    /// Runs that were sent to a node, by whom.
    func senders(to slot: Int, since start: Int) -> [Int] {
      bench.nodes.indices.filter { $0 != slot }.flatMap { other in
        bench.messages(from: other, to: slot, since: start).flatMap { message in
          if case .runs(let batch) = message { batch.entries.map { _ in other } } else { [Int]() }
        }
      }
    }
  }

  @Test("is passed on by who left it to the neighbour, once that says that its link is broken")
  func linkBreaks() throws {
    let ring = try Ring(between: 2)
    try ring.settle([0])
    let start = ring.bench.transcript.count
    try ring.bench.nodes[0].write(2)
    ring.bench.cut(ring.link)
    ring.bench.run()
    try #require(ring.held(by: ring.between[1]) == 3 && ring.held(by: ring.between[0]) == 2)
    ring.bench.pass(950)
    #expect(ring.held(by: ring.end) == 2, "it may be back")
    ring.bench.pass(150)
    #expect(ring.held(by: ring.between[0]) == 3 && ring.held(by: ring.end) == 3)
    ring.bench.pass(5_000)
    #expect(ring.senders(to: ring.end, since: start) == [ring.between[1]])
  }

  @Test("is passed on by one of several who left it to the neighbour: the next nearest")
  func severalLeftIt() throws {
    let ring = try Ring(between: 4)
    try ring.settle([0])
    let start = ring.bench.transcript.count
    try ring.bench.nodes[0].write(2)
    ring.bench.cut(ring.link)
    ring.bench.pass(1_100)
    #expect(ring.held(by: ring.end) == 3)
    ring.bench.pass(5_000)
    #expect(ring.senders(to: ring.end, since: start) == [ring.between[1]])
  }

  @Test("is passed on without what others bring, who have not brought it yet")
  func nothingElse() throws {
    // Node 4 is linked with node 3, the end, and with who is not the nearest to that.
    let ring = try Ring(between: 2, besides: 1)
    let (far, other) = (ring.between[1], ring.end + 1)
    let slow = ring.bench.connected(other, ring.end)
    _ = ring.bench.connected(other, far)
    try ring.settle([0, other])
    let start = ring.bench.transcript.count
    ring.bench.nodes[other].mesh.pause(slow)
    try ring.bench.nodes[other].write(2)
    try ring.bench.nodes[0].write(2)
    ring.bench.cut(ring.link)
    ring.bench.pass(1_100)
    try #require(ring.held(by: far, of: other) == 3)
    #expect(ring.held(by: ring.end) == 3 && ring.held(by: ring.end, of: other) == 2)
    ring.bench.nodes[other].deliver(.writable(slow))
    ring.bench.pass(100)
    #expect(ring.senders(to: ring.end, since: start).sorted() == [far, other].sorted())
  }

  @Test(
    "is sent with what follows; nothing of a chain is of which something behind it has gone out already",
    arguments: [(1, 1), (3, 4)] as [(UInt64, UInt64)])
  func laterWentOut(sent: UInt64, end: UInt64) throws {
    let bench = try MeshBench([0, 1, 2])
    let (replica, marks) = (bench.nodes[0].replica, bench.nodes.map { DeviceMark($0.device) })
    var stream = PeerStream(bench.name, number: 1, now: bench.now)
    stream.outgoing.sent[replica] = ChainPosition(sequence: 1, tip: .zero)
    stream.outgoing.left.leave(replica, 2, through: 2, .by(marks[1], from: marks[0]))
    stream.outgoing.sent[replica] = ChainPosition(sequence: sent, tip: .zero)
    stream.outgoing.left.leave(replica, 4, through: 4, .direct)
    stream.outgoing.takeBackLeft(.from([replica: 2]))
    #expect((1...5).last { stream.covers(replica, $0) } == end)
  }

  @Test("is no more than what the peer lacks", arguments: [(1, 2), (3, 4), (4, nil)] as [(UInt64, UInt64?)])
  func peerHasIt(known: UInt64, first: UInt64?) throws {
    let bench = try MeshBench([0, 1, 2])
    let (replica, marks) = (bench.nodes[0].replica, bench.nodes.map { DeviceMark($0.device) })
    var left = LeftRuns()
    left.leave(replica, 2, through: 4, .by(marks[1], from: marks[0]))
    var held = VersionVector()
    held[replica] = ChainPosition(sequence: known, tip: .zero)
    let taken = left.takePassedOn(by: marks[1], from: nil, beyond: VersionVector(), held)
    #expect(taken.map(\.first) == (first.map { [$0] } ?? []))
  }

  @Test("is known to be left to it also when much else that was left to it has come to the peer")
  func manyBefore() {
    var left = LeftRuns()
    let (neighbour, bringer) = (DeviceMark(word: 1), DeviceMark(word: 2))
    let replicas = (0...UInt64(LeftRuns.limit)).map { ReplicaID(high: 1, low: $0) }
    for replica in replicas {
      left.leave(replica, 1, through: 1, .by(neighbour, from: bringer))
      if replica != replicas.last { left.end(VersionVector([replica: ChainPosition(sequence: 1, tip: .zero)])) }
    }
    let taken = left.takePassedOn(by: neighbour, from: [bringer], beyond: VersionVector(), VersionVector())
    #expect(taken.map(\.replica) == replicas.suffix(1))
  }

  @Test("is left to it all the same where it says first that it has it")
  func hasIt() throws {
    let ring = try Ring(between: 2)
    try ring.settle([0])
    let start = ring.bench.transcript.count
    try ring.bench.nodes[0].write(2)
    ring.bench.run()
    try #require(ring.held(by: ring.between[0]) == 3)
    ring.bench.cut(ring.link)
    ring.bench.pass(5_000)
    #expect(ring.held(by: ring.end) == 3)
    #expect(ring.senders(to: ring.end, since: start) == [ring.between[0]])
  }

  @Test(
    "is passed on by whom the neighbour asks for it, though others are nearer who do not hear of that", arguments: 2...3
  )
  func asksForIt(between: Int) throws {
    let ring = try Ring(between: between)
    try ring.settle([0])
    let (near, far) = (ring.between[0], ring.between[between - 1])
    ring.bench.nodes[0].mesh.pause(ring.link)
    try ring.bench.nodes[0].write(2)
    ring.bench.run()
    try #require(ring.held(by: far) == 3 && ring.held(by: near) == 2)
    let id = try #require(
      ring.bench.nodes[far].mesh.sessions.ids.first {
        ring.bench.nodes[far].mesh.sessions[$0]?.device == ring.bench.nodes[near].device
      })
    let held = try #require(ring.bench.nodes[near].state).clipped
    ring.bench.post(.pull(stream: 99, PartitionVector(name: ring.bench.name, vector: held)), from: near, on: id)
    ring.bench.pass(100)
    #expect(ring.held(by: ring.end) == 3)
  }
}
