/// The statements of one scope as they are held against a peer's: a snapshot for one step of an exchange.
package struct ScopeStatements: Sendable {
  /// Each behind all that it goes on from or names.
  let ordered: [Statement]
  /// Of each issuer, those that no other goes on from; ascending by (sequence, id).
  private let tips: [PublicKey: [Statement]]

  package init(_ statements: [Statement]) {
    ordered = statements
    let continued = Set(statements.compactMap(\.previous))
    tips = Dictionary(grouping: statements.lazy.filter { !continued.contains($0.id) }, by: \.issuer)
      .mapValues { $0.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) } }
  }

  // MARK: Buckets

  package func buckets(_ hash: HashFunction) -> [UInt64] {
    var inputs = [[UInt8]](repeating: [], count: StatementSet.bucketCount)
    for issuer in tips.keys.sorted() {
      let bucket = StatementSet.bucket(of: issuer)
      if inputs[bucket].isEmpty { inputs[bucket] = DomainTag.authority.bytes }
      append(issuer, to: &inputs[bucket])
    }
    return inputs.map { $0.isEmpty ? 0 : Digest.of($0, hash).words.0 }
  }

  private func append(_ issuer: PublicKey, to input: inout [UInt8]) {
    let own = tips[issuer, default: []]
    issuer.raw.append(to: &input)
    appendBigEndian(UInt64(own.count), to: &input)
    for tip in own {
      appendBigEndian(tip.sequence, to: &input)
      tip.id.append(to: &input)
    }
  }

  /// The buckets to be looked at: those that differ. Where none does although the sets differ, a collision was made.
  package func differing(from told: [UInt64], _ hash: HashFunction) -> UInt64 {
    var mask: UInt64 = 0
    for (bucket, pair) in zip(buckets(hash), told).enumerated() where pair.0 != pair.1 { mask |= 1 << UInt64(bucket) }
    return mask == 0 ? .max : mask
  }

  // MARK: Tips

  /// Of all issuers in these buckets.
  package func list(_ buckets: UInt64) -> [IssuerTips] {
    tips.keys.filter { Self.isListed($0, buckets) }.sorted().map(told)
  }

  func tips(of issuers: Set<PublicKey>) -> [IssuerTips] { issuers.sorted().map(told) }

  /// The peer's tips of each issuer in these buckets of whom it has others, or none.
  func differing(from list: [IssuerTips], in buckets: UInt64) -> [IssuerTips] {
    let peers = Dictionary(list.map { ($0.issuer, $0) }) { first, _ in first }
    let issuers = Set(peers.keys).union(tips.keys).filter { Self.isListed($0, buckets) }.sorted()
    return issuers.map { peers[$0] ?? IssuerTips(issuer: $0, tips: []) }.filter { $0 != told($0.issuer) }
  }

  /// Own tips of each of these issuers of whom something is not here: with all its tips known, the peer has no more.
  package func wanted(of peers: [IssuerTips]) -> [IssuerTips] {
    let issuers = Set(peers.map(\.issuer))
    let held = Set(ordered.lazy.filter { issuers.contains($0.issuer) }.map(\.id.tip))
    return peers.filter { !$0.tips.allSatisfy { held.contains($0.id) } }.map { told($0.issuer) }
  }

  private func told(_ issuer: PublicKey) -> IssuerTips {
    IssuerTips(
      issuer: issuer, tips: tips[issuer, default: []].map { StatementTip(sequence: $0.sequence, id: $0.id.tip) })
  }

  private static func isListed(_ issuer: PublicKey, _ buckets: UInt64) -> Bool {
    buckets >> UInt64(StatementSet.bucket(of: issuer)) & 1 == 1
  }

  /// How many there are of each issuer.
  var counts: [PublicKey: Int] {
    var counts: [PublicKey: Int] = [:]
    for statement in ordered { counts[statement.issuer, default: 0] += 1 }
    return counts
  }

  // MARK: What a peer lacks

  /// Of these issuers all that is not at or below a tip that the peer told and that is here, in order.
  func missing(by told: [IssuerTips]) -> [Statement] {
    let issuers = Set(told.map(\.issuer))
    let tips = Set(told.lazy.flatMap(\.tips).map(\.id))
    let meant = ordered.filter { issuers.contains($0.issuer) }
    // Behind what it goes on from, so that from the end every statement comes before that.
    var held: Set<Digest> = []
    for statement in meant.reversed() where held.contains(statement.id) || tips.contains(statement.id.tip) {
      held.insert(statement.id)
      if let previous = statement.previous { held.insert(previous) }
    }
    return meant.filter { !held.contains($0.id) }
  }

  // MARK: Rooms

  /// What may have ended a room for one of these users, whether or not it counts, with all that it goes on from: his own
  /// leaves, and removals of him or of those by whose invitation he came in, directly or through others. Where an end lists
  /// something that goes on from one of them, up to that: it counts only where what is listed is known.
  ///
  /// - Parameter listed: statements of the room that statements of the fleet list.
  func lines(endingFor users: Set<Text>, listed: Set<Digest>, _ speaker: (Statement) -> Text?) -> Set<Digest> {
    let carriers = carriers(of: users, speaker)
    var lines: Set<Digest> = []
    var behind: Set<Digest> = []
    for statement in ordered {
      let isEnding =
        switch statement.body {
        case .removal(let removal): carriers.contains(removal.user)
        case .leave(let leave): users.contains(leave.user)
        default: false
        }
      guard isEnding || statement.previous.map(behind.contains) == true else { continue }
      behind.insert(statement.id)
      if isEnding || listed.contains(statement.id) { lines.insert(statement.id) }
    }
    // From the end every statement comes before what it goes on from.
    for statement in ordered.reversed() where lines.contains(statement.id) {
      if let previous = statement.previous { lines.insert(previous) }
    }
    return lines
  }

  /// Whether one of these users made the room or was ever invited to it, whether or not that counts.
  func everNamed(_ users: Set<Text>, _ user: (Digest) -> Text?) -> Bool {
    ordered.contains { statement in
      switch statement.body {
      case .room(let room): user(room.by).map(users.contains) ?? false
      case .invitation(let invitation): users.contains(invitation.user)
      default: false
      }
    }
  }

  /// These, and all who invited them, and so on.
  private func carriers(of users: Set<Text>, _ speaker: (Statement) -> Text?) -> Set<Text> {
    var inviters: [Text: Set<Text>] = [:]
    for statement in ordered {
      guard case .invitation(let invitation) = statement.body, let by = speaker(statement) else { continue }
      inviters[invitation.user, default: []].insert(by)
    }
    var (carriers, waiting) = (users, Array(users))
    while let user = waiting.popLast() {
      for inviter in inviters[user, default: []] where carriers.insert(inviter).inserted { waiting.append(inviter) }
    }
    return carriers
  }
}
