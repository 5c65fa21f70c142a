import Testing

@testable import Replication

@Suite("Chains: random histories")
struct ChainsHistoryTests {
  @Test("any order of runs and statements, folded or not, gives one state", arguments: 0..<8)
  func orderIndependence(part: UInt64) throws {
    var unfolded = 0
    for seed in part * 50..<part * 50 + 50 {
      let history = try ChainsHistory(seed: seed)
      var random = ChainsRandom(seed: seed ^ 0xfeed)
      let reference = try ChainsKeeper(history, history.events, folds: false)
      for folds in [true, true, true, false] {
        let keeper = try ChainsKeeper(history, history.events.shuffled(using: &random), folds: folds)
        expectSame(keeper, reference, seed: seed)
        unfolded += keeper.unfolded
      }
    }
    #expect(unfolded > 0, "no history made the log ask for headers")
  }

  @Test("arrival in order of writing folds all the same", arguments: 0..<4)
  func arrivalInOrder(part: UInt64) throws {
    for seed in part * 100..<part * 100 + 100 {
      let history = try ChainsHistory(seed: seed)
      expectSame(
        try ChainsKeeper(history, history.events, folds: true), try ChainsKeeper(history, history.events, folds: false),
        seed: seed)
    }
  }

  @Test("what is reported as accepted, undone and without effect adds up to the state")
  func reportsAddUp() throws {
    for seed in 1000..<1200 as Range<UInt64> {
      let history = try ChainsHistory(seed: seed)
      var random = ChainsRandom(seed: seed)
      let keeper = try ChainsKeeper(history, history.events.shuffled(using: &random), folds: true)
      #expect(keeper.followedIdle == Set(keeper.log.withoutEffect.keys), "seed \(seed)")
      for (replica, hashes) in keeper.followed {
        #expect(keeper.log.accepted.sequence(of: replica) == UInt64(hashes.count), "seed \(seed)")
        #expect(keeper.log.accepted[replica]?.tip == hashes.last?.tip, "seed \(seed)")
      }
    }
  }

  @Test("a restart from the trunks and what is stored above them changes nothing")
  func restart() throws {
    for seed in 2000..<2200 as Range<UInt64> {
      let history = try ChainsHistory(seed: seed)
      var random = ChainsRandom(seed: seed)
      let events = history.events.shuffled(using: &random)
      var keeper = try ChainsKeeper(history, events, folds: true)
      try keeper.restart()
      for event in events {
        if case .run(let run, let content) = event { try keeper.learn(run, content: content) }
      }
      expectSame(keeper, try ChainsKeeper(history, history.events, folds: false), seed: seed)
    }
  }

  @Test("a chain that nobody forked or holds costs its tip alone")
  func linearChainsCostTheirTip() throws {
    let replica = Named.replica("d0.1")
    let history = try ChainsHistory(seed: 5)
    let authority = Authority(named: history.statements.prefix(9))
    var log = PartitionLog(
      try Named.partition("agency=A"), authority: authority, genesis: ChainsHistory.genesis)
    var (random, previous) = (ChainsRandom(seed: 1), ChainsHistory.genesis(replica))
    for index in 0..<500 as Range<UInt64> {
      let hashes = (0..<64).map { _ in random.digest() }
      let run = RunSummary(
        partition: log.partition, replica: replica, first: index * 64 + 1, hashBefore: previous, hashes: hashes,
        context: VersionVector(), signer: Named.key("d0"))
      previous = hashes[63]
      #expect(log.deliver(run) == .take)
      _ = log.learn(run)
      #expect(log.deliver(run) == .have)
    }
    #expect(log.nodeCount == 0)
    #expect(log.accepted[replica] == ChainPosition(sequence: 32_000, tip: previous.tip))
  }

  private func expectSame(_ keeper: ChainsKeeper, _ reference: ChainsKeeper, seed: UInt64) {
    let (log, expected) = (keeper.log, reference.log)
    #expect(log.received == expected.received, "seed \(seed)")
    #expect(log.accepted == expected.accepted, "seed \(seed)")
    #expect(log.clipped == expected.clipped, "seed \(seed)")
    #expect(log.held == expected.held, "seed \(seed)")
    #expect(log.forkPoints == expected.forkPoints, "seed \(seed)")
    #expect(log.forkProofs == expected.forkProofs, "seed \(seed)")
    #expect(log.withoutEffect == expected.withoutEffect, "seed \(seed)")
    #expect(keeper.effective == reference.effective, "seed \(seed)")
    #expect(log.kin == expected.kin, "seed \(seed)")
    #expect(log.reissuedBranches == expected.reissuedBranches, "seed \(seed)")
  }
}
