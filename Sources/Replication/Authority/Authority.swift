/// Everything that follows from a *set* of statements: no clock, no order of arrival (rule C10).
///
/// A value: whoever needs rights on another thread holds a snapshot. Signatures, encodings and the fleet of statements
/// are checked before they come here. Building costs O(n log n) in the number of statements, questions a few look-ups.
package struct Authority: Sendable {
  package let root: PublicKey
  let members: MemberTable
  let grants: GrantTable
  /// Rules that count, by key.
  let rules: [Text: [Digest]]
  let floors: FloorTable
  private let statements: [Digest: Statement]
  private let certificate: ReplicaCertificate

  package init(root: PublicKey, statements: some Sequence<Statement>, certificate: @escaping ReplicaCertificate) {
    let byID = Dictionary(statements.map { ($0.id, $0) }) { first, _ in first }
    let set = StatementSet(byID.values)
    let members = MemberTable(set, root: root, certificate: certificate)
    self.root = root
    self.members = members
    grants = GrantTable(set.grants, members: members)
    rules = Dictionary(grouping: set.rules.filter { members.isAdmin($0.issuer) }, by: \.content.key)
      .mapValues { $0.map(\.id) }
    floors = FloorTable(set, members: members, certificate: certificate)
    self.statements = byID
    self.certificate = certificate
  }

  /// With the protocol's own replica ids: ``ReplicaID/derived(device:nonce:_:)``.
  package init(root: PublicKey, statements: some Sequence<Statement> = [], hash: @escaping HashFunction) {
    self.init(root: root, statements: statements) { declaration, issuer in
      let device = DeviceID.derived(from: issuer, hash)
      return ReplicaID.derived(device: device, nonce: declaration.nonce, hash) == declaration.replica
    }
  }

  /// The same authority where nothing of `more` is new.
  package func adding(_ more: some Sequence<Statement>) -> Authority {
    let new = more.filter { statements[$0.id] == nil }
    guard !new.isEmpty else { return self }
    return Authority(root: root, statements: Array(statements.values) + new, certificate: certificate)
  }

  package var count: Int { statements.count }
  package var statementIDs: [Digest] { statements.keys.sorted() }
  package func holds(_ id: Digest) -> Bool { statements[id] != nil }
  package subscript(id: Digest) -> Statement? { statements[id] }

  /// Digest over the sorted ids: equal sets, and only they, have equal digests.
  package func digest(_ hash: HashFunction) -> Digest {
    var input = DomainTag.authority.bytes
    input.reserveCapacity(DomainTag.byteCount + statements.count * Digest.byteCount)
    for id in statementIDs { id.append(to: &input) }
    return Digest.of(input, hash)
  }
}
