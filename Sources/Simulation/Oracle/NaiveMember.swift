import Replication

/// A membership in any shape (C27).
struct NaiveMember {
  let statement: Statement
  let device: PublicKey
  let role: Text
  let user: Text
  /// Nil where its shape is not read.
  let content: Statement.Membership?

  var id: Digest { statement.id }

  /// Nil: no membership.
  init?(_ statement: Statement) {
    switch statement.body {
    case .membership(let content):
      (device, role, user, self.content) = (content.device, content.role, content.user, content)
    case .unknown(let unknown):
      guard let member = unknown.member else { return nil }
      (device, role, user, content) = (member.device, member.role, member.user, nil)
    default: return nil
    }
    self.statement = statement
  }

  /// C19.
  func isOf(agency: Text) -> Bool {
    guard case .string(let own)? = content?.profile["agency"] else { return false }
    return own == agency
  }

  /// Nil where none is named.
  var namedUser: Text? { user.string.isEmpty ? nil : user }
}

/// A statement in the set with what it says.
struct NaiveFact<Content: Sendable>: Sendable {
  let statement: Statement
  let content: Content

  var id: Digest { statement.id }
  var issuer: PublicKey { statement.issuer }
}

extension NaiveFact<Statement.Grant> {
  /// C16, C17: later grants of one register replace earlier ones.
  func sharesRegister(_ other: Self) -> Bool {
    issuer == other.issuer && content.subject == other.content.subject && content.pattern == other.content.pattern
  }

  func precedes(_ other: Self) -> Bool {
    (statement.sequence, id) < (other.statement.sequence, other.id)
  }

  /// C16: subject: device, user, role or `*`.
  func reaches(_ member: NaiveMember) -> Bool {
    switch content.subject {
    case .device(let key): member.device == key
    case .user(let user): member.user == user
    case .role(let role): member.role == role
    case .everyone: true
    }
  }

  func matches(_ partition: Text) -> Bool { NaivePattern(content.pattern).matches(partition) }
}
