/// Where a statement stands, without what it says.
package struct StatementPlace: Hashable, Sendable {
  package let issuer: PublicKey
  /// Of a room's creation, the room that it makes.
  package let scope: Text
  package let sequence: UInt64
  package let id: Digest

  package init(issuer: PublicKey, scope: Text, sequence: UInt64, id: Digest) {
    (self.issuer, self.scope, self.sequence, self.id) = (issuer, scope, sequence, id)
  }

  package var isOfFleet: Bool { scope.utf8.isEmpty }
}

extension Authority {
  /// Which of these statements of the fleet, none of them in the set, cannot come into it whatever else comes, unless root makes
  /// their issuer an admin: what stands before them uses up what the issuer may say (rule C26), and each statement that comes
  /// before them moves them further behind. One that an admin names is among them until what names it is here, which brings it.
  ///
  /// Of rooms none is told: what names a statement of a room may be here without it.
  package func leavesOut(_ places: some Sequence<StatementPlace>) -> Set<Digest> {
    let said = Dictionary(grouping: places.filter { $0.isOfFleet && !wasEverAdmin($0.issuer) }, by: \.issuer)
    guard !said.isEmpty else { return [] }
    let held = Dictionary(grouping: fleetStatements.filter { said[$0.issuer] != nil }, by: \.issuer)
    var out: Set<Digest> = []
    for (issuer, places) in said {
      guard let last = lastWithinAllowance(held[issuer] ?? []) else { continue }
      out.formUnion(places.lazy.filter { ($0.sequence, $0.id) > last }.map(\.id))
    }
    return out
  }

  /// Of one issuer's statements of one scope the one behind which none finds room; nil where there is room.
  private func lastWithinAllowance(_ statements: [Statement]) -> (UInt64, Digest)? {
    var bytes = 0
    for (index, statement) in statements.sorted(by: { ($0.sequence, $0.id) < ($1.sequence, $1.id) }).enumerated() {
      bytes += statement.encoded.count
      if index + 1 >= limit || bytes > AdmittedStatements.byteLimit { return (statement.sequence, statement.id) }
    }
    return nil
  }
}
