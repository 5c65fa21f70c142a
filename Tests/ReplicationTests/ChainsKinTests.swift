import Testing

@testable import Replication

/// What the log tells the merge of writes that were issued again (rules C22, M17). Replicas d0.1, d0.2 and d0.3 are of one
/// device.
@Suite("Chains: a write and its re-issues as one")
struct ChainsKinTests {
  private let partition: PartitionName

  init() throws { partition = try PartitionName("agency=A") }

  private func book() -> AuthorityTests.Book {
    var book = AuthorityTests.Book()
    book.say(.rule(Statement.Rule(key: "agency")))
    for device in ["d0", "d1"] {
      let member = book.member(device)
      for nonce in ["1", "2", "3"] { book.declare("\(device).\(nonce)", under: member, by: device) }
    }
    return book
  }

  private func keeper(_ book: AuthorityTests.Book? = nil) -> ChainsKeeper {
    ChainsKeeper(partition, authority: (book ?? self.book()).authority, genesis: ChainsHistory.genesis)
  }

  private func digest(_ word: UInt64) -> Digest { Digest(words: (word, 0, 0, 0)) }
  private func dot(_ replica: String, _ sequence: UInt64) -> Dot {
    Dot(replica: Named.replica(replica), sequence: sequence)
  }
  private func position(_ sequence: UInt64, _ hash: UInt64) -> ChainPosition {
    ChainPosition(sequence: sequence, tip: digest(hash).tip)
  }

  /// One change; `before`: the hash it follows, none for the first of its chain; `origin`: the change of d0.1 that it issues
  /// again.
  private func run(
    _ replica: String, _ sequence: UInt64, after before: UInt64?, _ hash: UInt64, of origin: (UInt64, UInt64)? = nil
  ) -> RunSummary {
    let id = Named.replica(replica)
    let origin = origin.map { ChangeOrigin(dot: dot("d0.1", $0.0), hash: digest($0.1)) }
    return RunSummary(
      partition: partition, replica: id, first: sequence, hashBefore: before.map(digest) ?? ChainsHistory.genesis(id),
      hashes: [digest(hash)], context: VersionVector(), signer: Named.key(String(replica.prefix(2))),
      facts: [ChangeFacts(origin: origin)])
  }

  /// d0.1 has written 10 and 20; d0.2 has issued 20 again as 30 and as 25.
  private func reissued(_ book: AuthorityTests.Book? = nil) throws -> ChainsKeeper {
    var keeper = keeper(book)
    try keeper.learn(run("d0.1", 1, after: nil, 10))
    try keeper.learn(run("d0.1", 2, after: 10, 20))
    #expect(keeper.log.kin.isEmpty)
    try keeper.learn(run("d0.2", 1, after: nil, 30, of: (2, 20)))
    try keeper.learn(run("d0.2", 2, after: 30, 25, of: (2, 20)))
    return keeper
  }

  @Test("kin are the original and the accepted re-issues of its device; the first that is accepted has effect")
  func members() throws {
    var keeper = try reissued()
    try keeper.learn(run("d1.1", 1, after: nil, 40, of: (2, 20)))
    let all = [dot("d0.1", 2), dot("d0.2", 2), dot("d0.2", 1)]
    for member in all {
      #expect(keeper.log.kin[member] == Kin(original: all[0], reissues: [all[1], all[2]], effective: all[0]))
    }
    #expect(keeper.log.kin[dot("d1.1", 1)] == nil)
    #expect(keeper.reported.regrouped.isEmpty, "of another device nothing follows")

    // The original's dot is another change now: what covers that has not seen the original.
    try keeper.learn(run("d0.1", 2, after: 10, 15))
    let rest = Array(all.dropFirst())
    #expect(keeper.log.kin[all[0]] == nil)
    #expect(keeper.log.kin[all[1]] == Kin(original: all[0], isReplaced: true, reissues: rest, effective: rest[0]))
    #expect(keeper.reported.regrouped.isSuperset(of: rest))
    try keeper.restart()
  }

  @Test("an original above an end keeps its kin, and what they touch is built anew when the end is raised")
  func statements() throws {
    var book = book()
    var keeper = try reissued(book)
    let all = [dot("d0.1", 2), dot("d0.2", 2), dot("d0.2", 1)]
    func listing(_ position: ChainPosition) -> Statement.Listing {
      let end = Statement.ChainEnd(replica: Named.replica("d0.1"), position: position)
      return Statement.Listing(ends: [Statement.PartitionEnds(partition: "agency=A", chains: [end])])
    }
    let end = book.say(
      .end(
        Statement.End(
          reason: .retire, target: .replica(Named.replica("d0.1")), listing: listing(position(1, 10)))))
    try keeper.adopt(book.authority)
    #expect(keeper.log.accepted.sequence(of: Named.replica("d0.1")) == 1)
    #expect(keeper.log.kin[all[0]] == Kin(original: all[0], reissues: [all[1], all[2]], effective: all[1]))
    #expect(keeper.reported.regrouped == Set(all), "the original counts no more")

    book.say(.raise(Statement.Raise(end: end, listing: listing(position(2, 20)))))
    try keeper.adopt(book.authority)
    #expect(keeper.log.kin[all[0]]?.effective == all[0])
    #expect(keeper.reported.regrouped == Set(all))
    let lowest = keeper.log.lowestMoved(by: [keeper.reported])
    #expect(lowest == [Named.replica("d0.1"): 1, Named.replica("d0.2"): 0])
  }

  @Test("where one of kin comes to count or falls, what they touch is built anew, whichever has effect")
  func regrouped() throws {
    var keeper = keeper()
    try keeper.learn(run("d0.2", 1, after: nil, 30, of: (2, 20)))
    try keeper.learn(run("d0.3", 1, after: nil, 35, of: (2, 20)))
    let regrouped: Set = [dot("d0.1", 2), dot("d0.2", 1), dot("d0.3", 1)]
    #expect(keeper.reported.regrouped == regrouped, "a second re-issue, without effect")
    try keeper.learn(run("d0.3", 1, after: nil, 33))
    #expect(keeper.log.kin[dot("d0.2", 1)]?.reissues == [dot("d0.2", 1)])
    #expect(keeper.reported.regrouped == [dot("d0.1", 2), dot("d0.2", 1), dot("d0.3", 1)], "it lost its branch")
    try keeper.learn(run("d0.3", 2, after: 33, 36))
    #expect(keeper.reported.regrouped.isEmpty)
  }

  @Test("an end whose change comes after the re-issues brings the original back")
  func lateEnd() throws {
    var book = book()
    let end = Statement.ChainEnd(replica: Named.replica("d0.1"), position: position(3, 21))
    let ends = [Statement.PartitionEnds(partition: "agency=A", chains: [end])]
    book.say(
      .end(
        Statement.End(reason: .retire, target: .replica(end.replica), listing: Statement.Listing(ends: ends))))
    var keeper = keeper(book)
    for run in [
      run("d0.1", 1, after: nil, 10), run("d0.1", 2, after: 10, 15), run("d0.1", 2, after: 10, 20),
      run("d0.2", 1, after: nil, 40, of: (2, 20)),
    ] { try keeper.learn(run) }
    #expect(keeper.log.kin[dot("d0.1", 2)] == nil)
    try keeper.learn(run("d0.1", 3, after: 20, 21))
    #expect(keeper.log.kin[dot("d0.2", 1)]?.effective == dot("d0.1", 2))
    #expect(keeper.reported.regrouped == [dot("d0.1", 2), dot("d0.2", 1)])
  }

  private func seen(
    _ log: PartitionLog, _ context: [String: ChainPosition], _ other: Dot, by author: Dot? = nil
  ) -> Bool {
    let context = VersionVector(
      Dictionary(uniqueKeysWithValues: context.map { (Named.replica($0.key), $0.value) }))
    let author = author ?? dot("d1.1", 1)
    let sight = log.sight(of: context, author: author)
    return WriteContext(dot: author, timestamp: .zero, context: context, sight: sight).sees(other)
  }

  @Test("a context that covers one of kin covers all")
  func covered() throws {
    let log = try reissued().log
    for context in [["d0.1": position(2, 20)], ["d0.2": position(1, 30)], ["d0.2": position(2, 25)]] {
      #expect(seen(log, context, dot("d0.1", 2)))
    }
    #expect(!seen(log, ["d0.1": position(2, 20)], dot("d0.1", 2), by: dot("d0.1", 2)), "never itself")
    #expect(!seen(log, ["d0.1": position(1, 10)], dot("d0.1", 2)))
    #expect(!seen(log, ["d1.2": position(9, 9)], dot("d0.1", 2)))
  }

  @Test("an original off the branch that counts was seen where its hash is named, or that of a later one issued again")
  func lostBranch() throws {
    var keeper = keeper()
    for run in [
      run("d0.1", 1, after: nil, 10), run("d0.1", 2, after: 10, 15), run("d0.1", 2, after: 10, 20),
      run("d0.1", 3, after: 20, 21), run("d0.2", 1, after: nil, 40, of: (2, 20)),
    ] { try keeper.learn(run) }
    let (first, second) = (dot("d0.2", 1), dot("d0.2", 2))
    #expect(seen(keeper.log, ["d0.1": position(2, 20)], first))
    #expect(!seen(keeper.log, ["d0.1": position(2, 15)], first), "another branch")
    #expect(!seen(keeper.log, ["d0.1": position(1, 10)], first))
    #expect(!seen(keeper.log, ["d0.1": position(3, 21)], first), "that this is the branch's end nobody has said yet")

    try keeper.learn(run("d0.2", 2, after: 40, 41, of: (3, 21)))
    #expect(keeper.reported.regrouped == [first, second, dot("d0.1", 3)])
    #expect(seen(keeper.log, ["d0.1": position(3, 21)], first))
    #expect(seen(keeper.log, ["d0.1": position(3, 21)], second))
    #expect(!seen(keeper.log, ["d0.1": position(2, 20)], second), "written after it")
    try keeper.restart()
    #expect(seen(keeper.log, ["d0.1": position(3, 21)], first))
  }

  @Test("where a fork decides how far a chain is seen, documents of all kin of what it wrote are built anew")
  func forkedAmongKin() throws {
    var keeper = keeper()
    try keeper.learn(run("d0.2", 1, after: nil, 30))
    try keeper.learn(run("d0.2", 2, after: 30, 31, of: (2, 20)))
    let (reissue, other) = (dot("d0.2", 2), ["d0.1": position(2, 15)])
    #expect(seen(keeper.log, other, reissue), "nobody knows yet that the context names another branch")
    // Of the chain itself nothing comes here.
    for hash in [10, 11] as [UInt64] { try keeper.learn(run("d0.1", 1, after: nil, hash), content: false) }
    #expect(keeper.log.forkPoints == [Named.replica("d0.1"): 0])
    #expect(!seen(keeper.log, other, reissue))
    #expect(keeper.log.lowestMoved(by: [keeper.reported]) == [Named.replica("d0.1"): 0, reissue.replica: 1])
  }

  @Test("where the chain of a re-issue forks, documents of the original are built anew as well")
  func forkOfTheReissuer() throws {
    var keeper = try reissued()
    let (original, other) = (dot("d0.1", 2), ["d0.2": position(1, 33)])
    #expect(seen(keeper.log, other, original))
    try keeper.learn(run("d0.2", 1, after: nil, 33), content: false)
    #expect(!seen(keeper.log, other, original) && keeper.log.kin[original]?.reissues.count == 2)
    #expect(keeper.log.lowestMoved(by: [keeper.reported]) == [Named.replica("d0.1"): 1, Named.replica("d0.2"): 0])
  }

  // MARK: Issuing again

  /// A write below the list element that `inserter` made.
  private func edit(_ inserter: Dot) -> DocumentWrite {
    let element = PathSegment.element(ListElement(position: [7], dot: inserter))
    return DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 1,
      operations: [Operation(.set, [.key("list"), element], value: .int(5))])
  }

  @Test("of two lost branches with the same dots each names its own list elements when it is issued again")
  func twoBranches() throws {
    var keeper = keeper()
    for run in [
      run("d0.1", 1, after: nil, 10), run("d0.1", 2, after: 10, 15), run("d0.1", 2, after: 10, 20),
      run("d0.1", 3, after: 20, 21), run("d0.1", 2, after: 10, 30), run("d0.1", 3, after: 30, 31),
      run("d0.2", 1, after: nil, 40, of: (2, 20)), run("d0.2", 2, after: 40, 41, of: (2, 30)),
    ] { try keeper.learn(run) }
    for (hash, name) in [(21, 1), (31, 2)] as [(UInt64, UInt64)] {
      let lost = LostChange(dot: dot("d0.1", 3), hash: digest(hash), writes: [edit(dot("d0.1", 2))])
      let issued = keeper.log.reissue([lost], of: VersionVector(), as: dot("d0.2", 3), after: VersionVector())
      #expect(issued?.writes == [[edit(dot("d0.2", name))]])
    }
  }

  @Test("a list element of what two branches share keeps its name though that is held, and is seen when that counts")
  func sharedIsHeld() throws {
    // By the first membership the device may not write here.
    var book = AuthorityTests.Book()
    book.say(.rule(Statement.Rule(key: "agency")))
    for (replica, agency) in [("d0.1", "B"), ("d0.2", "A")] as [(String, Text)] {
      book.declare(replica, under: book.member("d0", agency: agency), by: "d0")
    }
    var keeper = keeper(book)
    for run in [
      run("d0.1", 1, after: nil, 10), run("d0.1", 2, after: 10, 15), run("d0.1", 2, after: 10, 20),
    ] { try keeper.learn(run) }
    let replica = Named.replica("d0.1")
    #expect(keeper.log.accepted.sequence(of: replica) == 0)
    #expect(keeper.log.lostChanges { _ in true }.map(\.hash) == [digest(20)])
    let lost = LostChange(dot: dot("d0.1", 2), hash: digest(20), writes: [edit(dot("d0.1", 1))])
    let issued = keeper.log.reissue([lost], of: VersionVector(), as: dot("d0.2", 1), after: VersionVector())
    #expect(issued?.writes == [[edit(dot("d0.1", 1))]])
    #expect(issued?.context == VersionVector([replica: position(1, 10)]))

    try keeper.learn(run("d0.2", 1, after: nil, 40, of: (2, 20)))
    book.grant(.write, to: .role("officer"), on: "agency=A")
    try keeper.adopt(book.authority)
    #expect(keeper.log.accepted.sequence(of: replica) == 2)
    #expect(seen(keeper.log, ["d0.1": position(1, 10)], dot("d0.1", 1), by: dot("d0.2", 1)))
  }

  @Test("the list element of a lost re-issue goes by its original where that counts, and the context names that")
  func originalCounts() throws {
    var keeper = keeper()
    for run in [
      run("d0.1", 1, after: nil, 10), run("d0.1", 2, after: 10, 20), run("d0.2", 1, after: nil, 40, of: (2, 20)),
      run("d0.2", 2, after: 40, 41), run("d0.2", 1, after: nil, 5),
    ] { try keeper.learn(run) }
    #expect(keeper.log.lostChanges { _ in true }.map(\.hash) == [digest(41)])
    let lost = LostChange(dot: dot("d0.2", 2), hash: digest(41), writes: [edit(dot("d0.2", 1))])
    let issued = keeper.log.reissue([lost], of: VersionVector(), as: dot("d0.3", 1), after: VersionVector())
    #expect(issued?.writes == [[edit(dot("d0.1", 2))]])
    #expect(issued?.context == VersionVector([Named.replica("d0.1"): position(2, 20)]))
  }
}
