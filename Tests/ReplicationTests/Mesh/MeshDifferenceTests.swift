import Testing
import Wire

@testable import Replication
@testable import Simulation

/// Pulls and first contexts that say how they differ from what was told (feature bit 45).
@Suite("Mesh: a vector of many replicas is told once") struct MeshDifferenceTests {
  private static let otherReplicas = 200

  /// Both hold the partition with chains of so many replicas, and node 1 alone its own last change, which has seen them.
  private func crowded(_ formats: [Int: KnownFormats] = [:]) throws -> MeshBench {
    let bench = try MeshBench([0, Self.otherReplicas + 1], formats: formats)
    try bench.nodes[0].write(0)
    bench.cut(bench.connected(0, 1))
    for node in bench.nodes {
      node.plant { $0.partitions[bench.partition]?.log.lengthen(bench.otherReplicas, bench) }
    }
    try bench.nodes[1].write(1)
    return bench
  }

  private func pulls(_ bench: MeshBench, since start: Int) -> [PartitionVector] {
    bench.transcript.dropFirst(start).compactMap { if case .pull(_, let vector) = $0.message { vector } else { nil } }
  }

  private func contexts(_ bench: MeshBench, since start: Int) -> [ContextForm] {
    bench.transcript.dropFirst(start).flatMap { line -> [ContextForm] in
      if case .runs(let batch) = line.message { batch.entries.map(\.context) } else { [] }
    }
  }

  @Test("where a partition differs its vector goes out once, whoever dials and whoever is ahead", arguments: [0, 1])
  func once(dialer: Int) throws {
    let bench = try crowded()
    let start = bench.transcript.count
    _ = bench.connected(dialer, 1 - dialer)
    #expect(bench.nodes[0].holds(bench.nodes[1]) == 1)
    let pulls = pulls(bench, since: start)
    #expect(pulls.count == 2 && pulls.allSatisfy { $0.base != nil && $0.vector.count == 1 })
    #expect(contexts(bench, since: start).allSatisfy { $0.entryCount <= 2 } && !contexts(bench, since: start).isEmpty)
    let said = bench.transcript.dropFirst(start).reduce(0) { $0 + MessageCodec.encode($1.message).count }
    #expect(said < Self.otherReplicas * 36 + 2_500, "\(said) bytes")
    // The streams go on as ever.
    try bench.nodes[0].write(2)
    try bench.nodes[1].write(3)
    bench.run()
    #expect(bench.nodes.allSatisfy { $0.log.count == 4 })
  }

  @Test("a build that does not take that is told whole vectors and contexts", arguments: [0, 1])
  func earlierBuild(slot: Int) throws {
    var formats = KnownFormats()
    formats.features &= ~KnownFormats.Feature.differences
    let bench = try crowded([slot: formats])
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    #expect(bench.nodes[0].holds(bench.nodes[1]) == 1)
    #expect(pulls(bench, since: start).allSatisfy { $0.base == nil && $0.vector.count > Self.otherReplicas })
    #expect(contexts(bench, since: start).first.map { if case .full = $0 { true } else { false } } == true)
  }

  @Test("what refers to a vector that was told long ago is served from what it says itself")
  func unknownMark() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    for value in 0..<3 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.run()
    let start = bench.transcript.count
    let gone = VersionVector([bench.nodes[1].replica: ChainPosition(sequence: 0, tip: .zero)])
    bench.nodes[0].receive(.pull(stream: 70, PartitionVector(name: bench.name, vector: gone, base: 5)), on: id)
    let whole = contexts(bench, since: start)
    #expect(whole.count == 3 && whole.first.map { if case .full = $0 { true } else { false } } == true)
    #expect(bench.nodes[0].mesh.sessions[id]?.live?.streams[bench.partition]?.known.isEmpty == true)
  }

  @Test("vectors that cross are told apart: a pull may refer to an earlier one, and to none before that")
  func crossing() throws {
    let partition = PartitionID(Digest(words: (1, 2, 3, 4)))
    func vector(_ last: UInt64, _ count: Int = ToldVectors.leastEntries) -> VersionVector {
      VersionVector(
        Dictionary(
          uniqueKeysWithValues: (1...UInt64(count)).map {
            (ReplicaID(high: 1, low: $0), ChainPosition(sequence: last, tip: TipHash(high: last, low: $0)))
          }))
    }
    let hash = FakeCryptography.hash
    func taken(_ wanted: UInt64?, count: Int = ToldVectors.leastEntries) -> VersionVector? {
      var told = ToldVectors()
      for last in 1...4 as ClosedRange<UInt64> { told.note(vector(last, count), of: partition) }
      let first = told.take(wanted.map { ToldVectors.mark(of: vector($0, count), hash) }, of: partition, hash)
      // Nothing is kept behind the first pull, whatever that refers to.
      #expect(told.take(ToldVectors.mark(of: vector(4, count), hash), of: partition, hash) == nil)
      return first
    }
    #expect(taken(1) == nil && taken(nil) == nil && taken(9) == nil)
    for last in 2...4 as ClosedRange<UInt64> { #expect(taken(last) == vector(last)) }
    #expect(taken(4, count: ToldVectors.leastEntries - 1) == nil)
    // What says how one differs from the other leads back to it.
    let whole = PartitionVector(name: try PartitionName("agency=x"), vector: vector(2))
    #expect(whole.differing(from: vector(1), hash) == nil)
    var near = vector(2)
    near[ReplicaID(high: 1, low: 2)] = nil
    near[ReplicaID(high: 1, low: 3)] = ChainPosition(sequence: 9, tip: .zero)
    let differing = PartitionVector(name: whole.name, vector: near).differing(from: vector(2), hash)
    #expect(differing?.vector.count == 2 && differing?.whole(on: vector(2)).vector == near)
  }

  @Test(
    "a stream that is asked for once more is asked for with a whole vector, and nothing is kept for that",
    arguments: [true, false])
  func onceMore(toldWhole: Bool) throws {
    let bench = try crowded()
    let id = bench.connected(0, 1)
    try bench.nodes[0].write(2)
    bench.loseMessages()
    // What was announced has not come, and the stream is silent.
    bench.now = bench.now.advanced(byMilliseconds: 5_100)
    let start = bench.transcript.count
    let held = try #require(bench.nodes[0].state?.clipped)
    let told = PartitionVector(name: bench.name, vector: held)
    // A first pull might refer to what `vectors` told, and to nothing else.
    bench.nodes[1].receive(toldWhole ? .vectors([told]) : .have(told), on: id)
    let asked = pulls(bench, since: start)
    try #require(asked.count == 1 && asked.allSatisfy { $0.base == nil && $0.vector.count > Self.otherReplicas })
    bench.run()
    #expect(pulls(bench, since: start) == asked)
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 2)
    let pulled = try #require(asked.first?.vector)
    var kept = try #require(bench.nodes[1].mesh.sessions[id]?.live?.told)
    let mark = ToldVectors.mark(of: pulled, FakeCryptography.hash)
    #expect(kept.take(mark, of: bench.partition, FakeCryptography.hash) == nil)
  }

  @Test("of a vector with replicas that nobody declared no base is kept: the first context is whole")
  func undeclared() throws {
    let bench = try crowded()
    let id = bench.connected(0, 1)
    var held = try #require(bench.nodes[1].state?.clipped)
    held[bench.nodes[1].replica] = nil
    for (stream, isStrange) in [(70, true), (71, false)] as [(UInt64, Bool)] {
      let start = bench.transcript.count
      held[ReplicaID(high: 7, low: 7)] = isStrange ? ChainPosition(sequence: 1, tip: .zero) : nil
      bench.nodes[1].receive(.pull(stream: stream, PartitionVector(name: bench.name, vector: held)), on: id)
      let first = contexts(bench, since: start).first
      #expect(first.map { if case .full = $0 { true } else { false } } == isStrange)
    }
  }

  @Test("between the parts of a vector none comes that says how it differs")
  func betweenParts() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    func part(_ low: UInt64, base: UInt64?, hasMore: Bool) -> Message {
      let vector = VersionVector([ReplicaID(high: 7, low: low): ChainPosition(sequence: 1, tip: .zero)])
      return .pull(stream: 70, PartitionVector(name: bench.name, vector: vector, hasMore: hasMore, base: base))
    }
    bench.nodes[0].receive(part(1, base: nil, hasMore: true), on: id)
    #expect(bench.nodes[0].mesh.sessions[id] != nil)
    bench.nodes[0].receive(part(2, base: 5, hasMore: false), on: id)
    #expect(bench.nodes[0].mesh.sessions[id] == nil)
  }
}
