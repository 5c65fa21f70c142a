/// A membership that counts.
package struct Member: Hashable, Sendable {
  /// Id of the membership statement.
  package let id: Digest
  package let membership: Statement.Membership

  package init(id: Digest, membership: Statement.Membership) { (self.id, self.membership) = (id, membership) }

  package var device: PublicKey { membership.device }
  package var user: Text { membership.user }
}

extension Statement.Membership {
  /// A profile attribute, where it is a string.
  func attribute(_ name: Text) -> Text? {
    guard case .string(let text)? = profile[name] else { return nil }
    return text
  }

  /// The subjects by which a grant reaches this membership.
  var subjects: [Statement.Subject] { [.device(device), .user(user), .role(role), .everyone] }
}

extension Statement.Subject {
  func reaches(_ membership: Statement.Membership) -> Bool {
    switch self {
    case .device(let key): key == membership.device
    case .user(let user): user == membership.user
    case .role(let role): role == membership.role
    case .everyone: true
    }
  }
}
