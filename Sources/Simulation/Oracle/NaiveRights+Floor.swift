import Replication

extension NaiveRights {
  /// C8: how much of a chain a context may require: the lowest number that any narrowing ever gave; `UInt64.max`: none did.
  package func floor(of replica: ReplicaID, in partition: Text) -> UInt64 {
    if facts.set.full.contains("") || facts.set.full.contains(partition) { return 0 }
    return facts.declarations(of: replica).map { floor(under: $0, in: partition) }.min() ?? .max
  }

  private func floor(under fact: NaiveFact<Statement.ReplicaDeclaration>, in partition: Text) -> UInt64 {
    let replica = fact.content.replica
    guard let member = facts.member(fact.content.membership) else { return .max }
    if ever.couldHaveFallen(fact.statement) || ever.couldHaveFallen(member.statement) { return 0 }
    let granted = facts.grants.filter {
      $0.content.level.rawValue >= AccessLevel.write.rawValue && $0.reaches(member) && $0.matches(partition)
        && ever.wasEntitled($0.issuer)
    }
    let ruled = facts.rules.filter { ever.wasEntitled($0.issuer) }
    if (granted.map(\.statement) + ruled.map(\.statement)).contains(where: ever.couldHaveFallen) { return 0 }
    let narrowings =
      ever.narrowings(of: .membership(member.id)) + ever.narrowings(of: .replica(replica))
      + granted.flatMap { ever.lowerings(of: $0, below: .write) } + ruled.flatMap { ever.narrowings(of: .grant($0.id)) }
    let words = narrowings.map { facts.listing(of: $0).word(on: replica, in: partition).sequence }
    return min(words.min() ?? .max, rooms[partition]?.floor(of: member, replica) ?? .max)
  }
}
