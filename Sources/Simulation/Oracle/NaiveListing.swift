import Replication

/// What one narrowing or raise lists, with the parts before it read as one (C11, C12).
struct NaiveListing {
  /// Chains by partition; a partition may be there without any.
  private(set) var ends: [Text: [(replica: ReplicaID, position: NaivePosition)]] = [:]
  /// By scope and device: the statements that its tips stand for.
  private var statements: [Text: [PublicKey: Set<Digest>]] = [:]
  private var keep: [NaivePattern] = []
  /// C12: what is not listed has no bound.
  private let isRestSpared: Bool

  init(_ statement: Statement, in set: NaiveSet) {
    isRestSpared =
      switch statement.body {
      case .end(let end): !NaiveListing.isOnGrant(end) && end.reason != .compromised
      default: false
      }
    var part: Statement? = statement
    while let now = part, let listing = NaiveListing.own(of: now) {
      add(listing, in: set)
      let before = now.previous.flatMap { set.statements[$0] }
      part = before.flatMap { NaiveListing.own(of: $0)?.more == true && NaiveListing.areParts($0, now) ? $0 : nil }
    }
  }

  private mutating func add(_ listing: Statement.Listing, in set: NaiveSet) {
    for group in listing.ends {
      ends[group.partition, default: []] += group.chains.map {
        ($0.replica, NaivePosition(sequence: $0.position.sequence, tip: $0.position.tip))
      }
    }
    for group in listing.tips {
      statements[group.scope] = statements[group.scope] ?? [:]
      for tip in group.tips {
        statements[group.scope]?[tip.issuer, default: []].formUnion(set.line(to: tip.id))
      }
    }
    keep += listing.keep.map { NaivePattern($0) }
  }

  private static func isOnGrant(_ end: Statement.End) -> Bool {
    if case .grant = end.target { true } else { false }
  }

  static func own(of statement: Statement) -> Statement.Listing? {
    switch statement.body {
    case .grant(let grant): grant.listing
    case .end(let end): end.listing
    case .raise(let raise): raise.listing
    case .removal(let removal): removal.listing
    default: nil
    }
  }

  /// C12: the same kind, target and, of grants, register and level.
  private static func areParts(_ a: Statement, _ b: Statement) -> Bool {
    guard a.scope == b.scope else { return false }
    return switch (a.body, b.body) {
    case (.grant(let a), .grant(let b)): a.subject == b.subject && a.pattern == b.pattern && a.level == b.level
    case (.end(let a), .end(let b)): a.target == b.target
    case (.raise(let a), .raise(let b)): a.end == b.end
    case (.removal(let a), .removal(let b)): a.user == b.user
    default: false
    }
  }

  // MARK: What it says

  var partitions: [Text] { Array(ends.keys) }

  /// What it lists of a replica's changes; nil where it lists nothing. Listed twice: the highest.
  func entry(of replica: ReplicaID, in partition: Text) -> NaivePosition? {
    let found = (ends[partition] ?? []).filter { $0.replica == replica }
    return found.isEmpty ? nil : .highest(found.map(\.position))
  }

  /// What it lists of a device's statements; nil where it lists nothing.
  func statements(of device: PublicKey, in scope: Text) -> Set<Digest>? { statements[scope]?[device] }

  /// C12: does what it does not list of this partition or room stay?
  private func spares(_ name: Text) -> Bool {
    if isRestSpared { return true }
    return ends[name] == nil && statements[name] == nil && keep.contains { $0.matchesPlainly(name) }
  }

  /// What it lists, or C12 where it lists nothing.
  func word(on replica: ReplicaID, in partition: Text) -> NaivePosition {
    entry(of: replica, in: partition) ?? (spares(partition) ? .endless : .start)
  }

  /// Does this narrowing, with those raises of it, leave a statement standing?
  func leaves(_ statement: Statement, raises: [NaiveListing] = []) -> Bool {
    let listed = statements(of: statement.issuer, in: statement.scope)
    if listed?.contains(statement.id) ?? (!statement.isOfFleet && spares(statement.scope)) { return true }
    return raises.contains {
      $0.statements(of: statement.issuer, in: statement.scope)?.contains(statement.id) ?? false
    }
  }
}
