import Replication

/// The bodies of the statements by which one author brings about what was asked for.
struct RightsComposer {
  private let state: EngineState
  private let author: PublicKey
  private let list: StandingList

  init(_ state: EngineState, author: PublicKey) {
    (self.state, self.author, list) = (state, author, StandingList(state))
  }

  private var authority: Authority { state.mesh.authority }

  func bodies(for request: RightsRequest) throws -> [Statement.Body] {
    switch request {
    case .grant(let subject, let level, let pattern): try grant(subject, level, pattern)
    case .end(let device, let manner, let before): try end(device, manner, before)
    case .raise(let narrowings): try raise(narrowings)
    case .promote(let device): try promotion(of: device)
    }
  }

  // MARK: Grants

  /// The author's own register is set; what others granted to the same subject on the same pattern is ended where it gives
  /// more.
  private func grant(
    _ subject: Statement.Subject, _ level: AccessLevel, _ pattern: Text
  ) throws -> [Statement.Body] {
    let open = authority.openGrants(to: subject, on: pattern, above: level)
    let register = authority.grants.filter { $0.issuer == author && $0.isGrant(to: subject, on: pattern) }
    // What the new grant closes in its own register, or would be taken to close.
    let highest = (open.map(\.level) + register.map(\.level)).max() ?? .none
    let listing = try listing(closing: highest, for: level, subject, pattern)
    var bodies: [Statement.Body] = []
    if isNeeded(level, subject, pattern, closesOwn: open.contains { $0.issuer == author }) {
      let own = register.contains { $0.level > level } ? listing : Statement.Listing()
      bodies.append(.grant(Statement.Grant(subject: subject, level: level, pattern: pattern, listing: own)))
    }
    return bodies
      + open.filter { $0.issuer != author }
      .map { .end(Statement.End(reason: .retire, target: .grant($0.id), listing: listing)) }
  }

  /// A grant of the author's own: not where one in force gives just that already, nor where nothing is to be given that
  /// was not given.
  private func isNeeded(
    _ level: AccessLevel, _ subject: Statement.Subject, _ pattern: Text, closesOwn: Bool
  ) -> Bool {
    if closesOwn { return true }
    let standing = authority.grants.filter { $0.isInForce && $0.isGrant(to: subject, on: pattern) }
    return level > .none && !standing.contains { $0.level == level }
  }

  /// What stands of those whom the subject names, in the partitions of the pattern; others are kept as they are.
  private func listing(
    closing highest: AccessLevel, for level: AccessLevel, _ subject: Statement.Subject, _ pattern: Text
  ) throws -> Statement.Listing {
    guard highest > level, highest >= .write else { return Statement.Listing() }
    let partitions = list.carried.filter { Statement.Grant.reaches(pattern, $0.name) }
    let ends =
      level < .write
      ? try list.ends(of: authority.replicas(reachedBy: subject), in: partitions, everyChain: false) : []
    // What managers signed until now stands.
    let tips =
      highest == .manage
      ? authority.devices(reachedBy: subject).flatMap { authority.tips(of: $0).filter(\.scope.utf8.isEmpty) } : []
    return Statement.Listing(ends: ends, tips: StandingList.joined(tips), keep: [pattern])
  }

  // MARK: Ends and raises

  private func end(
    _ device: PublicKey, _ manner: RightsRequest.EndManner, _ before: ArrivedBefore?
  ) throws -> [Statement.Body] {
    let memberships = authority.standingMemberships(of: device)
    guard !memberships.isEmpty else { throw RightsError.alreadyEnded }
    let cut = try before.map { try ArrivalCut($0, of: device, state) }
    let tips = authority.tips(of: device) { cut?.had($0) ?? true }
    let isCompromised = manner == .compromised
    return try memberships.map { membership in
      let ends = try list.ends(
        of: authority.replicas(under: membership.id), in: list.carried, by: cut, everyChain: manner == .revoke)
      let listing = Statement.Listing(ends: isCompromised ? ends : ends.filter { !$0.chains.isEmpty }, tips: tips)
      return .end(
        Statement.End(
          reason: isCompromised ? .compromised : .retire, target: .membership(membership.id), listing: listing))
    }
  }

  private func raise(_ narrowings: [Digest]) throws -> [Statement.Body] {
    let bodies = narrowings.compactMap { id -> Statement.Body? in
      guard let listing = raised(id), !listing.isEmpty else { return nil }
      return .raise(Statement.Raise(end: id, listing: listing))
    }
    guard bodies.isEmpty else { return bodies }
    let isRootsToWiden = author != authority.root && narrowings.contains(where: isWidenedByRootAlone)
    throw isRootsToWiden ? RightsError.needsRoot : RightsError.nothingToRaise
  }

  /// It ended an admin of whom more was said since than it lets stand.
  private func isWidenedByRootAlone(_ end: Digest) -> Bool {
    guard authority.endsAdmin(end), case .end(let content)? = authority[end]?.body,
      case .membership(let id) = content.target, let member = authority.membership(id)
    else { return false }
    return !authority.carriesAll(of: member.device, under: id)
  }

  /// What a narrowing holds back here.
  private func raised(_ id: Digest) -> Statement.Listing? {
    switch authority[id]?.body {
    case .grant(let grant): return Statement.Listing(ends: list.beyond(authority.replicas(reachedBy: grant.subject)))
    case .end(let end):
      switch end.target {
      case .replica(let replica): return Statement.Listing(ends: list.beyond([replica]))
      case .grant(let grant):
        guard case .grant(let content)? = authority[grant]?.body else { return nil }
        return Statement.Listing(ends: list.beyond(authority.replicas(reachedBy: content.subject)))
      case .membership(let membership): return raised(membership: membership, by: id)
      }
    default: return nil
    }
  }

  /// With what the device signed since, so that replicas which it declared late count as well. Of an admin's no word but root's
  /// brings that back (C15): another admin's lets its changes count alone.
  private func raised(membership id: Digest, by end: Digest) -> Statement.Listing? {
    guard let member = authority.membership(id) else { return nil }
    guard author == authority.root || !authority.endsAdmin(end) else {
      return Statement.Listing(ends: list.beyond(authority.replicas(under: id)))
    }
    return Statement.Listing(
      // Also those whose declarations come back with the tips.
      ends: list.beyond(authority.replicas(under: id) + authority.voidReplicas(of: member.device)),
      tips: authority.carriesAll(of: member.device, under: id) ? [] : authority.tips(of: member.device))
  }

  // MARK: Members

  private func promotion(of device: PublicKey) throws -> [Statement.Body] {
    guard let member = authority.member(of: device) else { throw RightsError.notAMember }
    guard !authority.isAdmin(device) else { return [] }
    let present = member.membership
    return [
      .membership(
        Statement.Membership(
          device: device, user: present.user, label: present.label, role: Authority.adminRole, profile: present.profile)
      )
    ]
  }
}

extension ListedRight {
  package func isGrant(to subject: Statement.Subject, on pattern: Text) -> Bool {
    if case .grant(let grant) = content { grant.subject == subject && grant.pattern == pattern } else { false }
  }

  var level: AccessLevel { if case .grant(let grant) = content { grant.level } else { .none } }
}

extension StandingList {
  /// Groups of one scope together.
  static func joined(_ groups: [Statement.ScopeTips]) -> [Statement.ScopeTips] {
    Dictionary(grouping: groups, by: \.scope).sorted { $0.key < $1.key }
      .map { Statement.ScopeTips(scope: $0.key, tips: $0.value.flatMap(\.tips)) }
  }
}
