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
  /// A room's creation, which everybody in the room needs.
  var createsItsScope: Bool { scope == PartitionName.room(createdBy: id) }
}

extension Authority {
  /// Which of these, none of them in the set, cannot come into it whatever else comes, unless root makes their issuer an admin:
  /// statements of the issuer that stand before them use up what it may say in their scope (rule C26), and each that comes
  /// before them moves them further behind. One that an admin names is among them until what names it is here.
  package func leavesOut(_ places: some Sequence<StatementPlace>) -> Set<Digest> {
    var out: Set<Digest> = []
    for (scope, said) in Dictionary(grouping: places, by: \.scope) {
      let held = Dictionary(grouping: statements(of: scope), by: \.issuer)
      for (issuer, places) in Dictionary(grouping: said, by: \.issuer) where !wasEverAdmin(issuer) {
        guard let last = lastWithinAllowance(held[issuer] ?? []) else { continue }
        out.formUnion(places.lazy.filter { !$0.createsItsScope && ($0.sequence, $0.id) > last }.map(\.id))
      }
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
