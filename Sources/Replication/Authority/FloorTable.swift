/// What a context may at least be required to show of a chain (rule C8), whatever else will be learned.
///
/// The floor only falls as statements arrive, so that who knows more can always take what who knows less sends. Hence it
/// asks for everything that was *ever* said by someone who was ever entitled, not for what counts now.
struct FloorTable: Sendable {
  private struct Declaration: Sendable {
    /// It or the membership that it names could have fallen.
    let isShaken: Bool
    let membership: Digest
    let user: Text
    let subjects: [Statement.Subject]
  }

  private struct Narrowed: Sendable {
    let pattern: NamePattern
    /// The grant itself could have fallen.
    let isShaken: Bool
    let words: [ListedWord]
  }

  private let fullScopes: Set<Text>
  private let entitled: EntitledDevices
  /// The declarations of a replica, by devices that it belongs to.
  private var declarations: [ReplicaID: [Declaration]] = [:]
  /// Grants to write that something narrowed, by subject: empty in the usual case.
  private var narrowed: [Statement.Subject: [Narrowed]] = [:]
  private var isAnyRuleShaken = false
  private var ruleWords: [ListedWord] = []

  init(_ index: StatementIndex, _ entitled: EntitledDevices, full: Set<Text>) {
    (self.entitled, fullScopes) = (entitled, full)
    let lowerings = Lowerings(index, entitled)
    let doubts = ShakenStatements(index, entitled, lowerings)
    collectDeclarations(index, doubts)
    for grant in index.grants where grant.content.level >= .write && entitled.contains(grant.issuer) {
      let words = lowerings.words(on: grant, below: .write)
      let isShaken = doubts.contains(grant.id, by: grant.issuer) || doubts.managers.contains(grant.issuer)
      guard isShaken || !words.isEmpty else { continue }
      narrowed[grant.content.subject, default: []].append(
        Narrowed(pattern: NamePattern(grant.content.pattern), isShaken: isShaken, words: words))
    }
    for rule in index.rules where entitled.contains(rule.issuer) {
      if doubts.contains(rule.id, by: rule.issuer) { isAnyRuleShaken = true }
      ruleWords += entitled.narrowings(of: .grant(rule.id))
    }
  }

  /// `UInt64.max`: nothing ever narrowed the chain. `room`: what is known of the room of that name.
  func floor(of replica: ReplicaID, in partition: PartitionName, room: RoomRights?) -> UInt64 {
    if fullScopes.contains("") || fullScopes.contains(partition.text) { return 0 }
    let declarations = declarations[replica, default: []]
    guard !declarations.isEmpty else { return .max }
    if isAnyRuleShaken || declarations.contains(where: \.isShaken) { return 0 }
    var words = ruleWords + entitled.narrowings(of: .replica(replica))
    var lowest = UInt64.max
    for declaration in declarations {
      words += entitled.narrowings(of: .membership(declaration.membership))
      if let room { lowest = min(lowest, room.floor(for: declaration.user, of: replica)) }
      guard !narrowed.isEmpty else { continue }
      for grant in declaration.subjects.flatMap({ narrowed[$0, default: []] }) where grant.pattern.matches(partition) {
        if grant.isShaken { return 0 }
        words += grant.words
      }
    }
    return min(lowest, words.map { $0.bound(of: replica, in: partition.text).sequence }.min() ?? .max)
  }

  private mutating func collectDeclarations(_ index: StatementIndex, _ doubts: ShakenStatements) {
    let memberships = index.statedMemberships
    for signed in index.replicas {
      guard let membership = memberships[signed.content.membership] else { continue }
      let isShaken =
        doubts.contains(signed.id, by: signed.issuer)
        || doubts.contains(signed.content.membership, by: membership.issuer)
      declarations[signed.content.replica, default: []].append(
        Declaration(
          isShaken: isShaken, membership: signed.content.membership, user: membership.user,
          subjects: membership.subjects))
    }
  }
}

/// Whatever was ever said against a grant: later grants of its register, and ends by anyone entitled.
private struct Lowerings {
  private let registers: [GrantTable.Register: [Signed<Statement.Grant>]]
  private let entitled: EntitledDevices
  private let index: StatementIndex

  init(_ index: StatementIndex, _ entitled: EntitledDevices) {
    (self.index, self.entitled) = (index, entitled)
    registers = Dictionary(grouping: index.grants, by: GrantTable.Register.init)
  }

  func words(on grant: Signed<Statement.Grant>, below level: AccessLevel) -> [ListedWord] {
    let lower = registers[GrantTable.Register(grant), default: []].filter {
      $0.content.level < level && grant.precedes($0)
    }
    return entitled.narrowings(of: .grant(grant.id)) + lower.map { index.word(of: $0.id) }
  }
}

/// Statements that could have fallen: an end on their issuer, raises ignored, does not list them.
private struct ShakenStatements {
  /// By device: what each end on one of its memberships lists of its statements.
  private var listed: [PublicKey: [CoveredStatements]] = [:]
  /// Devices that a manage grant reaches which was ever lowered: every grant of theirs could have fallen.
  let managers: Set<PublicKey>

  init(_ index: StatementIndex, _ entitled: EntitledDevices, _ lowerings: Lowerings) {
    for (membership, stated) in index.statedMemberships {
      let device = stated.device
      let words = entitled.narrowings(of: .membership(membership)).compactMap { $0.statements(of: device) }
      if !words.isEmpty { listed[device, default: []] += words }
    }
    let lowered = index.grants.filter {
      $0.content.level == .manage && !lowerings.words(on: $0, below: .manage).isEmpty
    }
    let subjects = Set(lowered.map(\.content.subject))
    managers = Set(
      index.memberships.lazy.map(\.content).filter { !subjects.isDisjoint(with: $0.subjects) }.map(\.device))
  }

  func contains(_ id: Digest, by issuer: PublicKey) -> Bool {
    listed[issuer]?.contains { !$0.contains(id) } ?? false
  }
}
