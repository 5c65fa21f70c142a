/// The grants, rules, ends, raises and baselines that count (rules C11–C17).
///
/// Below admins stand managers: devices that a manage grant reaches. They grant below manage, and narrow what lies inside
/// their patterns, never memberships.
struct RightsTable: Sendable {
  private(set) var grants: GrantTable
  /// By key; each has the same form as a grant that nothing replaces.
  let rules: [Text: [Signed<Statement.Rule>]]
  /// By partition.
  private(set) var baselines: [Text: [Statement.Baseline]] = [:]
  private var ends: [Statement.End.Target: [Narrowing]] = [:]
  private var raises: [Digest: [ListedWord]] = [:]
  /// Of those that count.
  private(set) var raiseIDs: Set<Digest> = []
  private let words: StatementIndex

  init(_ index: StatementIndex, _ members: MemberTable) {
    words = index
    rules = Dictionary(grouping: index.rules.filter(members.isAdmin), by: \.content.key)
    let fromAdmins = index.grants.filter(members.isAdmin)
    grants = GrantTable(fromAdmins)
    var raisesByID = Dictionary(grouping: index.raises.filter(members.isAdmin), by: \.content.end)
    raises = raisesByID.mapValues { $0.map { index.word(of: $0.id) } }
    let adminEnds = index.ends.filter { Self.isAdminsEnd($0, index, members) }
    collect(adminEnds, boundToPartitions: [])

    let managing = fromAdmins.filter { $0.content.level == .manage }
    let fromManagers =
      managing.isEmpty
      ? []
      : index.grants.filter {
        $0.content.level < .manage && !members.isAdmin($0) && isManager($0, of: [$0.content.pattern], members)
      }
    grants = GrantTable(fromAdmins + fromManagers)
    let (own, managers) = endsBelowAdmins(index, members, besides: Set(adminEnds.map(\.id)))
    let raisable = managing.isEmpty ? [] : Self.raisableByManagers(index)
    let raisesBelow = index.raises.filter { raisable.contains($0.content.end) && !members.isAdmin($0) }
    let closing = Self.endsClosing(managing, adminEnds)
    // Each is judged with those before it: an order that every node has.
    for raise in raisesBelow.sorted(by: { $0.id < $1.id }) {
      let word = index.word(of: raise.id)
      guard isManager(raise, of: word.partitions, members) else { continue }
      raisesByID[raise.content.end, default: []].append(raise)
      raises[raise.content.end, default: []].append(word)
      guard closing.contains(raise.content.end) else { continue }
      ends = [:]
      collect(adminEnds, boundToPartitions: [])
    }
    raiseIDs = Set(raisesByID.values.joined().map(\.id))
    ends = [:]
    collect(adminEnds + own + managers, boundToPartitions: Set(managers.filter(\.content.isOfReplica).map(\.id)))
    baselines = Dictionary(
      grouping: index.baselines.filter { members.isAdmin($0) || isManager($0, of: [$0.content.partition], members) }
        .map(\.content), by: \.partition)
  }

  /// How much of a chain counts whatever narrows its author (rule C13).
  func baseline(of replica: ReplicaID, in partition: Text) -> ChainPosition {
    .highest(of: baselines[partition, default: []].flatMap(\.entries).filter { $0.replica == replica }.map(\.position))
  }

  func narrowings(of target: Statement.End.Target) -> [Narrowing] { ends[target] ?? [] }

  func isEnded(_ target: Statement.End.Target) -> Bool { ends[target] != nil }

  /// What closes a grant for `level`: ends that name it, and the next of its register that lies lower (rule C17).
  func closers(of entry: GrantTable.Entry, below level: AccessLevel) -> [Narrowing] {
    narrowings(of: .grant(entry.grant.id)) + (entry.next(below: level).map { [narrowing($0)] } ?? [])
  }

  /// How much of a chain a grant or rule allows, by what closes it.
  static func limit(_ closers: [Narrowing], of replica: ReplicaID, in partition: Text) -> ChainPosition {
    .lowest(of: closers.map { $0.bound(of: replica, in: partition) })
  }

  private func narrowing(_ id: Digest, boundToPartitions: Bool = false) -> Narrowing {
    Narrowing(
      id: id, word: words.word(of: id), raises: raises[id] ?? [], isBoundToItsPartitions: boundToPartitions)
  }

  private mutating func collect(_ counting: [Signed<Statement.End>], boundToPartitions: Set<Digest>) {
    for end in counting {
      ends[end.content.target, default: []].append(
        narrowing(end.id, boundToPartitions: boundToPartitions.contains(end.id)))
    }
  }
}

// Who may say what.
extension RightsTable {
  /// An end on a membership has to list the device's own statements: else it would not say which of them count.
  private static func isAdminsEnd(
    _ end: Signed<Statement.End>, _ index: StatementIndex, _ members: MemberTable
  ) -> Bool {
    guard case .membership(let target) = end.content.target else { return members.isAdmin(end) }
    guard let device = members.device(of: target), index.word(of: end.id).statements(of: device) != nil else {
      return false
    }
    return members.isEverAdminMembership(target) ? members.endsOnAdmins.contains(end.id) : members.isAdmin(end)
  }

  /// A device's closes of its own replica, and managers' ends.
  private func endsBelowAdmins(
    _ index: StatementIndex, _ members: MemberTable, besides counting: Set<Digest>
  ) -> (own: [Signed<Statement.End>], managers: [Signed<Statement.End>]) {
    var (own, managers): ([Signed<Statement.End>], [Signed<Statement.End>]) = ([], [])
    let weak = Dictionary(
      grants.entries.values.joined().map(\.grant).filter { $0.content.level < .manage }
        .map { ($0.id, $0.content.pattern) }
    ) { first, _ in first }
    for end in index.ends where !counting.contains(end.id) {
      let word = index.word(of: end.id)
      switch end.content.target {
      case .membership: break
      case .replica(let replica):
        guard let owner = members.byReplica[replica] else { break }
        if owner.device == end.issuer, end.content.reason == .close {
          let isOwn = word.replicas.allSatisfy { $0 == replica }
          if isOwn, members.carries(end.id, by: owner.membership) { own.append(end) }
        } else if !members.isEverAdminMembership(owner.membership), isManager(end, of: word.partitions, members) {
          managers.append(end)
        }
      case .grant(let grant):
        if let pattern = weak[grant], isManager(end, of: [pattern], members) { managers.append(end) }
      }
    }
    return (own, managers)
  }

  /// Ends of these grants.
  private static func endsClosing(
    _ grants: [Signed<Statement.Grant>], _ ends: [Signed<Statement.End>]
  ) -> Set<Digest> {
    let ids = Set(grants.map(\.id))
    return Set(
      ends.lazy.filter { if case .grant(let grant) = $0.content.target { ids.contains(grant) } else { false } }.map(
        \.id))
  }

  /// Lowerings, and ends of anything but a membership.
  private static func raisableByManagers(_ index: StatementIndex) -> Set<Digest> {
    let ends = index.ends.lazy.filter { if case .membership = $0.content.target { false } else { true } }
    return Set(index.grants.map(\.id) + ends.map(\.id))
  }

  /// Does a manage grant carry this statement of its issuer for all the patterns? Delegation only narrows.
  private func isManager<Content>(
    _ statement: Signed<Content>, of patterns: [Text], _ members: MemberTable
  ) -> Bool {
    guard !patterns.isEmpty, patterns.allSatisfy({ !$0.utf8.isEmpty }) else { return false }
    return members.byDevice[statement.issuer, default: []].contains { member in
      guard members.carries(statement.id, by: member.id) else { return false }
      return grants.entries(reaching: member.membership).contains { entry in
        entry.grant.content.level == .manage && members.isAdmin(entry.grant)
          && patterns.allSatisfy { entry.pattern.covers(NamePattern($0)) }
          && closers(of: entry, below: .manage).allSatisfy { $0.leaves(statement.id, of: statement.issuer) }
      }
    }
  }
}

extension Statement.End {
  fileprivate var isOfReplica: Bool { if case .replica = target { true } else { false } }
}
