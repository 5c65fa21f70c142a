/// Where each statement of the set stands among what its issuer signed: on which path, and how far along it.
///
/// A path is as much as goes on without a branch, or the first of the branches. Whether one statement lies at or below another
/// is then told without a list of all that do, of which anybody could have thousands made by naming statements.
final class StatementLines: Sendable {
  struct Place: Sendable {
    let path: Int
    let depth: Int
  }

  private let places: [Digest: Place]
  /// Of each path what it goes on from.
  private let stems: [Place?]

  init(_ ordered: [Statement]) {
    var (places, stems, lengths): ([Digest: Place], [Place?], [Int]) = ([:], [], [])
    for statement in ordered {
      let before = statement.previous.flatMap { places[$0] }
      if let before, lengths[before.path] == before.depth + 1 {
        lengths[before.path] += 1
        places[statement.id] = Place(path: before.path, depth: before.depth + 1)
      } else {
        places[statement.id] = Place(path: stems.count, depth: 0)
        stems.append(before)
        lengths.append(1)
      }
    }
    (self.places, self.stems) = (places, stems)
  }

  /// The tip itself, or something that it goes on from.
  func isCovered(_ id: Digest, by tip: Digest) -> Bool {
    guard let place = places[id], var reached = places[tip] else { return false }
    while reached.path != place.path {
      // A path begins behind those that it goes on from.
      guard reached.path > place.path, let stem = stems[reached.path] else { return false }
      reached = stem
    }
    return place.depth <= reached.depth
  }
}

/// Statements of one device with all that they go on from.
struct CoveredStatements: Sendable {
  private var tips: Set<Digest>
  private let lines: StatementLines

  fileprivate init(_ tips: some Sequence<Digest>, _ lines: StatementLines) {
    (self.tips, self.lines) = (Set(tips), lines)
  }

  func contains(_ id: Digest) -> Bool { tips.contains(id) || tips.contains { lines.isCovered(id, by: $0) } }
  mutating func formUnion(_ others: CoveredStatements) { tips.formUnion(others.tips) }
}

/// What one statement lists, ready to be looked up in. Several that go on from one share it.
final class ListedPart: Sendable {
  /// In the order of their partitions; one may be there more than once.
  let ends: [Statement.PartitionEnds]
  let tips: [Statement.ScopeTips]
  let keep: [Text]

  init(_ listing: Statement.Listing) {
    (tips, keep) = (listing.tips, listing.keep)
    let ends = listing.ends.map { group in
      ListedPart.isAscending(group.chains) { $0.replica <= $1.replica }
        ? group
        : Statement.PartitionEnds(partition: group.partition, chains: group.chains.sorted { $0.replica < $1.replica })
    }
    self.ends =
      ListedPart.isAscending(ends) { $0.partition <= $1.partition } ? ends : ends.sorted { $0.partition < $1.partition }
  }

  private static func isAscending<Item>(_ items: [Item], _ inOrder: (Item, Item) -> Bool) -> Bool {
    zip(items, items.dropFirst()).allSatisfy(inOrder)
  }

  func groups(of partition: Text) -> ArraySlice<Statement.PartitionEnds> {
    let first = ends.partitioningIndex { !($0.partition < partition) }
    let rest = ends[first...]
    return rest.prefix { $0.partition == partition }
  }
}

extension RandomAccessCollection where Index == Int {
  /// The first place from which on all belong, where those come behind all others.
  fileprivate func partitioningIndex(where belongs: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = low + (high - low) / 2
      if belongs(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

/// Makes the words of a set's statements. What parts of them list is looked at once, however many go on from it.
struct ListedWords {
  private let admitted: AdmittedStatements
  private let lines: StatementLines
  private(set) var parts: [Digest: ListedPart] = [:]

  /// `ordered`: each behind what it goes on from.
  init(_ admitted: AdmittedStatements, _ ordered: [Statement]) {
    (self.admitted, lines) = (admitted, StatementLines(ordered))
  }

  mutating func word(of statement: Statement) -> ListedWord {
    var (found, next): ([ListedPart], Statement?) = ([], statement)
    while let current = next, let listing = current.listing {
      let part = parts[current.id] ?? ListedPart(listing)
      parts[current.id] = part
      if !listing.isEmpty { found.append(part) }
      next = current.previous.flatMap { admitted.all[$0] }.flatMap { $0.isPart(of: statement) ? $0 : nil }
    }
    return ListedWord(found, lines, sparesUnlisted: statement.sparesUnlisted)
  }
}

/// What one narrowing or raise lists, it and the parts before it read as one (rules C11, C12).
struct ListedWord: Sendable {
  private let parts: [ListedPart]
  private let lines: StatementLines
  /// By its kind it leaves what it does not list without a bound.
  private let sparesUnlisted: Bool

  static let empty = ListedWord([], StatementLines([]), sparesUnlisted: false)

  fileprivate init(_ parts: [ListedPart], _ lines: StatementLines, sparesUnlisted: Bool) {
    (self.parts, self.lines, self.sparesUnlisted) = (parts, lines, sparesUnlisted)
  }

  /// Partitions of which it lists anything, or that it names without a chain.
  var partitions: [Text] { Array(Set(parts.lazy.flatMap(\.ends).map(\.partition))) }

  func speaks(of partition: Text) -> Bool { parts.contains { !$0.groups(of: partition).isEmpty } }

  /// Nil where the chain is not listed.
  func position(of replica: ReplicaID, in partition: Text) -> ChainPosition? {
    var found: [ChainPosition] = []
    for chains in parts.lazy.flatMap({ $0.groups(of: partition) }).map(\.chains) {
      let first = chains.partitioningIndex { !($0.replica < replica) }
      found += chains[first...].prefix { $0.replica == replica }.map(\.position)
    }
    return found.isEmpty ? nil : .highest(of: found)
  }

  /// The statements of a device that it lists in a scope; nil where it lists nothing of the device.
  func statements(of device: PublicKey, in scope: Text = "") -> CoveredStatements? {
    let groups = parts.lazy.flatMap(\.tips).filter { $0.scope == scope }
    let tips = groups.flatMap(\.tips).filter { $0.issuer == device }.map(\.id)
    return tips.isEmpty ? nil : CoveredStatements(tips, lines)
  }

  /// It lists statements that were made in the scope.
  func listsStatements(in scope: Text) -> Bool { parts.contains { part in part.tips.contains { $0.scope == scope } } }

  /// Does it leave what it does not list of a partition or room without a bound?
  func spares(_ name: Text) -> Bool {
    if sparesUnlisted { return true }
    let isListed = speaks(of: name) || listsStatements(in: name)
    return !isListed && parts.contains { part in part.keep.contains { NamePattern($0).begins(name) } }
  }

  /// How much of a chain counts by this word alone.
  func bound(of replica: ReplicaID, in partition: Text) -> ChainPosition {
    position(of: replica, in: partition) ?? (spares(partition) ? .unbounded : .start)
  }

  /// Every chain that it lists, over all partitions.
  var replicas: Set<ReplicaID> { Set(parts.lazy.flatMap(\.ends).flatMap(\.chains).map(\.replica)) }
}

extension Statement {
  /// An end leaves what it does not list without a bound, unless somebody else may have the key, or a grant ends.
  fileprivate var sparesUnlisted: Bool {
    guard case .end(let end) = body, end.reason != .compromised else { return false }
    if case .grant = end.target { return false }
    return true
  }

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
