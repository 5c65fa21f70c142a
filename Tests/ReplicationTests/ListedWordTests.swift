import TestSupport
import Testing

@testable import Replication

@Suite("Rights: what narrowings list")
struct ListedWordTests {
  private let issuer = Named.key("d0")
  private let signature: Signature

  init() throws { signature = try #require(Signature([UInt8](repeating: 0, count: 64))) }

  private func id(_ number: UInt64) -> Digest { Digest(words: (number, 0, 0, 1)) }

  private func statement(
    _ number: UInt64, after previous: (sequence: UInt64, number: UInt64)?, _ listing: Statement.Listing
  ) -> Statement {
    Statement(
      fleet: FleetID(.zero), issuer: issuer, sequence: (previous?.sequence ?? 0) + 1,
      previous: previous.map { id($0.number) },
      body: .grant(Statement.Grant(subject: .everyone, level: .read, pattern: "x=1", listing: listing)),
      signature: signature, id: id(number), encoded: [])
  }

  private func ends(_ partition: Text, _ chains: [(UInt64, UInt64)]) -> Statement.PartitionEnds {
    Statement.PartitionEnds(
      partition: partition,
      chains: chains.map {
        Statement.ChainEnd(replica: ReplicaID(high: 1, low: $0), position: ChainPosition(sequence: $1, tip: .zero))
      })
  }

  @Test("many that go on from one long part say what it lists, and share it")
  func sharedPart() {
    let many = (0..<1_000 as Range<UInt64>).map { (1_000 - $0, $0 + 1) }
    let part = statement(1, after: nil, Statement.Listing(ends: [ends("b=1", many), ends("a=1", [])], more: true))
    let others = (2..<202 as Range<UInt64>).map {
      statement($0, after: (1, 1), Statement.Listing(ends: [ends("b=1", [(7, 5_000 + $0)])]))
    }
    let admitted = AdmittedStatements([part] + others, root: issuer)
    #expect(admitted.all.count == 201)
    var words = ListedWords(admitted, [part] + others)
    for other in others {
      let word = words.word(of: other)
      #expect(word.position(of: ReplicaID(high: 1, low: 7), in: "b=1")?.sequence == 5_000 + other.id.words.0)
      #expect(word.position(of: ReplicaID(high: 1, low: 9), in: "b=1")?.sequence == 992)
      #expect(word.position(of: ReplicaID(high: 1, low: 1_001), in: "b=1") == nil)
      #expect(word.speaks(of: "a=1") && word.speaks(of: "b=1") && !word.speaks(of: "ab=1"))
    }
    #expect(words.parts.count == 201)
  }

  @Test("what lies at or below a tip of a tree of statements is what a walk from it meets")
  func lines() {
    var random = SplitMix64(seed: 3)
    for _ in 0..<50 {
      var (said, sequences): ([Statement], [UInt64: UInt64]) = ([], [:])
      for number in 1...40 as ClosedRange<UInt64> {
        let lowest = number > 6 ? number - 6 : 1
        let before = number == 1 ? nil : UInt64.random(in: lowest..<number, using: &random)
        let previous = before.map { (sequence: sequences[$0] ?? 0, number: $0) }
        said.append(statement(number, after: previous, Statement.Listing()))
        sequences[number] = said.last?.sequence
      }
      let byID = Dictionary(uniqueKeysWithValues: said.map { ($0.id, $0) })
      let lines = StatementLines(said.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) })
      for tip in said {
        var (walked, next): (Set<Digest>, Digest?) = ([], tip.id)
        while let id = next {
          walked.insert(id)
          next = byID[id]?.previous
        }
        #expect(Set(said.map(\.id).filter { lines.isCovered($0, by: tip.id) }) == walked)
      }
    }
  }
}
