import Testing

@testable import Replication

@Suite("Chains: re-issues, and rights that fall")
struct ChainsEffectTests {
  private func book() -> AuthorityTests.Book {
    var book = AuthorityTests.Book()
    for key: Text in ["agency", "all-users"] { book.say(.rule(Statement.Rule(key: key))) }
    for device in ["d0", "d1"] {
      let member = book.member(device)
      for nonce in ["1", "2"] { book.declare("\(device).\(nonce)", under: member, by: device) }
    }
    return book
  }

  private func keeper(_ partition: PartitionName, _ book: AuthorityTests.Book) -> ChainsKeeper {
    ChainsKeeper(partition, authority: book.authority, genesis: ChainsHistory.genesis)
  }

  private func digest(_ word: UInt64) -> Digest { Digest(words: (word, 0, 0, 0)) }

  /// One change; `before`: the hash it follows, none for the first of its chain.
  private func run(
    _ partition: PartitionName, _ replica: String, _ sequence: UInt64, after before: UInt64?, _ hash: UInt64,
    facts: ChangeFacts = ChangeFacts()
  ) -> RunSummary {
    let replica = Named.replica(replica)
    return RunSummary(
      partition: partition, replica: replica, first: sequence,
      hashBefore: before.map(digest) ?? ChainsHistory.genesis(replica), hashes: [digest(hash)],
      context: VersionVector(), signer: Named.key(String(Named.name(replica.bytes).prefix(2))), facts: [facts])
  }

  @Test("of an original and its device's re-issues one has effect: the original, else the lowest")
  func effects() throws {
    let partition = try PartitionName("agency=A")
    var keeper = keeper(partition, book())
    let origin = ChangeOrigin(dot: Dot(replica: Named.replica("d0.1"), sequence: 2), hash: digest(20))
    let again = ChangeFacts(origin: origin)
    try keeper.learn(run(partition, "d0.1", 1, after: nil, 10))
    try keeper.learn(run(partition, "d0.1", 2, after: 10, 20))
    try keeper.learn(run(partition, "d0.2", 1, after: nil, 31, facts: again))
    try keeper.learn(run(partition, "d1.1", 1, after: nil, 40, facts: again))
    #expect(keeper.effective == [digest(10), digest(20), digest(40)], "the original counts; nobody speaks for others")

    try keeper.learn(run(partition, "d0.1", 2, after: 10, 15))
    #expect(keeper.effective == [digest(10), digest(15), digest(31), digest(40)], "the original lost its branch")
    #expect(keeper.log.withoutEffect.isEmpty)

    try keeper.learn(run(partition, "d0.2", 2, after: 31, 30, facts: again))
    #expect(keeper.effective == [digest(10), digest(15), digest(30), digest(40)], "of two re-issues the lowest")
    #expect(keeper.log.withoutEffect == [digest(31): Dot(replica: Named.replica("d0.2"), sequence: 1)])
    try keeper.restart()
    #expect(keeper.log.withoutEffect.count == 1)
  }

  /// d0.1 has two branches above change 1: 15 counts; 20, then 21, are lost.
  private func forked(_ partition: PartitionName) throws -> ChainsKeeper {
    var keeper = keeper(partition, book())
    try keeper.learn(run(partition, "d0.1", 1, after: nil, 10))
    try keeper.learn(run(partition, "d0.1", 2, after: 10, 20))
    try keeper.learn(run(partition, "d0.1", 3, after: 20, 21))
    try keeper.learn(run(partition, "d0.1", 2, after: 10, 15))
    return keeper
  }

  private func dot(_ replica: String, _ sequence: UInt64) -> Dot {
    Dot(replica: Named.replica(replica), sequence: sequence)
  }

  /// A write below the list element that `inserter` made.
  private func edit(_ inserter: Dot) -> DocumentWrite {
    let element = PathSegment.element(ListElement(position: [7], dot: inserter))
    return DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 1,
      operations: [Operation(.set, [.key("list"), element], value: .int(5))])
  }

  @Test("a lost change is owed until a re-issue of it counts, and again when that is lost, once per original")
  func owed() throws {
    let partition = try PartitionName("agency=A")
    var keeper = try forked(partition)
    #expect(keeper.log.lostChanges { _ in true }.map(\.hash) == [digest(20), digest(21)])
    #expect(keeper.log.lostChanges { _ in false } == [])
    let again = ChangeFacts(origin: ChangeOrigin(dot: dot("d0.1", 2), hash: digest(20)))
    try keeper.learn(run(partition, "d0.2", 1, after: nil, 40, facts: again))
    #expect(keeper.log.lostChanges { _ in true }.map(\.hash) == [digest(21)])
    // The replica of the re-issue forks, too: 30 counts there now.
    try keeper.learn(run(partition, "d0.2", 1, after: nil, 30))
    #expect(keeper.log.lostChanges { _ in true }.map(\.hash) == [digest(20), digest(21)])
  }

  @Test("what is issued again names list elements of the lost branch under the dots of their re-issues")
  func renaming() throws {
    let partition = try PartitionName("agency=A")
    var keeper = try forked(partition)
    let lost = [LostChange(dot: dot("d0.1", 3), hash: digest(21), writes: [edit(dot("d0.1", 2))])]
    let next = dot("d0.2", 2)
    #expect(keeper.log.reissue(lost, of: VersionVector(), as: next, after: VersionVector()) == nil, "not there yet")

    let again = ChangeFacts(origin: ChangeOrigin(dot: dot("d0.1", 2), hash: digest(20)))
    try keeper.learn(run(partition, "d0.2", 1, after: nil, 40, facts: again))
    let issued = try #require(keeper.log.reissue(lost, of: VersionVector(), as: next, after: VersionVector()))
    #expect(issued.writes == [[edit(dot("d0.2", 1))]])
    #expect(issued.context == VersionVector([Named.replica("d0.1"): ChainPosition(sequence: 1, tip: digest(10).tip)]))

    // Named below the fork, or on the branch that counts, an element stands as it was.
    let kept = [LostChange(dot: dot("d0.1", 3), hash: digest(21), writes: [edit(dot("d0.1", 1))])]
    #expect(
      keeper.log.reissue(kept, of: VersionVector(), as: next, after: VersionVector())?.writes == kept.map(\.writes))
  }

  @Test("what a lost branch shares with the one that counts, above another fork, is no loss: it is named as it was")
  func sharedAboveAFork() throws {
    let partition = try PartitionName("agency=A")
    var keeper = keeper(partition, book())
    // Of three branches one parts at change 1, and two at change 2, which counts.
    try keeper.learn(run(partition, "d0.1", 1, after: nil, 10))
    try keeper.learn(run(partition, "d0.1", 2, after: 10, 20))
    try keeper.learn(run(partition, "d0.1", 2, after: 10, 90))
    try keeper.learn(run(partition, "d0.1", 3, after: 20, 30))
    try keeper.learn(run(partition, "d0.1", 3, after: 20, 31))
    #expect(keeper.log.lostChanges { _ in true }.map(\.hash) == [digest(90), digest(31)])
    let lost = [LostChange(dot: dot("d0.1", 3), hash: digest(31), writes: [edit(dot("d0.1", 2))])]
    let issued = keeper.log.reissue(lost, of: VersionVector(), as: dot("d0.2", 1), after: VersionVector())
    #expect(issued?.writes == [[edit(dot("d0.1", 2))]])
    #expect(issued?.context == VersionVector([Named.replica("d0.1"): ChainPosition(sequence: 2, tip: digest(20).tip)]))
  }

  @Test("what is off the branch that counts has no effect, though of its branch too little is here to tell the fork")
  func offTheBranch() throws {
    let partition = try PartitionName("agency=A")
    var keeper = keeper(partition, book())
    try keeper.learn(run(partition, "d0.1", 1, after: nil, 10))
    try keeper.learn(run(partition, "d0.1", 2, after: 10, 20))
    try keeper.learn(run(partition, "d0.1", 3, after: 20, 30))
    // The run before it is stored, and does not read.
    keeper.log.noteIncomplete(Named.replica("d0.1"))
    try keeper.learn(run(partition, "d0.1", 3, after: 25, 35))
    #expect(keeper.log.forkPoints.isEmpty && keeper.log.accepted.sequence(of: Named.replica("d0.1")) == 3)
    #expect(keeper.log.hasEffect(digest(30), at: dot("d0.1", 3)))
    #expect(!keeper.log.hasEffect(digest(35), at: dot("d0.1", 3)))
    #expect(keeper.log.hasEffect(digest(20), at: dot("d0.1", 2)))
  }

  @Test("where a chain has forked, documents are built anew from the fork on, however little moved")
  func lowest() throws {
    let partition = try PartitionName("agency=A")
    let keeper = try forked(partition)
    var change = LogChange()
    change.acceptance = [AcceptanceChange(replica: Named.replica("d0.1"), shared: 2, lost: [], gained: [digest(16)])]
    #expect(keeper.log.lowestMoved(by: [change]) == [Named.replica("d0.1"): 1])
    change.acceptance = [AcceptanceChange(replica: Named.replica("d1.1"), shared: 2, lost: [], gained: [digest(16)])]
    #expect(keeper.log.lowestMoved(by: [change]) == [Named.replica("d1.1"): 2])
  }

  @Test("where a grant falls, the document rule judges what it had let through")
  func fallenGrant() throws {
    let partition = try PartitionName("all-users=x")
    let replica = Named.replica("d0.1")
    var book = book()
    let user = Statement.Subject.user("u-d0")
    book.grant(.write, to: user, on: "all-users=*")
    var keeper = keeper(partition, book)
    try keeper.learn(run(partition, "d0.1", 1, after: nil, 10))
    try keeper.learn(run(partition, "d0.1", 2, after: 10, 20))
    try keeper.learn(run(partition, "d0.1", 3, after: 20, 30, facts: ChangeFacts(ownDocument: "u-d0")))
    #expect(keeper.log.accepted.sequence(of: replica) == 3 && keeper.log.nodeCount == 0)

    let end = Statement.ChainEnd(replica: replica, position: ChainPosition(sequence: 1, tip: digest(10).tip))
    let group = Statement.PartitionEnds(partition: partition.text, chains: [end])
    book.grant(.read, to: user, on: "all-users=*", listing: Statement.Listing(ends: [group]))
    try keeper.adopt(book.authority)
    #expect(keeper.log.accepted.sequence(of: replica) == 1)
    #expect(keeper.log.held.map(\.reason) == [.documentRule, .afterHeld])
    #expect(keeper.log.clipped.sequence(of: replica) == 3, "the rule itself bounds nothing")

    book.grant(.write, to: user, on: "all-users=*")
    try keeper.adopt(book.authority)
    #expect(keeper.log.accepted.sequence(of: replica) == 3 && keeper.log.nodeCount == 0)
  }

  @Test("own documents need no second look when a grant falls")
  func ownDocuments() throws {
    let partition = try PartitionName("all-users=x")
    var book = book()
    book.grant(.write, to: .everyone, on: "all-users=*")
    var keeper = keeper(partition, book)
    try keeper.learn(run(partition, "d0.1", 1, after: nil, 10, facts: ChangeFacts(ownDocument: "u-d0")))
    try keeper.learn(run(partition, "d1.1", 1, after: nil, 40, facts: ChangeFacts(ownDocument: "u-d0")))
    book.grant(.none, to: .everyone, on: "all-users=*")
    try keeper.adopt(book.authority)
    #expect(keeper.unfolded == 1, "the chain that wrote another's document")
    #expect(keeper.effective == [digest(10)])
  }
}
