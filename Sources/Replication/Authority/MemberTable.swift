/// Who belongs to the fleet, and which replica to whom (rules C2, C15).
///
/// Layers are built top down, so that nothing is judged by what it decides: root, admins, members, replicas.
struct MemberTable: Sendable {
  static let adminRole: Text = "admin"

  let root: PublicKey
  let genesis: Statement.Genesis?
  let adminDevices: Set<PublicKey>
  let members: [Digest: Member]
  /// In order of (sequence, id) of their statements.
  let byDevice: [PublicKey: [Member]]
  let byReplica: [ReplicaID: Member]
  /// Declared, but by nobody who may.
  let voidReplicas: Set<ReplicaID>

  init(_ set: StatementSet, root: PublicKey, certificate: ReplicaCertificate) {
    self.root = root
    genesis = set.geneses.first { $0.issuer == root }?.content
    adminDevices = Set(
      set.memberships.lazy.filter { $0.issuer == root && $0.content.role == MemberTable.adminRole }.map(
        \.content.device))

    let counting = set.memberships.filter { [root, adminDevices, admission = genesis?.admissionKey] signed in
      // A role of this name that anyone but the root gave must not gather the grants made to admins either.
      if signed.content.role == MemberTable.adminRole { return signed.issuer == root }
      return signed.issuer == root || signed.issuer == admission || adminDevices.contains(signed.issuer)
    }
    let ordered = counting.map { Member(id: $0.id, membership: $0.content) }
    members = Dictionary(ordered.map { ($0.id, $0) }) { first, _ in first }
    byDevice = Dictionary(grouping: ordered, by: \.device)

    var byReplica: [ReplicaID: Member] = [:]
    for declaration in set.replicas where byReplica[declaration.content.replica] == nil {
      guard let member = members[declaration.content.membership], member.device == declaration.issuer,
        certificate(declaration.content, declaration.issuer)
      else { continue }
      byReplica[declaration.content.replica] = member
    }
    self.byReplica = byReplica
    voidReplicas = Set(set.replicas.lazy.map(\.content.replica).filter { byReplica[$0] == nil })
  }

  /// Root or an admin: memberships by the admission key are the only other way into the fleet.
  func isAdmin(_ key: PublicKey) -> Bool { key == root || adminDevices.contains(key) }
}
