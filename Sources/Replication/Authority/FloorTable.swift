/// What a context may at least be required to show of a chain (rule C8), whatever else will be learned.
///
/// The floor only falls as statements arrive, so that who knows more can always take what who knows less sends. Hence it
/// asks for everything that was *ever* said by someone who was ever entitled, not for what counts now.
struct FloorTable: Sendable {
  private struct Narrowed: Sendable {
    let pattern: NamePattern
    /// The grant itself could have fallen.
    let isShaken: Bool
    let lowerings: [[Statement.ChainEnd]]
  }

  private let memberships: [ReplicaID: [Statement.Membership]]
  /// Grants to write that something narrowed, by subject: empty in the usual case.
  private let narrowed: [Statement.Subject: [Narrowed]]

  init(_ set: StatementSet, members: MemberTable, certificate: ReplicaCertificate) {
    let byID = Dictionary(set.memberships.map { ($0.id, $0.content) }) { first, _ in first }
    let registers = Dictionary(grouping: set.grants, by: GrantTable.Register.init)
    func lowerings(_ grant: Signed<Statement.Grant>, below level: AccessLevel) -> [Signed<Statement.Grant>] {
      registers[GrantTable.Register(grant), default: []].filter { $0.content.level < level && grant.precedes($0) }
    }

    let managing = set.grants.filter { $0.content.level == .manage }
    let shaken = FloorTable.devices(
      reachedBy: managing.filter { !lowerings($0, below: .manage).isEmpty }, of: set.memberships)
    let admitted = set.memberships.filter {
      members.isAdmin($0.issuer) || $0.issuer == members.genesis?.admissionKey
    }
    let managers = FloorTable.devices(reachedBy: managing.filter { members.isAdmin($0.issuer) }, of: admitted)

    var narrowed: [Statement.Subject: [Narrowed]] = [:]
    for grant in set.grants where grant.content.level >= .write {
      guard members.isAdmin(grant.issuer) || managers.contains(grant.issuer) else { continue }
      let lower = lowerings(grant, below: .write).map(\.content.ends)
      let isShaken = shaken.contains(grant.issuer)
      guard isShaken || !lower.isEmpty else { continue }
      narrowed[grant.content.subject, default: []].append(
        Narrowed(pattern: NamePattern(grant.content.pattern), isShaken: isShaken, lowerings: lower))
    }
    self.narrowed = narrowed
    memberships = Dictionary(
      grouping: set.replicas.filter { certificate($0.content, $0.issuer) }, by: \.content.replica
    )
    .mapValues { $0.compactMap { byID[$0.content.membership] } }
  }

  /// `UInt64.max`: nothing ever narrowed the chain.
  func floor(of replica: ReplicaID, in partition: PartitionName) -> UInt64 {
    guard !narrowed.isEmpty else { return .max }
    let chain = Statement.ChainEnd.Chain.changes(partition: partition.text, replica: replica)
    var lowest = UInt64.max
    for subject in memberships[replica, default: []].flatMap(\.subjects) {
      for grant in narrowed[subject, default: []] where grant.pattern.matches(partition) {
        if grant.isShaken { return 0 }
        for ends in grant.lowerings { lowest = min(lowest, ends.position(of: chain)?.sequence ?? 0) }
      }
    }
    return lowest
  }

  private static func devices(
    reachedBy grants: [Signed<Statement.Grant>], of memberships: [Signed<Statement.Membership>]
  ) -> Set<PublicKey> {
    let subjects = Set(grants.map(\.content.subject))
    guard !subjects.isEmpty else { return [] }
    return Set(
      memberships.lazy.map(\.content).filter { !subjects.isDisjoint(with: $0.subjects) }.map(\.device))
  }
}
