import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: vectors of any size, and what they name") struct MeshVectorTests {
  private let name: PartitionName

  init() throws { name = try PartitionName("agency=Galapagos") }

  private func vector(_ count: Int) -> VersionVector {
    VersionVector(
      Dictionary(
        (0..<UInt64(count)).map {
          (ReplicaID(high: 1, low: $0), ChainPosition(sequence: 1 << 52, tip: TipHash(high: .max, low: $0)))
        }
      ) { first, _ in first })
  }

  private func whole(_ parts: [PartitionVector]) -> PartialVector? {
    guard var partial = parts.first.flatMap({ PartialVector($0, in: .have) }) else { return nil }
    return parts.dropFirst().allSatisfy { partial.append($0, in: .have) } ? partial : nil
  }

  @Test(
    "a vector of any size travels in messages that are read, and is put together again",
    arguments: [1, 4_096, 4_097, 65_536])
  func parts(count: Int) throws {
    let staged = [StagedPayload(hash: .zero, byteCount: 1)]
    let item = PartitionVector(name: name, vector: vector(count), staged: staged)
    let read = try item.parts.map { part -> PartitionVector in
      guard case .pull(5, let read)? = try MessageCodec.decode(MessageCodec.encode(.pull(stream: 5, part))[...]) else {
        throw CBORError(.unexpectedType, at: 0)
      }
      return read
    }
    #expect(read.count == (count + 4_095) / 4_096 && read.map(\.hasMore) == read.indices.map { $0 < read.count - 1 })
    #expect(whole(read)?.whole.vector == item.vector && whole(read)?.whole.staged == staged)
  }

  @Test("of a vector that nobody would take no more is sent than is taken")
  func tooLong() throws {
    let parts = PartitionVector(name: name, vector: vector(PartitionVector.wholeEntryLimit + 1)).parts
    #expect(whole(parts)?.whole.vector.count == PartitionVector.wholeEntryLimit && parts.last?.hasMore == false)
  }

  @Test("messages of many vectors are filled, stay within what is read, and keep the parts of one together")
  func batches() throws {
    let sizes = [3_000, 1_000, 97, 4_097, 1, 0, 9_000]
    let batches = PartitionVector.batches(sizes.map { PartitionVector(name: name, vector: vector($0)) })
    #expect(
      batches.map { $0.map(\.vector.count) } == [[3_000, 1_000], [97], [4_096], [1, 1, 0], [4_096], [4_096], [808]])
    for batch in batches {
      #expect(try MessageCodec.decode(MessageCodec.encode(.vectors(batch))[...]) == .vectors(batch))
    }
  }

  @Test("more entries in a message than its bound are refused", arguments: [false, true])
  func tooManyEntries(isOneVector: Bool) {
    let sizes = isOneVector ? [4_097] : [4_000, 97]
    let message = Message.vectors(sizes.map { PartitionVector(name: name, vector: vector($0)) })
    #expect(throws: CBORError.self) { try MessageCodec.decode(MessageCodec.encode(message)[...]) }
  }

  /// Node 0 is live; node 1's replica is the highest of those that the parts name.
  private func pair() throws -> (MeshBench, SessionID, [PartitionVector]) {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    var vector = vector(5_000)
    vector[bench.nodes[1].replica] = ChainPosition(sequence: 3, tip: .zero)
    return (bench, id, PartitionVector(name: bench.name, vector: vector).parts)
  }

  @Test("nothing follows from a part before the last is here, in whatever message it comes")
  func awaited() throws {
    for carrier in [{ Message.vectors([$0]) }, { .have($0) }, { .pull(stream: 4, $0) }]
      as [(PartitionVector) -> Message]
    {
      let (bench, id, parts) = try pair()
      let start = bench.transcript.count
      bench.nodes[0].receive(carrier(parts[0]), on: id)
      #expect(bench.transcript.count == start && bench.nodes[0].mesh.sessions[id]?.live?.streams.isEmpty == true)
      bench.nodes[0].receive(carrier(parts[1]), on: id)
      #expect(bench.said(from: 0, to: 1, since: start) == ["pull"])
      // Of replicas that nobody declares nothing is kept.
      let known = bench.nodes[0].mesh.sessions[id]?.live?.streams[bench.partition]?.known
      #expect(known?.entries.keys.sorted() == [bench.nodes[1].replica])
      #expect(bench.nodes[0].mesh.partitions.isEmpty && bench.nodes[0].mesh.footprint.awaitedStreams == 1)
    }
  }

  @Test("what does not go on from the part before ends the session")
  func broken() throws {
    let (_, _, parts) = try pair()
    let other = try PartitionName("agency=Other")
    var (renamed, endless) = (parts[1], parts[1])
    (renamed.name, endless.hasMore) = (other, true)
    let wrong: [[Message]] = [
      [.have(parts[0]), .have(parts[0])], [.have(parts[0]), .vectors([parts[1]])], [.have(parts[0]), .have(renamed)],
      [.pull(stream: 4, parts[0]), .pull(stream: 5, parts[1])], [.vectors([parts[0], parts[1]])],
      [.have(PartitionVector(name: other, vector: VersionVector(), hasMore: true))],
      [.have(parts[0]), .have(endless), .have(parts[1])],
    ]
    for messages in wrong {
      let (bench, id, _) = try pair()
      for message in messages.dropLast() {
        bench.nodes[0].receive(message, on: id)
        #expect(bench.nodes[0].mesh.sessions[id] != nil)
      }
      bench.nodes[0].receive(messages[messages.count - 1], on: id)
      #expect(bench.nodes[0].mesh.sessions[id] == nil, "\(messages.count)")
    }
  }

  @Test("a peer asks once what is wanted; a second question ends the session")
  func interestAskedTwice() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    bench.nodes[0].receive(.interestRequest, on: id)
    #expect(bench.messages(from: 0, to: 1).last == .interest(bench.nodes[0].mesh.interest))
    bench.nodes[0].receive(.interestRequest, on: id)
    #expect(bench.nodes[0].mesh.sessions[id] == nil)
  }

  @Test("of partitions that are not here so many are awaited on a session and no more")
  func awaitedPartitions() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let vector = VersionVector([bench.nodes[1].replica: ChainPosition(sequence: 1, tip: .zero)])
    for number in 0..<LiveSession.awaitedPartitionLimit {
      bench.nodes[0].mesh.sessions[id]?.live?.streams[PartitionID(Digest(words: (UInt64(number), 1, 2, 3)))] =
        PeerStream(
          bench.name, now: bench.now)
    }
    bench.nodes[0].receive(.have(PartitionVector(name: try PartitionName("agency=x"), vector: vector)), on: id)
    #expect(bench.nodes[0].mesh.sessions[id]?.live?.streams.count == LiveSession.awaitedPartitionLimit)
  }

  @Test("a run that is not kept begins no partition")
  func refusedRun() throws {
    let bench = try MeshBench([0, 1], rights: .byUser)
    let id = bench.connected(0, 1)
    let run = try bench.nodes[1].write(1)
    bench.loseMessages()
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    bench.nodes[0].receive(.runs(RunBatch(name: bench.name, stream: 0, entries: [entry])), on: id)
    #expect(bench.nodes[0].mesh.partitions.isEmpty && bench.nodes[0].mesh.sessions[id] != nil)
    let leftOut = bench.nodes[0].mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.leftOut.all
    #expect(leftOut == [bench.nodes[1].replica])
  }
}
