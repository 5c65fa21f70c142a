import Testing

@testable import Replication

@Suite("Chains: bounds of rights and of memory")
struct ChainsBoundTests {
  private let mine = Named.replica("d0.1")
  private let other = Named.replica("d1.1")
  private let again = Named.replica("d0.2")

  private func digest(_ word: UInt64) -> Digest { Digest(words: (word, 0, 0, 0)) }

  private func entry(_ sequence: UInt64, _ word: UInt64) -> ChainPosition {
    ChainPosition(sequence: sequence, tip: digest(word).tip)
  }

  /// d0 and d1 may write `/t`.
  private func book() -> AuthorityTests.Book {
    var book = AuthorityTests.Book()
    for device in ["d0", "d1"] {
      let member = book.member(device)
      for nonce in ["1", "2"] { book.declare("\(device).\(nonce)", under: member, by: device) }
    }
    book.grant(.write, to: .everyone, on: "/t")
    return book
  }

  private func keeper(_ book: AuthorityTests.Book? = nil) throws -> ChainsKeeper {
    let authority = (book ?? self.book()).authority
    return ChainsKeeper(try PartitionName("/t"), authority: authority, genesis: ChainsHistory.genesis)
  }

  private func run(
    _ replica: ReplicaID, after: (UInt64, UInt64)? = nil, _ hashes: [UInt64], context: VersionVector = VersionVector(),
    facts: ChangeFacts = ChangeFacts()
  ) throws -> RunSummary {
    RunSummary(
      partition: try PartitionName("/t"), replica: replica, first: (after?.0 ?? 0) + 1,
      hashBefore: after.map { digest($0.1) } ?? ChainsHistory.genesis(replica), hashes: hashes.map(digest),
      context: context, signer: Named.key(String(Named.name(replica.bytes).prefix(2))),
      facts: hashes.map { _ in facts })
  }

  // MARK: Rights

  @Test("of a run that crosses what a lowering lets stand the lower part counts; one above is kept and does not count")
  func lowered() throws {
    var book = book()
    let end = Statement.PartitionEnds(
      partition: "/t", chains: [Statement.ChainEnd(replica: mine, position: entry(2, 11))])
    book.grant(.read, to: .everyone, on: "/t", listing: Statement.Listing(ends: [end]))
    var keeper = try keeper(book)
    try keeper.learn(run(mine, [10]))
    try keeper.learn(run(mine, after: (1, 10), [11, 12]))
    #expect(keeper.log.accepted[mine] == entry(2, 11))
    #expect(keeper.log.held.map(\.reason) == [.aboveLimit])
    #expect(try keeper.deliver(run(mine, after: (3, 12), [13])) == .aside(.aboveBound(.aboveLimit)))
  }

  @Test(
    "what lies above a limit is held for a raise once nothing that counts says any more that the key is in other hands")
  func heldAgain() throws {
    var book = book()
    let member = try #require(book.authority.member(of: Named.key("d0"))).id
    let ends = [
      Statement.PartitionEnds(partition: "/t", chains: [Statement.ChainEnd(replica: mine, position: entry(1, 10))])
    ]
    let said = book.authority.fleetStatements.filter { $0.issuer == Named.key("d0") }
    let tips = said.suffix(1).map { Statement.Tip(issuer: $0.issuer, sequence: $0.sequence, id: $0.id) }
    let listing = Statement.Listing(ends: ends, tips: [Statement.ScopeTips(scope: "", tips: tips)])
    func end(_ reason: Statement.End.Reason) {
      book.say(.end(Statement.End(reason: reason, target: .membership(member), listing: listing)))
    }
    end(.retire)
    let retired = book.authority
    end(.compromised)
    var keeper = try keeper(book)
    try keeper.learn(run(mine, [10]))
    try keeper.learn(run(mine, after: (1, 10), [11, 12]))
    try #require(keeper.log.received == VersionVector([mine: entry(3, 12)]))
    #expect(keeper.log.heldAbove.isEmpty && keeper.log.shownEnd(of: mine) == 1)
    try keeper.adopt(retired)
    #expect(keeper.log.heldAbove == VersionVector([mine: entry(3, 12)]) && keeper.log.shownEnd(of: mine) == .max)
    try keeper.adopt(book.authority)
    #expect(keeper.log.heldAbove.isEmpty && keeper.log.shownEnd(of: mine) == 1)
  }

  @Test("a chain that a lowering lists twice stands up to the higher of the two")
  func listedTwice() throws {
    for ends in [[2, 4], [4, 2]] as [[UInt64]] {
      var book = book()
      book.grant(
        .read, to: .everyone, on: "/t",
        listing: Statement.Listing(
          ends: ends.map {
            let end = Statement.ChainEnd(replica: mine, position: entry($0, $0))
            return Statement.PartitionEnds(partition: "/t", chains: [end])
          }))
      #expect(book.authority.bound(of: mine, in: try PartitionName("/t")) == entry(4, 4))
    }
  }

  @Test("what another device signed is refused")
  func otherSigner() throws {
    let keeper = try keeper()
    var run = try run(mine, [10])
    #expect(keeper.log.deliver(run) == .take)
    run = RunSummary(
      partition: run.partition, replica: mine, first: 1, hashBefore: run.hashBefore, hashes: run.hashes,
      context: run.context, signer: Named.key("d1"), facts: run.facts)
    #expect(keeper.log.deliver(run) == .refuse(.wrongSigner))
  }

  @Test(
    "under the rule of all users one writes one's own document, what does not read is not judged, and nobody nothing")
  func allUsers() throws {
    let partition = try PartitionName("all-users=x")
    var book = AuthorityTests.Book()
    book.say(.rule(Statement.Rule(key: "all-users")))
    book.declare("d0.1", under: book.member("d0"), by: "d0")
    let nobody = Statement.Membership(
      device: Named.key("d1"), user: "", label: "", role: "officer", profile: ValueMap())
    book.declare("d1.1", under: book.say(.membership(nobody)), by: "d1")
    func refusal(_ device: String, _ facts: ChangeFacts) -> Refusal? {
      let replica = Named.replica(device + ".1")
      let run = RunSummary(
        partition: partition, replica: replica, first: 1, hashBefore: ChainsHistory.genesis(replica),
        hashes: [digest(1)], context: VersionVector(), signer: Named.key(device), facts: [facts])
      return book.authority.refusal(of: run, genesis: ChainsHistory.genesis(replica))
    }
    #expect(refusal("d0", ChangeFacts(ownDocument: "u-d0")) == nil)
    #expect(refusal("d0", ChangeFacts(ownDocument: "u-d1")) == .documentRule)
    #expect(refusal("d0", ChangeFacts(recognition: .unknownCodec)) == nil)
    #expect(refusal("d1", ChangeFacts(ownDocument: "")) == .noGrant)
  }

  @Test("of two geneses of the root the first counts")
  func firstGenesis() {
    var book = AuthorityTests.Book()
    for name in ["first", "second"] {
      book.say(.genesis(Statement.Genesis(fleetName: Text(name))))
    }
    #expect(book.authority.fleetName == "first")
  }

  // MARK: Forks

  /// d1.1 has two branches above its first change: 5 and 6 count, 11, 12 and 13 are lost.
  private func forked(_ facts: ChangeFacts = ChangeFacts()) throws -> ChainsKeeper {
    var keeper = try keeper()
    try keeper.learn(run(other, [10]))
    try keeper.learn(run(other, after: (1, 10), [11, 12, 13]))
    try keeper.learn(run(other, after: (1, 10), [5]))
    try keeper.learn(run(other, after: (2, 5), [6], facts: facts))
    return keeper
  }

  @Test("what was written in sight of a longer branch that lost is taken: of that chain the fork point is all it needs")
  func longerBranch() throws {
    let keeper = try forked()
    #expect(keeper.log.received[other] == entry(3, 6))
    #expect(keeper.log.deliver(try run(mine, [1], context: VersionVector([other: entry(4, 13)]))) == .take)
    #expect(
      try self.keeper().log.deliver(run(mine, [1], context: VersionVector([other: entry(4, 13)]))) == .error(.context))
  }

  @Test("on a forked chain an entry covers nothing above the fork where it names what does not count")
  func heldEntry() throws {
    let author = Dot(replica: mine, sequence: 1)
    for isHeld in [false, true] {
      let keeper = try forked(ChangeFacts(recognition: isHeld ? .unknownExtension : .known))
      #expect(keeper.log.accepted[other] == (isHeld ? entry(2, 5) : entry(3, 6)))
      let covered = keeper.log.isCovered(
        Dot(replica: other, sequence: 2), by: VersionVector([other: entry(3, 6)]), of: author)
      #expect(covered == !isHeld)
    }
  }

  @Test("an entry that names nothing says nothing, also of a forked chain")
  func emptyEntry() throws {
    #expect(try forked().log.judge(.start, of: other) { _, _ in nil } == .known)
  }

  // MARK: Memory

  @Test("the originals of re-issues stay one by one in memory, from the lowest on, in whatever order they were issued")
  func originalsStay() throws {
    for order in [[2, 3], [3, 2]] as [[UInt64]] {
      var keeper = try keeper()
      for word in 1..<5 as Range<UInt64> {
        try keeper.learn(run(mine, after: word > 1 ? (word - 1, word - 1) : nil, [word]))
      }
      #expect(keeper.log.trunk(of: mine).sequence == 4)
      for (index, sequence) in order.enumerated() {
        let origin = ChangeOrigin(dot: Dot(replica: mine, sequence: sequence), hash: digest(sequence))
        let after = index > 0 ? (UInt64(1), UInt64(20)) : nil
        try keeper.learn(run(again, after: after, [20 + UInt64(index)], facts: ChangeFacts(origin: origin)))
      }
      #expect(keeper.log.trunk(of: mine).sequence == 1)
      #expect(Set(keeper.log.withoutEffect.keys) == [digest(20), digest(21)], "the originals count")
    }
  }

  @Test("where a change begins or ceases to have effect, documents are built anew from it on")
  func effects() throws {
    var change = LogChange()
    change.effects = [EffectChange(dot: Dot(replica: mine, sequence: 4), hash: digest(4), hasEffect: false)]
    #expect(try keeper().log.lowestMoved(by: [change]) == [mine: 3])
  }

  @Test("the latest runs are known again without reading, older ones by their headers")
  func recent() throws {
    var log = try keeper().log
    let count = UInt64(Chain.recentLimit) + 4
    let runs = try (1...count).map { try run(mine, after: $0 > 1 ? ($0 - 1, $0 - 1) : nil, [$0]) }
    for run in runs { _ = log.learn(run) }
    let known = runs.map { log.deliver($0) == .have }
    #expect(known == (1...count).map { $0 > count - UInt64(Chain.recentLimit) })
    #expect(log.deliver(runs[0]) == .needsHeaders(HeaderRequest(replica: mine, sequences: 1...count)))
  }

  @Test("stored runs that do not reach the trunk's end are damage, not a shorter chain")
  func damage() throws {
    var log = try keeper().log
    let runs = try [run(mine, [1]), run(mine, after: (1, 1), [2]), run(mine, after: (2, 2), [3])]
    for run in runs { _ = log.learn(run) }
    let request = HeaderRequest(replica: mine, sequences: 2...3)
    for found in [[], Array(runs.prefix(2)), Array(runs.suffix(1))] {
      #expect(throws: UnfoldError.storedRunsDoNotReachTrunk) { try log.unfold(request, runs: found) }
    }
    try log.unfold(request, runs: runs)
    #expect(log.trunk(of: mine).sequence == 1)
  }
}
