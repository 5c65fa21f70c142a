import Replication

/// C15: root above admins above everyone else. From the top down, so that nothing is judged by what it decides.
struct NaiveRank {
  let facts: NaiveFacts
  /// Only root makes admins.
  private(set) var admins: [NaiveMember] = []
  /// Memberships that count, admins' among them.
  private(set) var members: [NaiveMember] = []
  /// C27: memberships of unknown shape that somebody signed who may.
  private(set) var strange: [NaiveMember] = []
  /// C2: under which membership a replica is declared.
  private(set) var replicas: [ReplicaID: NaiveMember] = [:]
  /// C13: of its device's statements those that a membership carries; not there: all.
  private var counts: [Digest: Set<Digest>] = [:]
  /// The same by root's word alone.
  private var countsByRoot: [Digest: Set<Digest>] = [:]

  init(_ facts: NaiveFacts) {
    self.facts = facts
    admins = facts.memberships.filter { $0.statement.issuer == facts.root && $0.role == "admin" }
    for admin in admins { countsByRoot[admin.id] = count(of: admin, ends: isByRoot, raises: isByRoot) }
    for admin in admins {
      counts[admin.id] = count(of: admin, ends: { mayEnd($0, admin) }, raises: isByRoot)
    }
    members = admins + facts.memberships.filter { $0.role != "admin" && isAdmin($0.statement) }
    strange = facts.strange.filter { isAdmin($0.statement) }
    for member in members + strange where !isAdmins(member) {
      counts[member.id] = count(of: member, ends: isAdmin, raises: isAdmin)
    }
    // One membership for ever: that of the first declaration that counts.
    for fact in facts.replicas.sorted(by: { ($0.statement.sequence, $0.id) < ($1.statement.sequence, $1.id) }) {
      if replicas[fact.content.replica] == nil { replicas[fact.content.replica] = member(declaredIn: fact) }
    }
  }

  private func member(declaredIn fact: NaiveFact<Statement.ReplicaDeclaration>) -> NaiveMember? {
    guard let member = (members + strange).first(where: { $0.id == fact.content.membership }),
      member.device == fact.issuer, facts.certificate(fact.content, fact.issuer), carries(member, fact.statement)
    else { return nil }
    return member
  }

  /// C13: the intersection over ends of what each lists with its raises. Nil: nothing ends it.
  private func count(
    of member: NaiveMember, ends: (Statement) -> Bool, raises: (Statement) -> Bool
  ) -> Set<Digest>? {
    var count: Set<Digest>?
    for end in facts.ends where end.content.target == .membership(member.id) && ends(end.statement) {
      guard var listed = facts.listing(of: end.statement).statements(of: member.device, in: "") else { continue }
      for raise in facts.raises where raise.content.end == end.id && raises(raise.statement) {
        listed.formUnion(facts.listing(of: raise.statement).statements(of: member.device, in: "") ?? [])
      }
      count = count?.intersection(listed) ?? listed
    }
    return count
  }

  private func isByRoot(_ statement: Statement) -> Bool { statement.issuer == facts.root }

  /// An admin's membership is ended by root and by other admins, all of them that lie within root's count of their issuer:
  /// mutual removal suspends both.
  private func mayEnd(_ end: Statement, _ admin: NaiveMember) -> Bool {
    if isByRoot(end) { return true }
    return end.issuer != admin.device
      && admins.contains { $0.device == end.issuer && countsByRoot[$0.id]?.contains(end.id) ?? true }
  }

  // MARK: Questions

  func isAdmins(_ member: NaiveMember) -> Bool { admins.contains { $0.id == member.id } }

  /// Did root sign it, or an admin within what counts of him?
  func isAdmin(_ statement: Statement) -> Bool {
    isByRoot(statement) || admins.contains { $0.device == statement.issuer && carries($0, statement) }
  }

  func carries(_ member: NaiveMember, _ statement: Statement) -> Bool {
    counts[member.id]?.contains(statement.id) ?? true
  }

  /// C12, C15: does this end on a membership count? One that does not list the device's own statements does not.
  func isGood(_ end: NaiveFact<Statement.End>, on membership: Digest) -> Bool {
    guard let member = facts.member(membership),
      facts.listing(of: end.statement).statements(of: member.device, in: "") != nil
    else { return false }
    return isAdmins(member) ? mayEnd(end.statement, member) : isAdmin(end.statement)
  }
}
