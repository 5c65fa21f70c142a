import TestSupport
import Testing

@testable import Replication

@Suite("Chains: what a run costs behind many that are held")
struct ChainGrowthTests {
  private let mine = Named.replica("d0.1")

  private func digest(_ word: UInt64) -> Digest { Digest(words: (word, 0, 0, 0)) }

  private func keeper() throws -> ChainsKeeper {
    var book = AuthorityTests.Book()
    book.declare("d0.1", under: book.member("d0"), by: "d0")
    book.grant(.write, to: .everyone, on: "/t")
    return ChainsKeeper(try PartitionName("/t"), authority: book.authority, genesis: ChainsHistory.genesis)
  }

  private func run(_ sequence: UInt64, after word: UInt64?, _ hash: UInt64, isKnown: Bool = true) throws -> RunSummary {
    RunSummary(
      partition: try PartitionName("/t"), replica: mine, first: sequence,
      hashBefore: word.map(digest) ?? ChainsHistory.genesis(mine), hashes: [digest(hash)], context: VersionVector(),
      signer: Named.key("d0"), facts: [ChangeFacts(recognition: isKnown ? .known : .unknownCodec)])
  }

  @Test(
    "a run at the end of a held or forked chain is counted without a look at the branch, and counts as if there were one"
  )
  func end() throws {
    for isForked in [false, true] {
      var keeper = try keeper()
      try keeper.learn(run(1, after: nil, 1))
      if isForked {
        try keeper.learn(run(2, after: 1, 900))
      }
      try keeper.learn(run(2, after: 1, 2, isKnown: isForked))
      for sequence in UInt64(3)...40 {
        let next = try run(sequence, after: sequence - 1, sequence)
        #expect(keeper.log.chains[mine]?.endsBefore(next) == true)
        try keeper.learn(next)
        var settled = try #require(keeper.log.chains[mine])
        let before = settled
        #expect(settled.settle(mine) == nil)
        #expect(settled.received == before.received && settled.accepted == before.accepted)
        #expect(settled.branch == before.branch && settled.held(mine) == before.held(mine))
      }
      #expect(keeper.log.received.sequence(of: mine) == 40)
      #expect(keeper.log.accepted.sequence(of: mine) == (isForked ? 40 : 1))
      // Beside the branch, or behind what is missing, everything is looked at.
      #expect(try keeper.log.chains[mine]?.endsBefore(run(40, after: 39, 901)) == false)
      #expect(try keeper.log.chains[mine]?.endsBefore(run(42, after: 41, 42)) == false)
    }
  }

  @Test("what lies beside the chosen branch is found by its forks, and is what is not on the branch")
  func beside() throws {
    var keeper = try keeper()
    try keeper.learn(run(1, after: nil, 1))
    for (sequence, before, hash) in [
      (2, 1, 2), (2, 1, 50), (3, 50, 51), (3, 50, 52), (4, 52, 53), (3, 2, 3), (3, 2, 60),
    ]
      as [(UInt64, UInt64, UInt64)]
    {
      try keeper.learn(run(sequence, after: before, hash))
      let chain = try #require(keeper.log.chains[mine])
      let expected = [1, 2, 3, 50, 51, 52, 53, 60].map(digest).filter(chain.tree.contains)
      #expect(Set(chain.beside.map(\.hash)) == Set(expected).subtracting(chain.branch))
      #expect(chain.beside.count == Set(expected).subtracting(chain.branch).count)
    }
    #expect(keeper.log.chains[mine]?.beside.count == 5)
  }

  @Test("what a held change says beside its hash counts as so many changes more, and of what counts nothing does")
  func weight() throws {
    let named = OwnDocument(user: "u", otherFields: Set((0..<100).map { Text("field number \($0)") }))
    var keeper = try keeper()
    func said(_ sequence: UInt64, _ document: OwnDocument?, isKnown: Bool) throws -> RunSummary {
      let run = try run(sequence, after: sequence > 1 ? sequence - 1 : nil, sequence)
      return RunSummary(
        partition: run.partition, replica: run.replica, first: run.first, hashBefore: run.hashBefore,
        hashes: run.hashes,
        context: run.context, signer: run.signer,
        facts: [ChangeFacts(recognition: isKnown ? .known : .unknownCodec, ownDocument: document)])
    }
    try keeper.learn(said(1, named, isKnown: true))
    #expect(keeper.log.heldCounts[mine] == nil)
    try keeper.learn(said(2, nil, isKnown: false))
    #expect(keeper.log.heldCounts[mine] == 1)
    try keeper.learn(said(3, named, isKnown: true))
    // 100 names of some 14 bytes, and 48 bytes beside each.
    #expect((30...60).contains(keeper.log.heldCounts[mine] ?? 0))
  }

  @Test("vectors are compared, joined and told apart as if each entry were looked up")
  func vectors() {
    var random = SplitMix64(seed: 5)
    func vector() -> [ReplicaID: ChainPosition] {
      Dictionary(
        (0..<Int.random(in: 0...24, using: &random)).map { _ in
          let sequence = UInt64.random(in: 1...4, using: &random)
          return (
            ReplicaID(high: 1, low: .random(in: 0..<24, using: &random)),
            ChainPosition(sequence: sequence, tip: TipHash(high: sequence, low: .random(in: 0...1, using: &random)))
          )
        }
      ) { first, _ in first }
    }
    for _ in 0..<500 {
      let (a, b) = (vector(), vector())
      let (mine, theirs) = (VersionVector(a), VersionVector(b))
      #expect(mine.entries.mapValues { $0 } == a && mine.count == a.count)
      #expect(mine.sorted.map(\.replica) == a.keys.sorted())
      #expect(mine.exceeding(theirs).map(\.replica) == a.filter { $1.sequence > b[$0]?.sequence ?? 0 }.keys.sorted())
      var joined = mine
      joined.join(theirs)
      let expected = a.merging(b) { $1.sequence > $0.sequence ? $1 : $0 }
      #expect(joined == VersionVector(expected))
      var led = theirs
      for (replica, position) in mine.differing(from: theirs) { led[replica] = position }
      #expect(led == mine)
      #expect(ContextForm.shorter(mine, base: theirs).resolved(on: theirs) == mine)
    }
  }
}
