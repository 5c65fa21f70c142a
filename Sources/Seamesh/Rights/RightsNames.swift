import Identity
import Replication

/// Whom people mean by a name.
struct RightsNames {
  private let authority: Authority

  init(_ authority: Authority) { self.authority = authority }

  /// `device:LABEL-or-key`, `user:ID`, `role:ROLE`, `everyone`.
  func subject(_ text: String) throws(NodeError) -> Statement.Subject {
    if text == "everyone" { return .everyone }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, !parts[1].isEmpty else { throw RightsNames.notWho(text) }
    guard parts[0] != "device" else { return .device(try device(parts[1])) }
    let name = Text(parts[1])
    try NodeSetup.check(name, "a name", mayBeEmpty: false)
    switch parts[0] {
    case "user": return .user(name)
    case "role": return .role(name)
    default: throw RightsNames.notWho(text)
    }
  }

  private static func notWho(_ text: String) -> NodeError {
    NodeError(
      .unprocessable, "\(text) names nobody: write device:LABEL or device:KEY, user:ID, role:ROLE, or everyone")
  }

  /// By its label, or the beginning of its key as `devices` shows it; `device:` may stand before it.
  func device(_ text: String) throws(NodeError) -> PublicKey {
    let name = text.hasPrefix("device:") ? String(text.dropFirst("device:".count)) : text
    let members = authority.allMembers
    let labelled = members.filter { $0.membership.label == Text(name) }
    let found =
      !labelled.isEmpty || name.count < DeviceID.shortTextLength
      ? labelled : members.filter { DeviceID($0.device).text.hasPrefix(name) }
    guard let first = found.first else {
      throw NodeError(.notFound, "there is no device \(name) in this fleet; seamesh devices shows those there are")
    }
    guard found.count == 1 else {
      let ids = found.map { DeviceID($0.device).shortText }.joined(separator: ", ")
      throw NodeError(.unprocessable, "\(found.count) devices are called \(name): name one by its key (\(ids))")
    }
    return first.device
  }

  func level(_ text: String) throws(NodeError) -> AccessLevel {
    guard let level = AccessLevel.allCases.first(where: { "\($0)" == text }) else {
      let names = AccessLevel.allCases.map { "\($0)" }.joined(separator: ", ")
      throw NodeError(.unprocessable, "\(text) is no level: there are \(names)")
    }
    return level
  }

  func pattern(_ text: Text) throws(NodeError) -> Text {
    guard Statement.Grant.isPattern(text) else {
      throw NodeError(
        .unprocessable,
        "\(text.string) is no pattern: it is a partition's name of 1 to \(PartitionName.byteLimit) bytes without control "
          + "characters, or the beginning of names with one * at its end")
    }
    return text
  }

  /// Counting narrowings that `raise` may name: of a device, or the one whose id begins so.
  func narrowings(_ text: String) throws(NodeError) -> [Digest] {
    if text.count >= DeviceID.shortTextLength {
      let narrowings = authority.grants.flatMap(\.endedBy) + authority.rules.flatMap(\.endedBy)
      let found = Set(narrowings + authority.membershipEnds).filter { $0.text.hasPrefix(text) }
      if !found.isEmpty { return found.sorted() }
    }
    return authority.members(of: try device(text)).flatMap { authority.ends(of: .membership($0.id)) }
  }

  /// Whether a grant reaches anybody yet.
  func isKnown(_ subject: Statement.Subject) -> Bool { !authority.devices(reachedBy: subject).isEmpty }
}

extension Authority {
  /// Counting ends of memberships.
  var membershipEnds: [Digest] { allMemberships.flatMap { ends(of: .membership($0.id)) } }
}
