/// What each statement goes on from, as far as the set holds it.
struct Ancestry {
  private let admitted: AdmittedStatements
  private var lines: [Digest: Set<Digest>] = [:]

  init(_ set: AdmittedStatements) { self.admitted = set }

  subscript(id: Digest) -> Statement? { admitted.all[id] }

  /// A statement with everything that its issuer signed before it on its branch; empty where it is not in the set.
  mutating func line(to id: Digest) -> Set<Digest> {
    if let line = lines[id] { return line }
    var line: Set<Digest> = []
    var next: Digest? = id
    while let id = next, let statement = admitted.all[id] {
      line.insert(id)
      next = statement.previous
    }
    lines[id] = line
    return line
  }
}

/// What one narrowing or raise lists, it and the parts before it read as one (rules C11, C12).
struct ListedWord: Sendable {
  private var positions: [Text: [ReplicaID: ChainPosition]] = [:]
  private var statements: [Text: [PublicKey: Set<Digest>]] = [:]
  private var keep: [NamePattern] = []
  /// By its kind it leaves what it does not list without a bound.
  private var sparesUnlisted = false

  static let empty = ListedWord()

  private init() {}

  init(of statement: Statement, _ ancestry: inout Ancestry) {
    if case .end(let end) = statement.body, end.reason != .compromised {
      if case .grant = end.target {} else { sparesUnlisted = true }
    }
    var part: Statement? = statement
    while let current = part, let listing = current.listing {
      add(listing, &ancestry)
      part = current.previous.flatMap { ancestry[$0] }.flatMap { $0.isPart(of: statement) ? $0 : nil }
    }
  }

  private mutating func add(_ listing: Statement.Listing, _ ancestry: inout Ancestry) {
    for group in listing.ends {
      var chains = positions[group.partition] ?? [:]
      for end in group.chains {
        chains[end.replica] = .highest(of: [end.position] + (chains[end.replica].map { [$0] } ?? []))
      }
      positions[group.partition] = chains
    }
    for group in listing.tips {
      var devices = statements[group.scope] ?? [:]
      for tip in group.tips { devices[tip.issuer, default: []].formUnion(ancestry.line(to: tip.id)) }
      statements[group.scope] = devices
    }
    keep += listing.keep.map(NamePattern.init)
  }

  /// Partitions of which it lists anything, or that it names without a chain.
  var partitions: [Text] { Array(positions.keys) }

  func speaks(of partition: Text) -> Bool { positions[partition] != nil }

  /// Nil where the chain is not listed.
  func position(of replica: ReplicaID, in partition: Text) -> ChainPosition? { positions[partition]?[replica] }

  /// The statements of a device that it lists in a scope; nil where it lists nothing of the device.
  func statements(of device: PublicKey, in scope: Text = "") -> Set<Digest>? { statements[scope]?[device] }

  /// Does it leave what it does not list of a partition or room without a bound?
  func spares(_ name: Text) -> Bool {
    if sparesUnlisted { return true }
    return positions[name] == nil && statements[name] == nil && keep.contains { $0.begins(name) }
  }

  /// How much of a chain counts by this word alone.
  func bound(of replica: ReplicaID, in partition: Text) -> ChainPosition {
    position(of: replica, in: partition) ?? (spares(partition) ? .unbounded : .start)
  }

  /// Every chain that it lists, over all partitions.
  var replicas: Set<ReplicaID> { Set(positions.values.flatMap(\.keys)) }
}

extension Statement {
  /// Is this a part that its issuer's next statement `whole` is to be read with?
  fileprivate func isPart(of whole: Statement) -> Bool {
    guard let listing, listing.more, scope == whole.scope else { return false }
    switch (body, whole.body) {
    case (.grant(let a), .grant(let b)): return (a.subject, a.pattern, a.level) == (b.subject, b.pattern, b.level)
    case (.end(let a), .end(let b)): return a.target == b.target
    case (.raise(let a), .raise(let b)): return a.end == b.end
    case (.removal(let a), .removal(let b)): return a.user == b.user
    default: return false
    }
  }
}

/// A narrowing that counts, with the raises of it that count (rule C14).
struct Narrowing: Sendable {
  let id: Digest
  let word: ListedWord
  fileprivate(set) var raises: [ListedWord]
  /// A manager's end of a replica says nothing of partitions that it does not list.
  let isBoundToItsPartitions: Bool

  init(id: Digest, word: ListedWord, raises: [ListedWord] = [], isBoundToItsPartitions: Bool = false) {
    (self.id, self.word, self.raises, self.isBoundToItsPartitions) = (id, word, raises, isBoundToItsPartitions)
  }

  /// How much of a chain counts. A raise never lowers.
  func bound(of replica: ReplicaID, in partition: Text) -> ChainPosition {
    let isOutside = isBoundToItsPartitions && !word.speaks(of: partition)
    let alone = isOutside ? ChainPosition.unbounded : word.bound(of: replica, in: partition)
    return .highest(of: [alone] + raises.compactMap { $0.position(of: replica, in: partition) })
  }

  /// Does a statement of the scope stand?
  func leaves(_ id: Digest, of issuer: PublicKey, in scope: Text = "") -> Bool {
    let stands =
      word.statements(of: issuer, in: scope).map { $0.contains(id) } ?? (!scope.utf8.isEmpty && word.spares(scope))
    return stands || raises.contains { $0.statements(of: issuer, in: scope)?.contains(id) == true }
  }
}
