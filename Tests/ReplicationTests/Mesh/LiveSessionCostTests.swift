import Testing

@testable import Replication
@testable import Simulation

@Suite("What a change of one stream costs where a session has many") struct LiveSessionCostTests {
  private let now = MonotonicTime(milliseconds: 1_000)

  private func partition(_ number: Int) -> PartitionID { PartitionID(Digest(words: (UInt64(number), 0, 0, 1))) }

  private func mesh(streams count: Int) throws -> (Mesh, SessionID) {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    var mesh = bench.nodes[0].mesh
    for number in 0..<count {
      mesh.sessions[id]?.live?.streams[partition(number)] = PeerStream(bench.name, number: 1, now: now)
    }
    return (mesh, id)
  }

  /// For two thousand times: a stream makes progress, is asked for anew, and is looked at when there is room to send.
  private func seconds(_ count: Int) throws -> Double {
    var (mesh, id) = try mesh(streams: count)
    var step = Step(Surroundings(now: now), MeshConfiguration())
    let start = threadSeconds()
    for turn in 0..<2_000 {
      let partition = partition(turn % 100)
      mesh.sessions[id]?.live?.streams[partition]?.incoming.noteProgress(now)
      mesh.sessions[id]?.pull(partition, mesh.ledger, &step)
      mesh.sessions[id]?.pump(partition, mesh.ledger, &step)
    }
    return threadSeconds() - start
  }

  /// Of three times: what else goes on in the caches only ever adds.
  private func least(_ count: Int) throws -> Double {
    try min(seconds(count), seconds(count), seconds(count))
  }

  @Test("it does not grow with the streams, so that none of them is copied")
  func changes() throws {
    let (few, many) = (try least(100), try least(10_000))
    #expect(many < few * 5, "\(few) s, \(many) s")
  }
}
