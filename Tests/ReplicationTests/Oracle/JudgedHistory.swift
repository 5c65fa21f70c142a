import Replication
import Simulation

/// A random history of one partition, writes and all: forks, re-issues true and false, contexts that name any branch, chains of
/// which a node never has more than headers, unknown kinds, others' documents, and rights that are narrowed and raised while
/// changes arrive.
struct JudgedHistory {
  enum Event {
    case statement(Statement)
    case run(RunSummary, content: Bool)
  }

  let partition: PartitionName
  /// In the order in which all came about.
  private(set) var events: [Event] = []
  private(set) var contents: [Digest: WrittenContent] = [:]
  var random: ChainsRandom
  /// Sets and increments at two paths, one above the other: they meet all the time.
  private let isNarrow: Bool
  /// Few of many documents are written at once: so what is to be built anew is seldom built anew for another reason.
  private let isSparse: Bool
  /// Of a hundred: changes that issue another one again, runs that go on from somewhere earlier, and other chains that a run
  /// names.
  let reissueChance: Int
  private let forkChance, contextChance: Int
  /// Chains of which only headers come: forks among them move what others have seen, and nothing of their own.
  private let unstored: Set<ReplicaID>
  /// Runs of which the headers came first.
  private var late: [RunSummary] = []
  /// Grants and rules that let somebody write.
  private var sources: [Digest] = []
  private var narrowings: [Digest] = []
  private var memberships: [Digest] = []
  private(set) var tips: [ReplicaID: [(sequence: UInt64, hash: Digest)]] = [:]

  /// Three of one device: there the same change is issued again in two other chains.
  static let replicas = ChainsHistory.replicas + [Named.replica("d0.3")]

  init(seed: UInt64) throws {
    random = ChainsRandom(seed: seed)
    isNarrow = seed.isMultiple(of: 3)
    partition = try Named.partition(["agency=A", "/t", "all-users=x"][random.below(3)])
    // Much is issued again of chains that fork, and of some of these nothing is stored.
    let isKindred = random.chance(50)
    isSparse = random.chance(isKindred ? 100 : 25)
    (reissueChance, forkChance, contextChance) = isKindred ? (50, 40, 50) : (15, 25, 80)
    unstored = isKindred ? Set(JudgedHistory.replicas.shuffled(using: &random).prefix(1 + random.below(2))) : []
    found()
    for _ in 0..<(6 + random.below(16)) {
      if random.chance(8) { turn() } else { write() }
    }
    for _ in 0..<random.below(3) { turn() }
    for run in late { events.append(.run(run, content: true)) }
  }

  mutating func pick<Item>(_ items: [Item]) -> Item { items[random.below(items.count)] }

  // MARK: Statements

  private mutating func say(_ body: Statement.Body, by issuer: String = "root") -> Digest {
    let statement = Statement(body, by: Named.key(issuer), after: statements, id: random.digest())
    events.append(.statement(statement))
    return statement.id
  }

  private mutating func found() {
    for key: Text in ["agency", "all-users"] { sources.append(say(.rule(Statement.Rule(key: key)))) }
    grant(.write)
    for device in ["d0", "d1"] {
      let agency = ValueMap(ascending: [ValueMap.Entry(key: "agency", value: .string("A"))])
      let membership = say(
        .membership(
          Statement.Membership(
            device: Named.key(device), user: Text("u-" + device), label: "", role: "officer", profile: agency)))
      memberships.append(membership)
      for replica in JudgedHistory.replicas where Named.name(replica.bytes).hasPrefix(device) {
        _ = say(
          .replica(Statement.ReplicaDeclaration(replica: replica, nonce: .zero, membership: membership)), by: device)
      }
    }
  }

  private mutating func grant(_ level: AccessLevel, _ listing: Statement.Listing = Statement.Listing()) {
    let grant = Statement.Grant(subject: .role("officer"), level: level, pattern: "*", listing: listing)
    let id = say(.grant(grant))
    if level < .write { narrowings.append(id) } else { sources.append(id) }
  }

  /// Narrows, raises, grants again, or says what this build cannot read.
  private mutating func turn() {
    switch random.below(12) {
    case 0..<4: grant(.read, listing())
    case 4..<6: grant(.write)
    case 6: end(.replica(pick(JudgedHistory.replicas)))
    case 7: end(.grant(pick(sources)))
    case 8: end(.membership(pick(memberships)))
    case 9 where !narrowings.isEmpty: _ = say(.raise(Statement.Raise(end: pick(narrowings), listing: listing())))
    case 10: _ = say(.baseline(Statement.Baseline(partition: partition.text, entries: baseline())))
    case 11 where random.chance(40): _ = say(.unknown(Statement.Unknown(kind: 99)))
    default: grant(.read, listing())
    }
  }

  private mutating func end(_ target: Statement.End.Target) {
    narrowings.append(
      say(.end(Statement.End(reason: pick([.retire, .compromised]), target: target, listing: listing()))))
  }

  /// Some of the chains; of every device all that it said.
  private mutating func listing() -> Statement.Listing {
    let chains = positions(85).map { Statement.ChainEnd(replica: $0, position: $1) }
    let tips = ["d0", "d1"].compactMap { device -> Statement.Tip? in
      let last = statements.last { $0.issuer == Named.key(device) }
      return last.map { Statement.Tip(issuer: $0.issuer, sequence: $0.sequence, id: $0.id) }
    }
    return Statement.Listing(
      ends: [Statement.PartitionEnds(partition: partition.text, chains: chains)],
      tips: [Statement.ScopeTips(scope: "", tips: tips)])
  }

  private mutating func baseline() -> [Statement.Baseline.Entry] {
    positions(40).map { Statement.Baseline.Entry(replica: $0, position: $1, ownLast: 0) }
  }

  private mutating func positions(_ percent: Int) -> [(ReplicaID, ChainPosition)] {
    tips.sorted { $0.key < $1.key }.compactMap { replica, known in
      guard random.chance(percent) else { return nil }
      let tip = pick(known)
      return (replica, ChainPosition(sequence: tip.sequence, tip: tip.hash.tip))
    }
  }

  // MARK: Runs

  private mutating func write() {
    let replica = pick(JudgedHistory.replicas)
    let known = tips[replica, default: [(0, ChainsHistory.genesis(replica))]]
    // From somewhere earlier: a fork, or a deeper one.
    let start = random.chance(forkChance) ? pick(known) : known[known.count - 1]
    let device = String(Named.name(replica.bytes).prefix(2))
    let hashes = (0...random.below(3)).map { _ in random.digest() }
    let run = RunSummary(
      partition: partition, replica: replica, first: start.sequence + 1, hashBefore: start.hash, hashes: hashes,
      context: context(without: replica), signer: Named.key(device), facts: hashes.map { _ in facts(device) })
    for (index, hash) in hashes.enumerated() {
      let dot = Dot(replica: replica, sequence: run.first + UInt64(index))
      let timestamp = HybridTimestamp(rawValue: UInt64(random.below(12)))
      contents[hash] = WrittenContent(
        dot: dot, timestamp: timestamp, context: run.context, writes: writes(dot, run.context))
    }
    show(run)
    tips[replica] = known + hashes.enumerated().map { (start.sequence + 1 + UInt64($0), $1) }
  }

  /// Its headers alone, or these before the rest, or all at once; or nothing of it, though others go on from there, name it
  /// and issue it again.
  private mutating func show(_ run: RunSummary) {
    switch random.below(100) {
    case 0..<3: break
    case 3..<10: events.append(.run(run, content: false))
    case 10..<20 where !unstored.contains(run.replica):
      events.append(.run(run, content: false))
      late.append(run)
    default: events.append(.run(run, content: !unstored.contains(run.replica)))
    }
  }

  private mutating func facts(_ device: String) -> ChangeFacts {
    let owner = pick(["u-" + device, "u-" + device, "u-" + device, "u-d0", "u-d1"])
    var facts = ChangeFacts(ownDocument: random.chance(95) ? OwnDocument(user: Text(owner)) : nil)
    if random.chance(2) { facts.recognition = .unknownExtension }
    facts.origin = origin(for: device)
    return facts
  }

  private mutating func context(without replica: ReplicaID) -> VersionVector {
    var context = VersionVector()
    for (other, known) in tips.sorted(by: { $0.key < $1.key }) where other != replica && random.chance(contextChance) {
      var tip = random.chance(50) ? known[known.count - 1] : pick(known)
      // A branch that nobody shows here.
      if random.chance(5) { tip = (tip.sequence + UInt64(random.below(2)), random.digest()) }
      guard tip.sequence > 0 else { continue }
      context[other] = ChainPosition(sequence: tip.sequence, tip: tip.hash.tip)
    }
    return context
  }

  // MARK: Writes

  private mutating func writes(_ dot: Dot, _ context: VersionVector) -> [DocumentWrite] {
    let author = WriteContext(dot: dot, timestamp: .zero, context: context)
    let ids: [Text] = isSparse ? ["u", "v", "w", "x", "y", "z"] : ["x", "y", "z"]
    return ids.compactMap { id in
      guard random.chance(isSparse ? 25 : 60) else { return nil }
      if random.chance(5) {
        return DocumentWrite(collection: "c", id: .string(id), kind: .delete, generation: 2, operations: [])
      }
      var write = DocumentWrite(
        collection: "c", id: .string(id), kind: random.chance(40) ? .create : .edit,
        generation: random.chance(10) ? 3 : 1, operations: [])
      for _ in 0...random.below(3) {
        let longer = DocumentWrite(
          collection: "c", id: .string(id), kind: write.kind, generation: write.generation,
          operations: write.operations + [operation()])
        if author.malformation(of: [longer]) == nil { write = longer }
      }
      return author.malformation(of: [write]) == nil ? write : nil
    }
  }

  private mutating func operation() -> Operation {
    let path = (0...random.below(2)).map { _ in PathSegment.key(isNarrow ? "a" : pick(["a", "b"])) }
    let kinds: [Operation.Kind] =
      isNarrow
      ? [.set, .increment, .increment]
      : [.set, .set, .set, .remove, .increment, .increment, .setAdd, .setRemove, .listInsert]
    switch pick(kinds) {
    case .increment: return Operation(.increment, path, value: .int(pick([1, -1, 2])))
    case .remove: return Operation(.remove, path)
    case .setAdd: return Operation(.setAdd, path, value: .int(pick([1, 2])))
    case .setRemove: return Operation(.setRemove, path, value: .int(pick([1, 2])))
    case .listInsert: return Operation(.listInsert, path, value: .int(1), position: [UInt8(1 + random.below(3))])
    default:
      let value = pick([.int(1), .int(2), .double(1.5), .string("x"), .map(ValueMap()), .array([])] as [Value])
      return Operation(.set, path, value: value)
    }
  }
}

extension JudgedHistory {
  var statements: [Statement] {
    events.compactMap { if case .statement(let statement) = $0 { statement } else { nil } }
  }

  var observed: [ObservedRun] {
    events.compactMap { event in
      guard case .run(let run, let content) = event else { return nil }
      return ObservedRun(run, content: content, contents)
    }
  }
}
