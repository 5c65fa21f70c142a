/// What a peer sent in an exchange of devices that have said all that they may, and what did not come into the set, or fell
/// out of it meanwhile (rule C26).
///
/// It comes in with what an admin says that names it. That comes behind it, and where it is long not in the same message: what
/// was not kept until then would not lead to it. Of what fell out the peer was told that it is here, and does not send it.
struct StatementsAside: Sendable {
  private var kept: [Statement] = []
  private var byteCount = 0

  /// As much as one device may say: none is kept before which more bytes lie.
  static let byteLimit = AdmittedStatements.byteLimit

  /// What came with this message, behind what is kept, where something that is new here names statements of its issuers.
  func joining(_ list: [Statement], isHeld: (Statement) -> Bool) -> [Statement] {
    guard !kept.isEmpty else { return list }
    let issuers = Set(kept.map(\.issuer))
    let isNamed = list.contains { statement in
      statement.isOfFleet
        && statement.tips.contains { $0.scope.utf8.isEmpty && $0.tips.contains { issuers.contains($0.issuer) } }
        && !isHeld(statement)
    }
    return isNamed ? kept + list : list
  }

  /// Keeps what of this did not come into the set, and nothing that did.
  mutating func keep(_ list: [Statement], besides authority: Authority) {
    guard !kept.isEmpty || list.contains(where: { authority.fullDevices.contains($0.issuer) }) else { return }
    kept.removeAll { authority.holds($0.id) }
    byteCount = kept.reduce(0) { $0 + $1.encoded.count }
    let known = Set(kept.map(\.id))
    let more = list.filter {
      authority.fullDevices.contains($0.issuer) && !authority.holds($0.id) && !known.contains($0.id)
    }
    // In whatever order they came: each behind what it goes on from.
    for statement in more.sorted(by: { ($0.sequence, $0.id) < ($1.sequence, $1.id) }) {
      guard byteCount <= StatementsAside.byteLimit else { break }
      kept.append(statement)
      byteCount += statement.encoded.count
    }
  }
}
