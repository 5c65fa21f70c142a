import Testing

@testable import Replication
@testable import Simulation

/// What of a forked chain goes out on a stream, and how often.
@Suite struct ForkedStreamTests {
  /// Two copies of one device, of which neither knows of the other: node 2 has met the first and node 3 the second, and both know
  /// both branches. The copy whose branch counts, who has met it, and where the branch ends.
  private func known() throws -> (bench: MeshBench, winner: Int, bringer: Int, end: ChainPosition, session: SessionID) {
    let bench = try MeshBench([0, 0, 1, 2])
    for copy in 0...1 {
      try bench.nodes[copy].write(Int64(copy))
      bench.cut(bench.connected(copy, copy + 2))
    }
    let session = bench.connected(2, 3)
    bench.pass(1_000)
    let end = try #require(bench.nodes[3].state?.accepted[bench.nodes[0].replica])
    let winner = try #require((0...1).first { bench.nodes[$0].state?.accepted[bench.nodes[0].replica] == end })
    try #require(bench.nodes[3].state?.forkPoints.isEmpty == false)
    return (bench, winner, winner + 2, end, session)
  }

  @Test("what went out on the stream behind a search does not go out again when the peer announces what it was shown")
  func announcedLate() throws {
    let (bench, winner, bringer, end, session) = try known()
    let other = 5 - bringer
    try bench.nodes[winner].write(3)
    _ = bench.connected(winner, bringer)
    bench.pass(1_000)
    try #require(bench.nodes[other].holds(bench.nodes[winner]) == 2)
    let start = bench.transcript.count
    let late = PartitionVector(name: bench.name, vector: VersionVector([bench.nodes[winner].replica: end]))
    bench.nodes[bringer].receive(.have(late), on: session)
    // Something else goes out.
    try bench.nodes[bringer].write(4)
    bench.pass(500)
    let runs = bench.messages(from: bringer, to: other, since: start).compactMap { message -> Int? in
      guard case .runs(let batch) = message else { return nil }
      return batch.entries.count
    }
    #expect(runs == [1] && bench.nodes[other].holds(bench.nodes[bringer]) == 1)
  }

  @Test("a chain whose search ends while the log is read without it goes out behind that, and nothing overtakes it")
  func endedWhileRead() throws {
    let (bench, winner, bringer, end, session) = try known()
    let other = 5 - bringer
    let replica = bench.nodes[winner].replica
    _ = bench.nodes[bringer].mesh.sessions[session]?.live?.streams[bench.partition]?.forks.beginAnew(replica)
    try bench.nodes[winner].write(3)
    _ = bench.connected(winner, bringer)
    bench.pass(1_000)
    try #require(bench.nodes[other].holds(bench.nodes[winner]) == 1)
    bench.nodes[bringer].holdsLoads = true
    let start = bench.transcript.count
    try bench.nodes[bringer].write(4)
    let spent = SpentDevices(places: [], branches: [bench.nodes[winner].key.publicKey])
    bench.nodes[bringer].receive(.spent(spent), on: session)
    let answer = ChainProbe(name: bench.name, replica: replica, positions: [end], wantsReply: false)
    bench.nodes[bringer].receive(.chainProbe(answer), on: session)
    bench.nodes[bringer].holdsLoads = false
    bench.pass(500)
    let order = bench.messages(from: bringer, to: other, since: start).flatMap { message -> [ReplicaID] in
      guard case .runs(let batch) = message, !batch.isForkEvidence else { return [] }
      return batch.entries.compactMap { entry in
        bench.nodes[bringer].log.first { $0.encoded == entry.encoded }?.replica
      }
    }
    #expect(order == [replica, bench.nodes[bringer].replica])
    #expect(bench.nodes[other].holds(bench.nodes[winner]) == 2)
  }

  @Test("one vector begins so many searches and no more, and the next one goes on")
  func searchesOfOneVector() throws {
    let bench = try MeshBench(Array(0...LiveSession.searchLimit + 4))
    for slot in bench.nodes.indices.dropFirst() {
      try bench.nodes[slot].write(Int64(slot))
      bench.cut(bench.connected(slot, 0))
    }
    let session = bench.connected(1, 0)
    let others = bench.nodes.dropFirst(2)
    try #require(others.allSatisfy { bench.nodes[0].holds($0) == 1 } && others.count > LiveSession.searchLimit)
    let wrong = VersionVector(
      Dictionary(uniqueKeysWithValues: others.map { ($0.replica, ChainPosition(sequence: 1, tip: Digest.zero.tip)) }))
    func searched() -> Int {
      bench.nodes[0].mesh.sessions[session]?.live?.streams[bench.partition]?.forks.heldBack.count ?? 0
    }
    let vector = PartitionVector(name: bench.name, vector: wrong)
    bench.nodes[0].receive(.vectors([vector]), on: session)
    #expect(searched() == LiveSession.searchLimit)
    bench.nodes[0].receive(.vectors([vector]), on: session)
    #expect(searched() == others.count)
  }

  @Test("what a peer was shown, and may not have taken, is searched anew when it takes branches again and pulls")
  func freed() throws {
    let (bench, winner, bringer, end, session) = try known()
    let replica = bench.nodes[winner].replica
    let device = bench.nodes[winner].key.publicKey
    func searched() -> Bool {
      bench.nodes[bringer].mesh.sessions[session]?.live?.streams[bench.partition]?.forks.isSearched(replica) == true
    }
    let vector = PartitionVector(name: bench.name, vector: VersionVector([replica: end]))
    bench.nodes[bringer].receive(.pull(stream: 90, vector), on: session)
    try #require(!searched())
    bench.nodes[bringer].receive(.spent(SpentDevices(places: [], branches: [device])), on: session)
    bench.nodes[bringer].receive(.spent(SpentDevices(places: [], branches: [])), on: session)
    bench.nodes[bringer].receive(.pull(stream: 91, vector), on: session)
    #expect(searched())
  }

  @Test("of devices that a peer spared once no more are kept than one message names, whomever it makes up")
  func freedBound() {
    var spared = SparedDevices()
    for round in 0..<5 as Range<UInt64> {
      let keys = (0..<UInt64(SpentDevices.limit)).map { PublicKey(Digest(words: (round, $0, 0, 0))) }
      _ = spared.hear(SpentDevices(places: [], branches: Set(keys)))
      #expect(spared.freed.count <= SpentDevices.limit)
    }
  }

  @Test("nothing is kept of chains that only the peer speaks of")
  func unknownChains() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(0)
    let session = bench.connected(1, 0)
    let replicas = (0..<32 as Range<UInt64>).map { ReplicaID(high: 7, low: $0) }
    for replica in replicas {
      bench.nodes[0].receive(
        .chainProbe(ChainProbe(name: bench.name, replica: replica, positions: [], wantsReply: true)), on: session)
    }
    let stream = try #require(bench.nodes[0].mesh.sessions[session]?.live?.streams[bench.partition])
    #expect(replicas.allSatisfy { stream.forks.settled($0) == nil })
  }

  @Test("of a chain that neither searches a peer's word counts by its number")
  func spared() throws {
    let (bench, winner, _, end, _) = try known()
    let (replica, log) = (bench.nodes[winner].replica, try #require(bench.nodes[3].state))
    let lost = try #require(bench.nodes[3].log.compactMap { $0.hashAtLast?.tip }.first { $0 != end.tip })
    let word = VersionVector([replica: ChainPosition(sequence: 1, tip: lost)])
    for isSpared in [false, true] {
      var stream = PeerStream(bench.name, number: 1, now: bench.now)
      stream.note(word, log, spared: { _ in isSpared })
      #expect(stream.known.sequence(of: replica) == (isSpared ? 1 : 0))
    }
  }
}
