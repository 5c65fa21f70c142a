import Testing

@testable import Replication
@testable import Simulation

/// A failing history names its seed, which gives it again.
@Suite("The oracle's own rules: random histories")
struct OracleHistoryTests {
  /// One difference tells enough: the same mistake would show in many histories.
  private func recordDifference(_ seed: UInt64, _ difference: String) {
    Issue.record("seed \(seed): \(difference)")
  }

  @Test("pairwise merging and the shipped merge show the same documents and inboxes", arguments: 0..<4 as Range<UInt64>)
  func merge(part: UInt64) {
    var conflicts = 0
    for seed in part * 75..<part * 75 + 75 {
      let history = MergeHistory(seed: seed, steps: seed % 20 < 2 ? 30 : 12)
      let documents = NaiveMerge.documents(history.changes.map { NaiveChange($0) })
      if let difference = NaiveDocument.difference(documents, ReferenceStore.merged(history.changes)) {
        return recordDifference(seed, difference)
      }
      conflicts += documents.reduce(0) { $0 + $1.inbox.count }
    }
    #expect(conflicts > 50)
  }

  @Test("where nobody has seen anybody, counters, sets and containers are shown alike")
  func concurrency() {
    for seed in 0..<300 as Range<UInt64> {
      var random = MergeRandom(seed: seed)
      let changes = (0..<3 + random.below(3)).map { number in
        let path: [PathSegment] = random.chance(35) ? [.key("n"), .key("x")] : [.key("n")]
        let operation =
          path.count == 1 && random.chance(80)
          ? Operation(.increment, path, value: .int(Int64(1 + number)))
          : Operation(.set, path, value: random.pick([.int(7), .double(0.5), .string("x"), .map(ValueMap())]))
        let context = WriteContext(
          dot: Dot(replica: ReplicaID(high: UInt64(number), low: 0), sequence: 1),
          timestamp: HybridTimestamp(rawValue: UInt64(random.below(40))), context: VersionVector())
        let write = DocumentWrite(
          collection: "c", id: .int(1), kind: .create, generation: 1, operations: [operation])
        return ReferenceChange(context, writes: [write])
      }
      let documents = NaiveMerge.documents(changes.map { NaiveChange($0) })
      if let difference = NaiveDocument.difference(documents, ReferenceStore.merged(changes)) {
        return recordDifference(seed, difference)
      }
    }
  }

  @Test(
    "naive acceptance and the shipped log judge chains alike, in any order of arrival",
    arguments: 0..<3 as Range<UInt64>)
  func chains(part: UInt64) throws {
    var held = 0
    for seed in part * 70..<part * 70 + 70 {
      let history = try ChainsHistory(seed: seed)
      var random = ChainsRandom(seed: seed ^ 0x0bac1e)
      let keeper = try ChainsKeeper(history, history.events.shuffled(using: &random), folds: true)
      let runs =
        history.runs.map { ObservedRun($0, content: true) } + history.headers.map { ObservedRun($0, content: false) }
      let judged = NaiveAcceptance(
        history.partition.text, rights: NaiveRights(named: history.statements), runs: runs,
        genesis: ChainsHistory.genesis)
      if let difference = judged.difference(keeper.log, effective: keeper.effective) {
        return recordDifference(seed, difference)
      }
      held += judged.held.count
    }
    #expect(held > 200)
  }

  @Test("statements give the same set, levels, limits, floors and refusals", arguments: 0..<4 as Range<UInt64>)
  func rights(part: UInt64) throws {
    var seen = RightsSeen()
    for seed in part * 75..<part * 75 + 75 {
      let history = RightsHistory(seed: seed)
      var random = ChainsRandom(seed: seed ^ 0x5e7)
      let naive = NaiveRights(named: history.statements, limit: history.limit)
      let shipped = Authority(named: history.statements.shuffled(using: &random), limit: history.limit)
      if let difference = try naive.difference(shipped, history) { return recordDifference(seed, difference) }
      seen.add(naive, history)
    }
    #expect(seen.isVaried, "\(seen)")
  }

  @Test(
    "what a node keeps, event by event, is what the verdict over the whole set says", arguments: 0..<4 as Range<UInt64>)
  func verdicts(part: UInt64) throws {
    var (forks, conflicts, ineffective, unstored) = (0, 0, 0, 0)
    for seed in part * 60..<part * 60 + 60 {
      let history = try JudgedHistory(seed: seed)
      var random = ChainsRandom(seed: seed ^ 0xfeed)
      let verdict = PartitionVerdict(
        of: history.partition.text, rights: NaiveRights(named: history.statements), runs: history.observed,
        genesis: ChainsHistory.genesis)
      let events = seed % 4 == 0 ? history.events : history.events.shuffled(using: &random)
      let kept = try KeptPartition(history, events)
      let difference =
        verdict.acceptance.difference(kept.log, effective: Set(kept.effective.keys))
        ?? NaiveDocument.difference(verdict.documents, kept.documents)
        ?? kept.firstOutdated.map { "a document was not built anew with event \($0)" }
      if let difference { return recordDifference(seed, difference) }
      #expect(kept.effective.allSatisfy { verdict.counts($0.key, at: $0.value.dot) })
      for (key, state) in kept.documents {
        let document = try verdict.document(key.collection, #require(Value(canonicalID: key.id)))
        #expect(document?.generation == state.generation)
      }
      forks += verdict.acceptance.forkPoints.count
      conflicts += verdict.documents.reduce(0) { $0 + $1.inbox.count }
      let counting = verdict.acceptance.accepted.values.reduce(0) { $0 + Int($1.sequence) }
      ineffective += counting - verdict.acceptance.effective.count
      unstored += verdict.acceptance.reissuedOfUnstoredForks
    }
    #expect(forks > 30 && conflicts > 100 && ineffective > 3 && unstored > 3)
  }

  @Test("whose document a change writes is told alike")
  func owners() {
    var random = MergeRandom(seed: 11)
    for _ in 0..<2_000 {
      let writes = (0..<random.below(3)).map { _ in
        let fields = (0...random.below(2)).map { _ in random.pick(["presence", "userName", "secret"] as [Text]) }
        return DocumentWrite(
          collection: "User", id: random.pick([.string("a"), .string("a"), .string("b"), .int(1)]), kind: .edit,
          generation: 1, operations: fields.map { Operation(.set, [.key($0)], value: .null) })
      }
      let own = DocumentRule.ownDocument(of: writes).map {
        ObservedChange.OwnWrites(user: $0.user, otherFields: $0.otherFields)
      }
      #expect(ObservedChange.own(of: writes) == own)
    }
  }

  @Test("values have the same canonical bytes, and replicas the same ids")
  func bytes() {
    var random = MergeRandom(seed: 12)
    for seed in 0..<40 as Range<UInt64> {
      for change in MergeHistory(seed: seed, steps: 8).changes {
        for value in change.writes.flatMap(\.operations).compactMap(\.value) {
          #expect(OracleBytes.of(value) == value.canonicalBytes)
        }
      }
    }
    let hash: HashFunction = { bytes in
      var random = ChainsRandom(seed: bytes.reduce(17) { ($0 &* 31) &+ UInt64($1) })
      return random.digest()
    }
    let nonce = UUIDValue(high: random.next(), low: random.next())
    let replica = ReplicaID.derived(device: .derived(from: Named.key("d0"), hash), nonce: nonce, hash)
    let declaration = Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: .zero)
    #expect(NaiveRights.certificate(hash)(declaration, Named.key("d0")))
    #expect(!NaiveRights.certificate(hash)(declaration, Named.key("d1")))
  }
}

extension NaiveAcceptance {
  /// Writes that were issued again of forked chains of which nothing is here.
  fileprivate var reissuedOfUnstoredForks: Int {
    groups.count { forkPoints[$0.first.replica] != nil && received[$0.first.replica] == nil }
  }
}
