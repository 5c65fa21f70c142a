import Testing

@testable import Replication

@Suite("Chains: conformance vectors")
struct ChainsConformanceTests {
  private struct Case {
    let name: String
    let partition: PartitionName
    let genesis: [ReplicaID: Digest]
    let statements: [Statement]
    let limit: Int
    let runs: [(run: RunSummary, content: Bool)]
    let expect: [String: Any]
    let deliver: [(run: RunSummary, verdict: [String])]

    init(_ json: [String: Any]) throws {
      name = try ChainsVectors.string(json["name"])
      let partition = try PartitionName(ChainsVectors.name(json["partition"]))
      let hashes: [String: String] = try ChainsVectors.cast(json["genesis"])
      genesis = Dictionary(
        uniqueKeysWithValues: try hashes.map { (Named.replica($0), try ChainsVectors.hash($1)) })
      statements = try ChainsVectors.statements(of: json)
      limit = ChainsVectors.limit(of: json)
      runs =
        try ChainsVectors.objects(json["runs"]).map { (try ChainsVectors.run($0, in: partition), true) }
        + ChainsVectors.objects(json["headers"]).map { (try ChainsVectors.run($0, in: partition), false) }
      expect = try ChainsVectors.cast(json["expect"])
      deliver = try ChainsVectors.objects(json["deliver"]).map {
        (try ChainsVectors.run(ChainsVectors.cast($0["run"]), in: partition), try ChainsVectors.cast($0["verdict"]))
      }
      self.partition = partition
    }

    func keeper(folds: Bool, using random: inout ChainsRandom, authority: Authority) throws -> ChainsKeeper {
      let genesis = genesis
      var keeper = ChainsKeeper(partition, authority: authority, folds: folds) { genesis[$0] ?? .zero }
      for (run, content) in runs.shuffled(using: &random) { try keeper.learn(run, content: content) }
      return keeper
    }
  }

  @Test("received, accepted, held, effective, forks, bounds and verdicts, in any order, folded or not")
  func acceptance() throws {
    var (random, count) = (ChainsRandom(seed: 2026), 0)
    for json in try ChainsVectors.cases("accept") {
      let entry = try Case(json)
      count += 1
      for round in 0..<8 {
        let authority = Authority(named: entry.statements.shuffled(using: &random), limit: entry.limit)
        var keeper = try entry.keeper(folds: round % 2 == 0, using: &random, authority: authority)
        try check(keeper, entry)
        for (run, verdict) in entry.deliver {
          let given = try describe(keeper.deliver(run))
          let asked = ["refuse", "error"].contains(verdict[0]) ? verdict : [verdict[0], ""]
          #expect(given == asked, "\(entry.name)")
        }
      }
    }
    #expect(count == 234)
  }

  @Test("statements that arrive between the runs, one by one, lead to the same state")
  func statementsInBetween() throws {
    var random = ChainsRandom(seed: 7)
    for json in try ChainsVectors.cases("accept") {
      let entry = try Case(json)
      for _ in 0..<4 {
        let genesis = entry.genesis
        var keeper = ChainsKeeper(entry.partition, authority: Authority(named: [])) { genesis[$0] ?? .zero }
        enum Event { case statement(Statement), run(RunSummary, Bool) }
        let events = entry.statements.map(Event.statement) + entry.runs.map { .run($0.run, $0.content) }
        var heard: [Statement] = []
        for event in events.shuffled(using: &random) {
          switch event {
          case .statement(let statement):
            heard.append(statement)
            try keeper.adopt(Authority(named: heard, limit: entry.limit))
          case .run(let run, let content): try keeper.learn(run, content: content)
          }
        }
        try check(keeper, entry)
      }
    }
  }

  private func check(_ keeper: ChainsKeeper, _ entry: Case) throws {
    let (log, name) = (keeper.log, Comment(rawValue: entry.name))
    #expect(log.received == (try ChainsVectors.vector(entry.expect["received"])), name)
    #expect(log.accepted == (try ChainsVectors.vector(entry.expect["accepted"])), name)
    #expect(log.clipped == (try ChainsVectors.vector(entry.expect["clipped"])), name)
    let held = try ChainsVectors.rows(entry.expect["held"]).map {
      HeldChange(
        dot: Dot(
          replica: Named.replica(try ChainsVectors.string($0[0])), sequence: try ChainsVectors.number($0[1])),
        hash: try ChainsVectors.hash($0[2]),
        reason: try #require(HoldReason(rawValue: try ChainsVectors.string($0[3]))))
    }
    #expect(log.held == held, name)
    let effective = try (try ChainsVectors.cast(entry.expect["effective"]) as [String]).map(ChainsVectors.hash)
    #expect(keeper.effective == Set(effective), name)
    let forks = try ChainsVectors.rows(entry.expect["forks"]).map {
      (Named.replica(try ChainsVectors.string($0[0])), try ChainsVectors.number($0[1]))
    }
    #expect(log.forkPoints == Dictionary(uniqueKeysWithValues: forks), name)
    #expect(forks.isEmpty == log.forkProofs.isEmpty, name)
    for row in try ChainsVectors.rows(entry.expect["bounds"]) {
      let replica = Named.replica(try ChainsVectors.string(row[0]))
      let expected = row.dropFirst().map { $0 is String ? nil : ($0 as? Int).map(UInt64.init) ?? .max }
      #expect(log.authority.bound(of: replica, in: entry.partition).sequence == expected[0], name)
      #expect(log.authority.floor(of: replica, in: entry.partition) == expected[1], name)
    }
  }

  private func describe(_ verdict: Verdict) -> [String] {
    switch verdict {
    case .take: ["take", ""]
    case .have: ["have", ""]
    case .aside: ["aside", ""]
    case .refuse(let refusal): ["refuse", refusal.rawValue]
    case .error(let error): ["error", error.rawValue]
    case .needsHeaders: ["headers", ""]
    }
  }
}
