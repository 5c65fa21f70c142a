import Engine
import Identity
import Replication

/// Rights as people are told of them, from a snapshot.
struct PermissionDesk {
  let authority: Authority
  let device: PublicKey
  let arrivals: [Digest: Int64?]

  var names: RightsNames { RightsNames(authority) }
  private var words: RightsWords { RightsWords(authority) }

  /// A device once, however many memberships it has: by all of them, and as its last says who it is.
  func members(in partition: PartitionName, _ subject: Statement.Subject?) -> [PermissionStatus] {
    authority.allMembers.compactMap { member in
      let memberships = authority.members(of: member.device)
      guard subject.map({ subject in memberships.contains(where: subject.reaches) }) ?? true else { return nil }
      return status(of: member, memberships.compactMap { authority.permissions(of: $0.id, in: partition) })
    }
    .sorted { ($0.user, $0.label, $0.device) < ($1.user, $1.label, $1.device) }
  }

  /// What ended a device; nothing while one of its memberships stands.
  func ends(of device: PublicKey) -> [RightStatus] {
    authority.isEnded(device) ? ends(of: authority.members(of: device)) : []
  }

  /// What ended these memberships.
  func ends(of memberships: [Member]) -> [RightStatus] {
    let ends = memberships.flatMap { authority.ends(of: .membership($0.id)) }
    return Set(ends).sorted().map { right($0, kind: "end") }
  }

  func grants(_ subject: Statement.Subject?) -> [RightStatus] {
    authority.grants.filter { right in
      guard case .grant(let grant) = right.content else { return false }
      return subject.map { grant.subject == $0 } ?? true
    }.map(status)
  }

  var rules: [RightStatus] { authority.rules.map(status) }

  private func status(of member: Member, _ listings: [PermissionListing]) -> PermissionStatus {
    var status = PermissionStatus()
    let membership = member.membership
    status.device = DeviceID(membership.device).text
    status.label = membership.label.string
    status.user = membership.user.string
    status.role = authority.role(of: membership.device).string
    status.isSelf = membership.device == device
    status.level = "\(listings.map(\.level).max() ?? .none)"
    status.rights = rights(listings)
    status.endedBy = ends(of: membership.device)
    return status
  }

  /// The strongest first; what several memberships have from one statement once, in force where it is for one of them.
  private func rights(_ listings: [PermissionListing]) -> [RightStatus] {
    var (order, found): ([Digest], [Digest: (permission: Permission, isInForce: Bool)]) = ([], [:])
    for listing in listings {
      for permission in listing.permissions {
        if found[permission.id] == nil { order.append(permission.id) }
        let isInForce = permission.isInForce && listing.endedBy.isEmpty || found[permission.id]?.isInForce == true
        found[permission.id] = (permission, isInForce)
      }
    }
    let listed = order.compactMap { found[$0] }
      .sorted { ($1.permission.level, $0.permission.id) < ($0.permission.level, $1.permission.id) }
    return listed.map { permission, isInForce in
      var right = self.right(permission.id, kind: permission.source.rawValue)
      right.level = "\(permission.level)"
      right.isInForce = isInForce
      right.endedBy = permission.endedBy.map { self.right($0, kind: "end") }
      return right
    }
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
    status.manner = statement.endManner?.rawValue ?? ""
    status.issuedAt = statement.notes.issuedAt
    if let arrived = arrivals[id] ?? nil {
      (status.since, status.sinceBy) = (arrived, "arrival")
    } else if let issued = status.issuedAt {
      (status.since, status.sinceBy) = (issued, "issuer")
    }
    return status
  }
}
