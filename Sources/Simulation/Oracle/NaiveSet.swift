import Replication

/// C26: which of all statements seen are in the set, and in which scopes a device is full.
struct NaiveSet {
  let root: PublicKey
  private(set) var statements: [Digest: Statement] = [:]
  /// Scopes in which some device has as many statements as it may.
  private(set) var full: Set<Text> = []
  /// Root, and the devices that root ever made admins.
  private var admins: Set<PublicKey>
  /// Root, and the devices that root or one who was ever an admin made members.
  private var members: Set<PublicKey>

  init(_ seen: some Sequence<Statement>, root: PublicKey, limit: Int) {
    (self.root, admins, members) = (root, [root], [root])
    var waiting = Array(seen)
    while true {
      let left = waiting.filter { !take($0) }
      if left.count == waiting.count { break }
      waiting = left
      heed()
    }
    displace(beyond: limit)
  }

  // MARK: What is linked

  private mutating func take(_ statement: Statement) -> Bool {
    guard mayBeAdded(statement) else { return false }
    statements[statement.id] = statement
    return true
  }

  /// Who may say more by what is in the set by now: also by what somebody said before he was known as an admin.
  private mutating func heed() {
    let memberships = statements.values.filter(\.isOfFleet).compactMap { NaiveMember($0) }
    admins.formUnion(memberships.filter { $0.statement.issuer == root && $0.role == "admin" }.map(\.device))
    members.formUnion(memberships.filter { admins.contains($0.statement.issuer) }.map(\.device))
  }

  private func mayBeAdded(_ statement: Statement) -> Bool {
    guard members.contains(statement.issuer), isLinked(statement) else { return false }
    let named = NaiveSet.tips(of: statement).filter { $0.scope.string.isEmpty }.flatMap(\.tips).filter {
      $0.sequence > 0
    }
    guard !named.isEmpty else { return true }
    // Only root and who was ever an admin name statements of the fleet.
    return admins.contains(statement.issuer)
      && named.allSatisfy { tip in
        guard let found = statements[tip.id] else { return false }
        return found.issuer == tip.issuer && found.sequence == tip.sequence && found.isOfFleet
      }
  }

  /// Does it go on from a statement in the set, or is it its issuer's first in its scope?
  private func isLinked(_ statement: Statement) -> Bool {
    guard let previous = statement.previous else { return statement.sequence == 1 }
    guard let before = statements[previous] else { return false }
    return before.issuer == statement.issuer && before.scope == statement.scope
      && before.sequence == statement.sequence - 1
  }

  /// The statements that one names, by scope: read in any shape (C27).
  static func tips(of statement: Statement) -> [Statement.ScopeTips] {
    switch statement.body {
    case .grant(let grant): grant.listing.tips
    case .end(let end): end.listing.tips
    case .raise(let raise): raise.listing.tips
    case .removal(let removal): removal.listing.tips
    case .unknown(let unknown): unknown.tips
    default: []
    }
  }

  // MARK: What is displaced

  /// No statement stays before which its device has said more than this, in bytes.
  private static let byteLimit = 4_194_304

  private static func bytes(of statements: [Statement]) -> Int { statements.reduce(0) { $0 + $1.encoded.count } }

  /// Of each device that was never an admin, and each scope, only the lowest by (sequence, id) stay, and what is named.
  private mutating func displace(beyond limit: Int) {
    struct Line: Hashable {
      let issuer: PublicKey
      let scope: Text
    }
    let bounded = statements.values.filter { !admins.contains($0.issuer) }
    let kept = named()
    for (line, all) in Dictionary(grouping: bounded, by: { Line(issuer: $0.issuer, scope: $0.scope) }) {
      if all.count >= limit || NaiveSet.bytes(of: all) > NaiveSet.byteLimit { full.insert(line.scope) }
      let sorted = all.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
      for (index, statement) in sorted.enumerated() where !kept.contains(statement.id) {
        let isBeyond = index >= limit || NaiveSet.bytes(of: Array(sorted[..<index])) > NaiveSet.byteLimit
        if isBeyond { statements[statement.id] = nil }
      }
    }
  }

  /// What root's and ever-admins' tips of any scope name, with ancestors, and the creations of rooms.
  private func named() -> Set<Digest> {
    let byAdmins = statements.values.filter { admins.contains($0.issuer) }
    let tips = byAdmins.flatMap { NaiveSet.tips(of: $0).flatMap(\.tips) }
    let creations = statements.values.filter { NaiveRoom.isCreation($0) }.map(\.id)
    return tips.reduce(into: Set(creations)) { $0.formUnion(line(to: $1.id)) }
  }

  /// A statement and those before it along `previous`, as far as they are in the set.
  func line(to id: Digest) -> Set<Digest> {
    var (line, next): (Set<Digest>, Digest?) = ([], id)
    while let id = next, let statement = statements[id] {
      line.insert(id)
      next = statement.previous
    }
    return line
  }
}
