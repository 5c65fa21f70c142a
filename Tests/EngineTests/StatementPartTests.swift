import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// Lists that are longer than one statement.
@Suite struct StatementPartTests {
  private func listing(partitions: Int, chains: Int, tips: Int) -> Statement.Listing {
    let ends = (0..<partitions).map { partition in
      Statement.PartitionEnds(
        partition: Text("agency=\(partition)"),
        chains: (0..<chains).map { chain in
          Statement.ChainEnd(
            replica: ReplicaID(high: UInt64(partition), low: UInt64(chain)),
            position: ChainPosition(sequence: 1 << 52, tip: TipHash(high: 1, low: 2)))
        })
    }
    let issuer = PublicKey(SHA256.hash([1]))
    let list = (0..<tips).map { Statement.Tip(issuer: issuer, sequence: UInt64($0) + 1, id: SHA256.hash([UInt8($0)])) }
    return Statement.Listing(ends: ends, tips: [Statement.ScopeTips(scope: "", tips: list)], keep: ["agency=*"])
  }

  private func end(_ listing: Statement.Listing) -> Statement.Body {
    .end(Statement.End(reason: .compromised, target: .membership(SHA256.hash([9])), listing: listing))
  }

  @Test("what fits is one statement, as it was")
  func fits() {
    let body = end(listing(partitions: 3, chains: 5, tips: 2))
    #expect(StatementParts().split(body) == [body])
    #expect(StatementParts().split(.rule(Statement.Rule(key: "agency"))).count == 1)
  }

  @Test("what is longer goes in parts within the limit, all but the last marked, which together list the same")
  func parts() throws {
    let whole = listing(partitions: 40, chains: 1_500, tips: 200)
    let signer = StatementSigner(fleet: FleetID(SHA256.hash([1])), key: SigningKey())
    let bodies = StatementParts().split(end(whole))
    #expect(bodies.count == 3)
    var last: Statement?
    var ends: [Text: [Statement.ChainEnd]] = [:]
    var (tips, keep): ([Statement.Tip], [Text]) = ([], [])
    for (index, body) in bodies.enumerated() {
      // Signing refuses what does not fit.
      let statement = try signer.sign(body, after: last)
      last = statement
      guard case .end(let part) = statement.body else {
        Issue.record("no end")
        return
      }
      #expect(part.listing.more == (index < bodies.count - 1))
      for group in part.listing.ends { ends[group.partition, default: []] += group.chains }
      tips += part.listing.tips.flatMap(\.tips)
      keep += part.listing.keep
    }
    #expect(ends == Dictionary(whole.ends.map { ($0.partition, $0.chains) }) { first, _ in first })
    #expect(tips == whole.tips.flatMap(\.tips) && keep == whole.keep)
  }

  @Test("one part names statements of one device that has said much, and all others where there is room")
  func talkers() throws {
    let keys = (1...4).map { PublicKey(SHA256.hash([$0])) }
    let tips = (0..<12).map { number in
      Statement.Tip(issuer: keys[number % 4], sequence: 1, id: SHA256.hash([UInt8(number)]))
    }
    let groups = ["", "conversation=a"].map { Statement.ScopeTips(scope: $0, tips: tips) }
    let whole = end(Statement.Listing(tips: groups, keep: ["*"]))
    let parts = StatementParts(talkers: Set(keys.prefix(3))).split(whole)
    let listings = parts.compactMap { part -> Statement.Listing? in
      if case .end(let end) = part { end.listing } else { nil }
    }
    #expect(listings.map(\.more) == [true, true, false])
    let inFleet = listings.map { $0.tips.filter(\.scope.utf8.isEmpty).flatMap(\.tips) }
    #expect(inFleet.allSatisfy { Set($0.map(\.issuer)).intersection(keys.prefix(3)).count == 1 })
    for scope in groups.map(\.scope) {
      let told = listings.flatMap(\.tips).filter { $0.scope == scope }.flatMap(\.tips)
      #expect(told.count == tips.count && Set(told) == Set(tips))
    }
    #expect(StatementParts(talkers: [keys[0]]).split(whole).count == 1)
  }

  @Test("what lowers a grant to manage goes in a part for each device that has said much")
  func composed() throws {
    let bench = try EngineBench(3)
    let grant = try bench.statement(
      .grant(Statement.Grant(subject: .everyone, level: .manage, pattern: "*", listing: Statement.Listing())))
    try bench.restart(0, [grant])
    let node = bench.nodes[0]
    var said: [Statement] = []
    for slot in 1...2 { said += try HostileAuthor(bench, slot: slot).declare(Allowance.statementLimit / 2) }
    node.engine.add(said)
    let root = bench.founding.rootKey
    let author = StatementAuthor(key: root.publicKey, sign: root.sign)
    let plan = try node.engine.plan(.grant(.everyone, .read, "*"), authors: [author])
    #expect(plan.statements.count == 2)
  }
}
