@testable import Replication

// Who may do what, and what narrows it.
extension RightsHistory {
  mutating func grant() {
    let issuer = pick(RightsHistory.rulers)
    var subject = pick(subjects)
    // Managers keep near one another, so that one delegates what another lacks.
    var pattern = pick(random.chance(50) ? RightsHistory.patterns : ["/t", "/t*"])
    // Half of them say something new of what was granted before.
    let earlier = statements.compactMap { statement -> Statement.Grant? in
      guard case .grant(let grant) = statement.body, statement.issuer == Named.key(issuer) else { return nil }
      return grant
    }
    if !earlier.isEmpty, random.chance(50) {
      let grant = pick(earlier)
      (subject, pattern) = (grant.subject, grant.pattern)
    }
    let level = pick([AccessLevel.none, .carry, .read, .write, .write, .write, .manage, .manage])
    let isListing = random.chance(50)
    say(
      issuer,
      { history, more in
        isListing ? history.listing(by: issuer, keeps: true, more: more) : Statement.Listing(more: more)
      },
      { .grant(Statement.Grant(subject: subject, level: level, pattern: pattern, listing: $0)) })
  }

  private var subjects: [Statement.Subject] {
    let devices = RightsHistory.devices
    return devices.map { .device(Named.key($0)) } + devices.map { .user(Text("u-" + $0)) }
      + [.role("officer"), .role("guest"), .role("admin"), .everyone]
  }

  mutating func end() {
    var (issuer, device) = (pick(RightsHistory.rulers), pick(RightsHistory.devices))
    var (reason, target) = (pick([Statement.End.Reason.retire, .compromised]), Statement.End.Target.membership(.zero))
    let (members, sources) = (memberships(of: device), grantsAndRules)
    switch random.below(10) {
    case 0..<4 where !members.isEmpty: target = .membership(pick(members))
    case 4..<7 where !sources.isEmpty: target = .grant(pick(sources))
    default:
      let replica = pick(RightsHistory.replicas)
      device = String(Named.name(replica.bytes).prefix(2))
      target = .replica(replica)
      if random.chance(40) { (issuer, reason) = (device, .close) }
    }
    let (named, who) = (device, issuer)
    say(
      who, { history, more in history.listing(by: who, of: named, keeps: true, more: more) },
      { .end(Statement.End(reason: reason, target: target, listing: $0)) })
  }

  private var grantsAndRules: [Digest] {
    statements.filter {
      switch $0.body {
      case .grant, .rule: true
      default: false
      }
    }.map(\.id)
  }

  mutating func raise() {
    let raised = statements.filter {
      switch $0.body {
      case .end, .grant: true
      default: false
      }
    }
    guard !raised.isEmpty else { return }
    let narrowing = pick(raised)
    let issuer = random.chance(40) ? Named.name(narrowing.issuer.bytes) : pick(RightsHistory.rulers)
    // Mostly what was named there: other statements, or more, of the same devices.
    let named = narrowing.tips.flatMap(\.tips).map { Named.name($0.issuer.bytes) }
    let device = named.isEmpty ? pick(RightsHistory.devices) : pick(named)
    say(
      issuer, { history, more in history.listing(by: issuer, of: device, more: more) },
      { .raise(Statement.Raise(end: narrowing.id, listing: $0)) })
  }

  mutating func declareBaseline() {
    let entries = (0...random.below(3)).map { _ in
      Statement.Baseline.Entry(replica: pick(RightsHistory.replicas), position: position(), ownLast: 0)
    }
    say(
      .baseline(Statement.Baseline(partition: pick(partitions), entries: entries)), by: pick(RightsHistory.rulers))
  }

  // MARK: Listing

  /// `device`: whose statements are likely to be named.
  mutating func listing(by issuer: String, of device: String? = nil, keeps: Bool = false, more: Bool)
    -> Statement.Listing
  {
    let ends = (0..<random.below(4)).map { _ in
      Statement.PartitionEnds(
        partition: random.chance(50) ? pick(["/t", "agency=A"] + rooms) : pick(partitions),
        chains: (0..<random.below(12)).map { _ in
          Statement.ChainEnd(replica: pick(RightsHistory.replicas), position: position())
        })
    }
    var tips: [Statement.ScopeTips] = []
    // Who is no admin is not heard with such tips.
    if isAdmin(issuer) || random.chance(3) {
      tips += self.tips(of: random.chance(90) ? device ?? pick(RightsHistory.devices) : "d0", in: "")
    }
    for room in rooms where random.chance(35) { tips += self.tips(of: device ?? pick(RightsHistory.devices), in: room) }
    let keep = (0..<(keeps && random.chance(40) ? 1 + random.below(2) : 0)).map { _ in pick(RightsHistory.patterns) }
    return Statement.Listing(ends: ends, tips: tips, keep: keep, more: more)
  }

  mutating func position() -> ChainPosition {
    ChainPosition(sequence: UInt64(random.below(6)), tip: TipHash(high: UInt64(random.below(3)), low: 0))
  }

  mutating func tips(of device: String, in scope: Text) -> [Statement.ScopeTips] {
    let own = statements.filter {
      $0.issuer == Named.key(device) && $0.scope == scope && (sound.contains($0.id) || random.chance(2))
    }
    let tips = (0..<(random.chance(5) ? 0 : 1 + random.below(2))).map { _ -> Statement.Tip in
      guard let last = own.last, random.chance(92) else {
        return Statement.Tip(issuer: Named.key(device), sequence: 0, id: .zero)
      }
      let named = random.chance(60) ? last : pick(own)
      // In a room, what is not here counts for nothing; in the fleet, it keeps the statement that names it out.
      let id = random.chance(1) ? random.digest() : named.id
      return Statement.Tip(issuer: Named.key(device), sequence: named.sequence, id: id)
    }
    return [Statement.ScopeTips(scope: scope, tips: tips)]
  }
}
