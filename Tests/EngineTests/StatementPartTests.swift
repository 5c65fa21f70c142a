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
}
