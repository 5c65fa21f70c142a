import Engine
import Identity
import Replication

/// Whom people mean by a name.
struct RightsNames {
  private let authority: Authority

  init(_ authority: Authority) { self.authority = authority }

  /// A device that was named, and which it is, where its label alone does not say.
  struct Named {
    let device: PublicKey
    var note: String?
  }

  /// `device:LABEL-or-key`, `user:ID`, `role:ROLE`, `everyone`.
  func subject(
    _ text: String, prefersStanding: Bool = false
  ) throws(NodeError) -> (subject: Statement.Subject, note: String?) {
    switch try RightsForm.who(text) {
    case .everyone: return (.everyone, nil)
    case .user(let name): return (.user(name), nil)
    case .role(let name): return (.role(name), nil)
    case .device(let name):
      let named = try device(name, prefersStanding: prefersStanding)
      return (.device(named.device), named.note)
    }
  }

  /// Of a key, where there is no such label. Fewer could be the beginning of a mistyped label.
  private static let fewestDigits = 4

  /// By its label, or the beginning of its key as `devices` shows it; `device:` may stand before it.
  func device(_ text: String, prefersStanding: Bool = false) throws(NodeError) -> Named {
    let name = text.hasPrefix("device:") ? String(text.dropFirst("device:".count)) : text
    let members = authority.allMembers
    let labelled = members.filter { $0.membership.label == Text(name) }
    let found =
      !labelled.isEmpty || name.count < RightsNames.fewestDigits
      ? labelled : members.filter { DeviceID($0.device).text.hasPrefix(name) }
    guard let first = found.first else {
      throw NodeError(.notFound, "there is no device \(name) in this fleet; seamesh devices shows those there are")
    }
    guard found.count > 1 else { return Named(device: first.device) }
    // The beginning of a key that fits two of them is mistyped, or too short.
    if !labelled.isEmpty, prefersStanding, let named = standing(found.map(\.device), name) { return named }
    let ids = found.map { list($0.device) }.joined(separator: ", ")
    throw NodeError(.unprocessable, "\(found.count) devices are called \(name): name one by its key (\(ids))")
  }

  /// Of several of one label the one that was not ended, where there is just one: a device that was reset and joined again has the
  /// label of the one that was ended.
  private func standing(_ devices: [PublicKey], _ label: String) -> Named? {
    let those = devices.filter { !authority.isEnded($0) }
    guard those.count == 1, let device = those.first else { return nil }
    let others = devices.filter { $0 != device }.map(list).joined(separator: ", ")
    let note =
      "\(devices.count) devices are called \(label): the one that was not ended is taken, \(DeviceID(device).shortText); "
      + "to name another write its key instead: \(others)"
    return Named(device: device, note: note)
  }

  /// The beginning of its key.
  private func list(_ device: PublicKey) -> String {
    DeviceID(device).shortText + (authority.isEnded(device) ? " (ended)" : "")
  }

  func level(_ text: String) throws(NodeError) -> AccessLevel {
    guard let level = AccessLevel.allCases.first(where: { "\($0)" == text }) else {
      let names = AccessLevel.allCases.map { "\($0)" }.joined(separator: ", ")
      throw NodeError(.unprocessable, "\(text) is no level: there are \(names)")
    }
    return level
  }

  /// Counting narrowings that `raise` may name: of a device, or the one whose id begins so.
  func narrowings(_ text: String) throws(NodeError) -> [Digest] {
    if text.count >= DeviceID.shortTextLength {
      let narrowings = authority.grants.flatMap(\.endedBy) + authority.rules.flatMap(\.endedBy)
      let all = authority.closersOfGrants.union(narrowings + authority.membershipEnds)
      let found = all.filter { $0.text.hasPrefix(text) }
      if !found.isEmpty { return found.sorted() }
      try checkNarrows(text)
    }
    return authority.members(of: try device(text).device).flatMap { authority.ends(of: .membership($0.id)) }
  }

  /// Refuses what looks like a statement's id, and neither narrows anything nor is a device's.
  private func checkNarrows(_ text: String) throws(NodeError) {
    if let right = (authority.grants + authority.rules).first(where: { $0.id.text.hasPrefix(text) }) {
      throw NodeError(
        .unprocessable, "\(RightsWords(authority).words(of: right.id)) takes nothing away that could be raised")
    }
    guard text.utf8.allSatisfy(RightsNames.isDigit) else { return }
    do throws(NodeError) {
      _ = try device(text)
    } catch  where error.code == .notFound {
      throw unknownID(text)
    }
  }

  private func unknownID(_ text: String) -> NodeError {
    NodeError(
      .notFound,
      "nothing that takes something away has an id that begins with \(text), and no device: seamesh permissions and seamesh "
        + "devices show what there is")
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  /// Whether a grant reaches anybody yet.
  func isKnown(_ subject: Statement.Subject) -> Bool { !authority.devices(reachedBy: subject).isEmpty }

  /// Whether a device has the role, somebody granted it something, or it means something in every fleet.
  func isInUse(role: Text) -> Bool {
    BackendWitness.roles.contains(role) || isKnown(.role(role))
      || authority.grants.contains { listed in
        if case .grant(let grant) = listed.content { grant.subject == .role(role) } else { false }
      }
  }
}

extension Authority {
  /// Counting ends of memberships.
  var membershipEnds: [Digest] { allMemberships.flatMap { ends(of: .membership($0.id)) } }
}
