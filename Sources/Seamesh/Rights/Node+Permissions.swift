import Engine
import Identity
import Replication
import Storage

extension Node {
  /// Who may do what, and by which statements. With a partition: what each device may there; without: the grants.
  package func permissions(_ partition: PartitionName?, who: String?) throws(NodeError) -> PermissionReport {
    let desk = try permissionDesk()
    let subject: Statement.Subject? = if let who { try desk.names.subject(who) } else { nil }
    var report = PermissionReport()
    if let partition {
      report.members = desk.members(in: partition, subject)
    } else {
      report.rights = desk.grants(subject)
    }
    return report
  }

  package func rules() throws(NodeError) -> [RightStatus] { try permissionDesk().rules }

  /// Whether this device may do so much in the partition.
  package func may(_ level: AccessLevel, in partition: PartitionName) throws(NodeError) -> Bool {
    try onEngine { engine in
      engine.state.mesh.authority.level(of: engine.state.identity.device, in: partition) >= level
    }
  }

  private func permissionDesk() throws(NodeError) -> PermissionDesk {
    let authority = try onEngine { $0.state.mesh.authority }
    let arrivals = try reading { reader in
      Dictionary(try reader.statements().map { ($0.id, $0.arrived) }) { first, _ in first }
    }
    return PermissionDesk(authority: authority, device: files.deviceKey.publicKey, arrivals: arrivals)
  }
}

/// Rights as people are told of them, from a snapshot.
private struct PermissionDesk {
  let authority: Authority
  let device: PublicKey
  let arrivals: [Digest: Int64?]

  var names: RightsNames { RightsNames(authority) }
  private var words: RightsWords { RightsWords(authority) }

  func members(in partition: PartitionName, _ subject: Statement.Subject?) -> [PermissionStatus] {
    authority.allMemberships.filter { member in subject.map { $0.reaches(member) } ?? true }
      .compactMap { authority.permissions(of: $0.id, in: partition) }.map(status)
      .sorted { ($0.user, $0.label, $0.device) < ($1.user, $1.label, $1.device) }
  }

  func grants(_ subject: Statement.Subject?) -> [RightStatus] {
    authority.grants.filter { right in
      guard case .grant(let grant) = right.content else { return false }
      return subject.map { grant.subject == $0 } ?? true
    }.map(status)
  }

  var rules: [RightStatus] { authority.rules.map(status) }

  private func status(_ listing: PermissionListing) -> PermissionStatus {
    var status = PermissionStatus()
    let membership = listing.member.membership
    status.device = DeviceID(membership.device).text
    status.label = membership.label.string
    status.user = membership.user.string
    status.role = membership.role.string
    status.isSelf = membership.device == device
    status.level = "\(listing.level)"
    status.rights = listing.permissions.map { permission in
      var right = self.right(permission.id, kind: permission.source.rawValue)
      right.level = "\(permission.level)"
      right.isInForce = permission.isInForce && listing.endedBy.isEmpty
      right.endedBy = permission.endedBy.map { self.right($0, kind: "end") }
      return right
    }
    status.endedBy = listing.endedBy.map { right($0, kind: "end") }
    return status
  }

  private func status(_ right: ListedRight) -> RightStatus {
    var status: RightStatus
    switch right.content {
    case .grant(let grant):
      status = self.right(right.id, kind: "grant")
      status.level = "\(grant.level)"
    case .rule: status = self.right(right.id, kind: "rule")
    }
    status.isInForce = right.isInForce
    status.endedBy = right.endedBy.map { self.right($0, kind: "end") }
    return status
  }

  private func right(_ id: Digest, kind: String) -> RightStatus {
    var status = RightStatus()
    status.id = id.text
    status.kind = kind
    guard let statement = authority[id] else { return status }
    status.words = words.words(statement.body)
    status.issuer = words.name(of: statement.issuer)
    if let arrived = arrivals[id] ?? nil {
      (status.since, status.sinceBy) = (arrived, "arrival")
    } else if let issued = statement.notes.issuedAt {
      (status.since, status.sinceBy) = (issued, "issuer")
    }
    return status
  }
}

extension StatementNotes {
  /// Milliseconds since 1970 by the issuer's clock.
  var issuedAt: Int64? {
    guard let bytes = self[Key.issuedAt], bytes.count == 8 else { return nil }
    return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }
}
