import Replication

/// Rights and the statements that they follow from, as people read them.
package struct RightsWords: Sendable {
  private let authority: Authority

  package init(_ authority: Authority) { self.authority = authority }

  /// What a device may do in a partition, and by what: the second half of a sentence.
  package func standing(of device: PublicKey, in partition: PartitionName) -> String {
    let listings = authority.members(of: device).compactMap { authority.permissions(of: $0.id, in: partition) }
    guard let best = listings.max(by: { $0.level < $1.level }) else { return "it is no member of the fleet" }
    guard best.endedBy.isEmpty || best.level > .none else {
      return "its membership was ended by \(best.endedBy.map { words(of: $0) }.joined(separator: " and "))"
    }
    guard best.level > .none else { return nothing(best) }
    return "it may \(best.level.verb) there, by \(best.reasons.map { words(of: $0.id) }.joined(separator: " and "))"
  }

  private func nothing(_ listing: PermissionListing) -> String {
    let ended = listing.permissions.filter { !$0.isInForce && $0.level > .none }
    guard let last = ended.first else { return "nothing gives it any right there" }
    let by = last.endedBy.map { words(of: $0) }.joined(separator: " and ")
    return "\(words(of: last.id)) was ended" + (by.isEmpty ? "" : " by \(by)")
  }

  /// One statement, with the beginning of its id.
  package func words(of id: Digest) -> String {
    guard let statement = authority[id] else { return "statement \(id.shortText)" }
    return "\(words(statement.body)) (\(id.shortText))"
  }

  package func words(_ body: Statement.Body) -> String {
    switch body {
    case .grant(let grant): "the grant \(words(grant.subject)) \(grant.level) \(grant.pattern.string)"
    case .rule(let rule): "the rule \(rule.key.string)="
    case .end(let end): words(end)
    case .raise(let raise): "the raise of \(raise.end.shortText)"
    case .membership(let membership): "the membership of \(membership.label.string)"
    case .room: "the creation of the room"
    case .invitation(let invitation): "the invitation of \(invitation.user.string)"
    default: "a statement"
    }
  }

  private func words(_ end: Statement.End) -> String {
    let how =
      switch end.reason {
      case .close: "closing"
      case .retire: "end"
      case .compromised: "revocation as compromised"
      }
    return switch end.target {
    case .membership(let id): "the \(how) of \(authority.membership(id).map { name(of: $0) } ?? id.shortText)"
    case .replica(let replica): "the \(how) of replica \(RightsWords.digits(replica.bytes.prefix(4)))"
    case .grant(let id): "the \(how) of \(id.shortText)"
    }
  }

  /// As it is written in `grant`.
  package func words(_ subject: Statement.Subject) -> String {
    switch subject {
    case .everyone: "everyone"
    case .user(let user): "user:\(user.string)"
    case .role(let role): "role:\(role.string)"
    case .device(let key): "device:\(name(of: key))"
    }
  }

  package func name(of key: PublicKey) -> String {
    if key == authority.root { return "the fleet's root" }
    return authority.member(of: key).map { name(of: $0) } ?? RightsWords.digits(key.bytes.prefix(4))
  }

  private func name(of member: Member) -> String {
    member.membership.label.utf8.isEmpty
      ? RightsWords.digits(member.device.bytes.prefix(4)) : member.membership.label.string
  }

  fileprivate static func digits(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}

extension AccessLevel {
  fileprivate var verb: String {
    switch self {
    case .none: "do nothing"
    case .carry: "only carry"
    case .read: "only read"
    case .write: "write"
    case .manage: "manage"
    }
  }
}

extension Digest {
  /// The first 8 hexadecimal digits: for people.
  package var shortText: String { RightsWords.digits(bytes.prefix(4)) }
}
