/// What a peer said last in an exchange, of devices whose word is bounded, and what fell out of the set meanwhile (rule C26).
///
/// What an admin names of a device that has said all that it may comes in with his statement alone. That comes right behind it
/// (``TellingOrder``), and where it is long not in the same message: what was not kept until then would not lead to it. What
/// came last is kept and not what came first, so that nothing that members say without end takes the place of what an end names.
struct StatementsAside: Sendable {
  /// As they came; whether they are in the set does not matter, for what comes behind them may push them out.
  private var brought: [Kept] = []
  private var byteCount = 0

  /// As it was signed: read, it may take eight times the memory.
  private struct Kept: Sendable {
    let id: Digest
    let issuer: PublicKey
    let encoded: [UInt8]

    init(_ statement: Statement) {
      (id, issuer, encoded) = (statement.id, statement.issuer, statement.encoded)
    }
  }

  /// As much as one device may say, which is all of it that one statement of an admin names and no earlier one did.
  static let limit = AdmittedStatements.limit
  static let byteLimit = AdmittedStatements.byteLimit + Statement.byteLimit

  /// What came with this message, behind what is kept, where something that is new here names statements of its issuers.
  ///
  /// - Parameter read: what is kept, whose signature was checked when it came.
  func joining(
    _ list: [Statement], isHeld: (Statement) -> Bool, read: (_ id: Digest, _ encoded: [UInt8]) -> Statement?
  ) -> [Statement] {
    guard !brought.isEmpty else { return list }
    let issuers = Set(brought.map(\.issuer))
    let isNamed = list.contains { statement in
      statement.fleetTips.contains { issuers.contains($0.issuer) } && !isHeld(statement)
    }
    return isNamed ? brought.compactMap { read($0.id, $0.encoded) } + list : list
  }

  /// Keeps what of this root and admins did not say: that is in the set, however much it is.
  mutating func keep(_ list: [Statement], besides authority: Authority) {
    for statement in list where statement.isOfFleet && !authority.wasEverAdmin(statement.issuer) {
      // What is in the set takes no room of its own.
      brought.append(Kept(authority[statement.id] ?? statement))
      byteCount += statement.encoded.count
    }
    var excess = 0
    while brought.count - excess > StatementsAside.limit || byteCount > StatementsAside.byteLimit {
      byteCount -= brought[excess].encoded.count
      excess += 1
    }
    brought.removeFirst(excess)
  }

  /// Keeps what fell out of the set, as far as there is room beside what came: the peer was told that it is here, and may not say
  /// it.
  mutating func keep(displaced: [Statement]) {
    let known = Set(brought.map(\.id))
    var more: [Kept] = []
    for statement in displaced where statement.isOfFleet && !known.contains(statement.id) {
      let bytes = byteCount + statement.encoded.count
      guard brought.count + more.count < StatementsAside.limit, bytes <= StatementsAside.byteLimit else { continue }
      more.append(Kept(statement))
      byteCount = bytes
    }
    brought.insert(contentsOf: more, at: 0)
  }
}
