import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: what peers say of a node's own chain") struct OwnChainClaimTests {
  private func claim(_ bench: MeshBench, sequence: UInt64, isOther: Bool = false) -> Message {
    let own = bench.nodes[0].state?.clipped[bench.nodes[0].replica]?.tip ?? .zero
    let position = ChainPosition(sequence: sequence, tip: isOther ? TipHash(high: 9, low: 9) : own)
    return .have(PartitionVector(name: bench.name, vector: VersionVector([bench.nodes[0].replica: position])))
  }

  private func holds(_ bench: MeshBench) -> Bool {
    bench.nodes[0].mesh.ownChainClaims.holds(bench.partition, bench.now)
  }

  @Test("a claim of more, or of other, makes own writes wait and calls for no new replica; what is known does neither")
  func claims() throws {
    for (sequence, isOther, isHeld) in [(1, false, false), (2, false, true), (1, true, true)] as [(UInt64, Bool, Bool)]
    {
      let bench = try MeshBench([0, 1])
      try bench.nodes[0].write(1)
      let id = bench.connected(0, 1)
      bench.nodes[0].receive(claim(bench, sequence: sequence, isOther: isOther), on: id)
      #expect(holds(bench) == isHeld && !bench.nodes[0].hasToRenew)
    }
  }

  @Test("who claims again and again is waited for once a day, loses its session, and gives no cause for a new replica")
  func again() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(1)
    let hold = OwnChainClaims.holdMilliseconds
    for round in 0..<5 as Range<UInt64> {
      let id = bench.connected(0, 1)
      bench.nodes[0].receive(claim(bench, sequence: 2 + round), on: id)
      #expect(holds(bench) == (round == 0))
      bench.pass(hold - 100)
      #expect(holds(bench) == (round == 0) && bench.nodes[0].mesh.sessions[id] != nil)
      bench.pass(200)
      #expect(!holds(bench) && (bench.nodes[0].mesh.sessions[id] == nil) == (round == 0))
      bench.cut(id)
    }
    #expect(!bench.nodes[0].hasToRenew && bench.nodes[0].mesh.ownChainClaims.distrustedCount == 1)
    let reason = "it claimed to hold more of what this device wrote, and showed none of it"
    #expect(bench.nodes[0].notes.contains(.peerRefused(reason)))

    bench.now = bench.now.advanced(byMilliseconds: OwnChainClaims.distrustMilliseconds)
    bench.nodes[0].receive(claim(bench, sequence: 9), on: bench.connected(0, 1))
    #expect(holds(bench))
  }

  @Test("whose claim came to nothing is not waited for any longer in other partitions, nor charged once more")
  func elsewhere() {
    var claims = OwnChainClaims()
    let (liar, other) = (DeviceID(Digest(words: (1, 0, 0, 1))), DeviceID(Digest(words: (2, 0, 0, 1))))
    func partition(_ number: UInt64) -> PartitionID { PartitionID(Digest(words: (number, 0, 0, 2))) }
    func at(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }
    let said: [(UInt64, DeviceID, UInt64)] = [(1, liar, 0), (2, liar, 1_500), (3, other, 1_500), (4, liar, 0)]
    for (number, device, since) in said {
      let claim = OwnChainClaims.Claim(
        session: SessionID(rawValue: number), device: device, replica: ReplicaID(high: 1, low: 1), since: at(since))
      _ = claims.add(claim, of: partition(number))
    }
    #expect(claims.takeLapsed(at(2_000)).map(\.session.rawValue) == [1])
    #expect((1...3).map { claims.holds(partition($0), at(2_000)) } == [false, false, true])
    #expect(claims.takeLapsed(at(3_500)).map(\.session.rawValue) == [3])
  }

  @Test("a claim is asked about at once, although another peer does the catch-up")
  func asked() throws {
    let bench = try MeshBench([0, 1, 2, 3])
    let sessions = [bench.connected(0, 1), bench.connected(0, 2)]
    // The first names what it does not send.
    let ahead = VersionVector([bench.nodes[3].replica: ChainPosition(sequence: 4, tip: .zero)])
    bench.nodes[0].receive(.have(PartitionVector(name: bench.name, vector: ahead)), on: sessions[0])
    let start = bench.transcript.count
    bench.nodes[0].receive(claim(bench, sequence: 2), on: sessions[1])
    #expect(bench.said(from: 0, to: 2, since: start) == ["pull"])
  }

  @Test("the signed run that a claim is about ends the waiting and calls for a new replica")
  func evidence() throws {
    let bench = try MeshBench([0, 0, 1])
    try bench.nodes[1].write(1)
    bench.cut(bench.connected(1, 2))
    // Node 0 is an older copy: it has lost what node 2 got.
    let id = bench.connect(0, 2)
    while !holds(bench), !bench.nodes[0].hasToRenew { bench.run(1) }
    #expect(holds(bench) && !bench.nodes[0].hasToRenew)
    bench.run()
    #expect(!holds(bench) && bench.nodes[0].hasToRenew)
    bench.pass(3_000)
    #expect(bench.nodes[0].mesh.sessions[id] != nil && bench.nodes[0].mesh.ownChainClaims.distrustedCount == 0)
  }

  @Test("where a new replica is due anyway, or another is in use, claims ask for nothing")
  func due() throws {
    let bench = try MeshBench([0, 1])
    try bench.nodes[0].write(1)
    let id = bench.connected(0, 1)
    bench.nodes[0].receive(claim(bench, sequence: 2), on: id)
    bench.nodes[0].isRenewalDue = true
    bench.nodes[0].receive(claim(bench, sequence: 3), on: id)
    #expect(!holds(bench))
    bench.nodes[0].isRenewalDue = false
    bench.nodes[0].receive(claim(bench, sequence: 4), on: id)
    #expect(holds(bench))
    bench.nodes[0].ownReplica = bench.nodes[1].replica
    bench.nodes[0].deliver(.tick)
    #expect(!holds(bench))
  }

  @Test("both tables are bounded: no more partitions are held at once, and the device longest ignored gives way")
  func bounds() {
    var claims = OwnChainClaims()
    func claim(_ number: Int, _ now: UInt64) -> (OwnChainClaims.Claim, PartitionID) {
      let device = DeviceID(Digest(words: (UInt64(number), 0, 0, 1)))
      return (
        OwnChainClaims.Claim(
          session: SessionID(rawValue: UInt64(number)), device: device, replica: ReplicaID(high: 1, low: 1),
          since: MonotonicTime(milliseconds: now)),
        PartitionID(Digest(words: (UInt64(number), 0, 0, 2)))
      )
    }
    for number in 0...OwnChainClaims.claimLimit {
      let (said, partition) = claim(number, 0)
      let isTaken = claims.add(said, of: partition)
      #expect(isTaken == (number < OwnChainClaims.claimLimit))
    }
    _ = claims.takeLapsed(MonotonicTime(milliseconds: 2_000))
    for number in 1_000..<1_000 + OwnChainClaims.distrustLimit {
      let (said, partition) = claim(number, UInt64(number) * 3_000)
      let isTaken = claims.add(said, of: partition)
      let lapsed = claims.takeLapsed(MonotonicTime(milliseconds: UInt64(number) * 3_000 + 2_000))
      #expect(isTaken && lapsed == [said])
    }
    #expect(claims.distrustedCount == OwnChainClaims.distrustLimit)
    let (longest, partition) = claim(0, 4_000_000)
    let isTaken = claims.add(longest, of: partition)
    #expect(isTaken)
  }
}
