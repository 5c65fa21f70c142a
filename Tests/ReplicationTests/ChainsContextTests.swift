import Synchronization
import Testing

@testable import Replication

@Suite("Chains: contexts, forks and limits")
struct ChainsContextTests {
  private let mine = Named.replica("d0.1")
  private let other = Named.replica("d1.1")

  private func log() throws -> PartitionLog { try keeper().log }

  /// A log of `agency=A` in which d0 and d1 may write.
  private func keeper() throws -> ChainsKeeper {
    var book = AuthorityTests.Book()
    book.say(.rule(Statement.Rule(key: "agency")))
    for device in ["d0", "d1"] {
      let member = book.member(device)
      book.declare(device + ".1", under: member, by: device)
    }
    return ChainsKeeper(try PartitionName("agency=A"), authority: book.authority, genesis: ChainsHistory.genesis)
  }

  private func run(
    _ log: PartitionLog, _ replica: ReplicaID, after: (UInt64, Digest)? = nil, _ hashes: [UInt64],
    context: VersionVector = VersionVector()
  ) -> RunSummary {
    let (sequence, hash) = after ?? (0, ChainsHistory.genesis(replica))
    return RunSummary(
      partition: log.partition, replica: replica, first: sequence + 1, hashBefore: hash, hashes: hashes.map(digest),
      context: context, signer: Named.key(replica == mine ? "d0" : "d1"))
  }

  private func digest(_ word: UInt64) -> Digest { Digest(words: (word, 0, 0, 0)) }

  private func entry(_ sequence: UInt64, _ word: UInt64) -> ChainPosition {
    ChainPosition(sequence: sequence, tip: digest(word).tip)
  }

  private func forked() throws -> PartitionLog {
    var keeper = try keeper()
    try keeper.learn(run(keeper.log, other, [10, 11]))
    try keeper.learn(run(keeper.log, other, after: (1, digest(10)), [5, 6]))
    return keeper.log
  }

  @Test("a context with its own chain, a zero, or too many entries is malformed")
  func malformedContexts() throws {
    let log = try log()
    var crowd = VersionVector()
    for index in 0...UInt64(RunSummary.contextEntryLimit) {
      crowd[ReplicaID(high: 9, low: index)] = entry(1, 1)
    }
    let bad = [VersionVector([mine: entry(1, 1)]), VersionVector([other: entry(0, 0)]), crowd]
    for context in bad { #expect(log.deliver(run(log, mine, [1], context: context)) == .refuse(.malformed)) }
    #expect(log.deliver(run(log, mine, [1], context: VersionVector([other: entry(1, 1)]))) == .error(.context))
    #expect(log.deliver(run(log, mine, [1])) == .take)
  }

  @Test("a sequence beyond all reason, or more changes than a run holds, is malformed")
  func malformedRuns() throws {
    var log = try log()
    let far = run(log, mine, after: (.max - 1, digest(1)), [2])
    let long = run(log, mine, (0...64).map { $0 + 1 })
    for run in [far, long, run(log, mine, [])] {
      #expect(log.deliver(run) == .refuse(.malformed))
      #expect(log.learn(run) == .ignored)
    }
  }

  @Test("the hash before a chain's first change is made once, and no later run may name it, nor the first one another")
  func genesisIsMadeOnce() throws {
    let made = Tally()
    var log = PartitionLog(try PartitionName("agency=A"), authority: try log().authority) { replica in
      made.count.add(1, ordering: .relaxed)
      return ChainsHistory.genesis(replica)
    }
    let runs = [
      run(log, mine, [1]), run(log, mine, after: (1, digest(1)), [2, 3]), run(log, mine, after: (3, digest(3)), [4]),
    ]
    #expect(log.deliver(runs[0]) == .take)
    guard case .done = log.learn(runs[0]) else { throw Unexpected() }
    for run in runs.dropFirst() {
      #expect(log.deliver(run) == .take)
      // Counted behind that, since a debug build looks at an invariant there that makes it once more.
      let before = made.count.load(ordering: .relaxed)
      guard case .done = log.learn(run) else { throw Unexpected() }
      #expect(made.count.load(ordering: .relaxed) == before && before > 0)
    }
    let genesis = ChainsHistory.genesis(mine)
    for run in [run(log, mine, after: (4, genesis), [5]), run(log, mine, after: (0, digest(9)), [1])] {
      #expect(log.deliver(run) == .refuse(.malformed))
      #expect(log.learn(run) == .ignored)
    }
  }

  private struct Unexpected: Error {}

  private final class Tally: Sendable {
    let count = Atomic(0)
  }

  @Test("a trunk is looked at again where what it holds may no longer count, from the first such change on")
  func trunkInDoubt() {
    func doubt(_ documents: ChainTrunk.Documents, bound: UInt64, free: UInt64, at sequence: UInt64 = 2) -> UInt64? {
      let limits = ChainLimits(
        bound: ChainPosition(sequence: bound, tip: .zero), reason: .aboveLimit, free: free,
        ownDocuments: [OwnDocumentLimit(user: "u-a")])
      return ChainTrunk(sequence: sequence, hash: .zero, documents: documents).firstInDoubt(under: limits)
    }
    let own = ChainTrunk.Documents.none.adding("u-a").adding("u-a")
    let mixed = ChainTrunk.Documents.none.adding("u-a").adding("u-b")
    #expect(doubt(own, bound: .max, free: 0) == nil)
    #expect(doubt(mixed, bound: .max, free: 0) == 1, "a second owner")
    #expect(doubt(ChainTrunk.Documents.none.adding("u-b"), bound: .max, free: 0) == 1, "another owner")
    #expect(doubt(ChainTrunk.Documents.none.adding(nil), bound: .max, free: 1) == 2, "no owner")
    #expect(doubt(mixed, bound: .max, free: 2) == nil)
    #expect(doubt(own, bound: 1, free: 0) == 2 && doubt(own, bound: 2, free: 0) == nil)
    #expect(doubt(.none, bound: 0, free: 0, at: 0) == nil)
  }

  @Test("at a fork the lowest hash counts, and an entry reaches above it only where it names that branch")
  func forks() throws {
    let log = try forked()
    #expect(log.accepted[other] == entry(3, 6))
    #expect(log.forkPoints == [other: 1])
    #expect(log.forkProofs.map(\.first) == [digest(5)] && log.forkProofs.map(\.second) == [digest(11)])
    let author = Dot(replica: mine, sequence: 4)
    func covers(_ sequence: UInt64, _ context: VersionVector) -> Bool {
      log.isCovered(Dot(replica: other, sequence: sequence), by: context, of: author)
    }
    let (lost, chosen) = (VersionVector([other: entry(2, 11)]), VersionVector([other: entry(3, 6)]))
    #expect(covers(1, lost) && !covers(2, lost))
    #expect(covers(2, chosen) && covers(3, chosen) && !covers(4, chosen))
    #expect(log.isCovered(Dot(replica: mine, sequence: 3), by: VersionVector(), of: author))
    #expect(!log.isCovered(author, by: VersionVector(), of: author))
  }

  @Test("the next context keeps what was seen, but for a chain that changed its branch")
  func nextContext() throws {
    let log = try forked()
    let third = ReplicaID(high: 3, low: 3)
    let previous = VersionVector([other: entry(9, 11), third: entry(4, 4), mine: entry(7, 7)])
    #expect(
      log.nextContext(of: mine, after: previous) == VersionVector([other: entry(3, 6), third: entry(4, 4)]))
  }

  @Test("a peer's entry stands for as much as lies on the branch chosen here")
  func standings() throws {
    let log = try forked()
    let stored: PartitionLog.StoredTip = { [other] in $0 == other && $1 == 1 ? digest(10).tip : nil }
    func standing(_ entry: ChainPosition) -> UInt64 { log.standing(of: entry, of: other, stored: stored) }
    #expect(standing(entry(1, 10)) == 1)
    #expect(standing(entry(3, 6)) == 3)
    #expect(standing(entry(2, 11)) == 1, "the other branch leaves the chosen one at 1")
    #expect(standing(entry(7, 99)) == 1, "an unknown hash on a forked chain counts to the fork")
    #expect(log.judge(entry(2, 11), of: other, stored: stored) == .known)
    #expect(log.judge(entry(7, 99), of: other, stored: stored) == .differs)
    var plain = try self.log()
    _ = plain.learn(run(plain, mine, [1, 2]))
    #expect(plain.standing(of: entry(9, 9), of: mine, stored: stored) == 9)
    #expect(plain.standing(of: entry(2, 9), of: mine, stored: stored) == 0)
    #expect(plain.judge(entry(9, 9), of: mine, stored: stored) == .ahead)
    #expect(plain.judge(entry(2, 9), of: mine, stored: stored) == .differs)
  }

  @Test("a run goes out after its context, whatever the order of arrival; nothing goes out twice")
  func stream() throws {
    var log = try log()
    let first = run(log, other, [10, 11])
    let second = run(log, mine, [1], context: VersionVector([other: entry(2, 11)]))
    for run in [second, first] { _ = log.learn(run) }
    var stream = OutgoingStream(announced: VersionVector())
    #expect(stream.select(from: [second, first], of: log) { _, _ in nil } == [first, second])
    #expect(stream.select(from: [second, first], of: log) { _, _ in nil } == [])
    var informed = OutgoingStream(announced: VersionVector([other: entry(2, 11)]))
    #expect(informed.select(from: [second, first], of: log) { _, _ in nil } == [second])
  }

  @Test("who forks a chain without end fills no memory, and the choice stays the lowest hash")
  func forkFlood() throws {
    var falling = try keeper()
    for word in (1_000..<1_500 as Range<UInt64>).reversed() { try falling.learn(run(falling.log, mine, [word])) }
    #expect(falling.log.accepted[mine] == entry(1, 1_000))
    var rising = try keeper()
    for word in 1_000..<1_500 as Range<UInt64> { try rising.learn(run(rising.log, mine, [word])) }
    #expect(rising.log.accepted[mine] == entry(1, 1_000) && rising.log.nodeCount == Chain.rivalLimit)
    try rising.learn(run(rising.log, mine, [999]))
    #expect(rising.log.accepted[mine] == entry(1, 999))
  }
}
