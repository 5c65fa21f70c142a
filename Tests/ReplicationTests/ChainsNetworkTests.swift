import Testing

@testable import Replication

@Suite("Chains: nodes that meet in pairs")
struct ChainsNetworkTests {
  @Test("nobody sends what the peer must take for an error, and all come to accept the same", arguments: 0..<4)
  func convergence(part: UInt64) throws {
    var (taken, forks, setAside, bounded) = (0, 0, 0, 0)
    for seed in part * 15..<part * 15 + 15 {
      var network = try ChainsNetwork(seed: seed)
      do {
        for _ in 0..<70 { try network.step() }
        try network.settle()
      } catch let complaint as ChainsNetwork.Complaint {
        Issue.record("seed \(seed): \(complaint)")
        continue
      }
      let logs = network.nodes.map(\.keeper.log)
      for log in logs.dropFirst() {
        #expect(log.accepted == logs[0].accepted, "seed \(seed)")
        #expect(log.clipped == logs[0].clipped, "seed \(seed)")
        #expect(countingForks(log) == countingForks(logs[0]), "seed \(seed)")
      }
      taken += network.taken
      setAside += network.setAside
      forks += countingForks(logs[0]).count
      bounded += logs.contains { $0.clipped != $0.received } ? 1 : 0
    }
    #expect(taken > 300 && setAside > 0 && forks > 0 && bounded > 0, "too little happened to show anything")
  }

  /// What lies above a bound is announced to nobody, so that forks there need not be known everywhere.
  private func countingForks(_ log: PartitionLog) -> [ReplicaID: UInt64] {
    log.forkPoints.filter { $0.value < log.bound(of: $0.key) }
  }
}
