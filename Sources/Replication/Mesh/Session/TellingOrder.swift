/// The order in which an exchange tells a peer what it lacks: what root and admins say, each right behind what it names of
/// others, and at the end what others say besides.
///
/// What an admin names of a device that has said all that it may comes into the peer's set with his statement alone (rule C26);
/// until that is there the peer keeps what came last (``StatementsAside``). So what he names is told as one, with nothing
/// between that a member may say without end. It is told whole where the device has said much, for then the peer may lose
/// meanwhile what it has of it, but once for all that name it: what one of them names stays.
struct TellingOrder {
  private let authority: Authority
  private(set) var told: [Statement] = []
  /// Named by what the peer has, or by what was told.
  private var named: Set<Digest> = []

  /// - Parameters:
  ///   - lacking: what the peer lacks of the fleet's scope.
  ///   - passing: what of that it is to be told.
  init(of passing: Set<Digest>, lacking: Set<Digest>, _ authority: Authority) {
    self.authority = authority
    let all = authority.fleetStatements
    let byAdmins = all.filter { authority.wasEverAdmin($0.issuer) }
    for statement in byAdmins where !lacking.contains(statement.id) { _ = newlyNamed(by: statement) }
    named.subtract(lacking)
    let narrowing = byAdmins.filter { passing.contains($0.id) }
    let talkers = authority.talkers(among: Set(narrowing.lazy.flatMap(\.fleetTips).map(\.issuer)))
    for statement in narrowing {
      told += newlyNamed(by: statement).filter { line in
        passing.contains(line.id) || talkers.contains(line.issuer) && !lacking.contains(line.id)
      }
      told.append(statement)
    }
    let done = Set(told.map(\.id))
    told += all.filter { passing.contains($0.id) && !done.contains($0.id) }
  }

  /// With all that it goes on from, each behind that. Of root and admins nothing: they are told of in their own order.
  private mutating func newlyNamed(by statement: Statement) -> [Statement] {
    var line: [Statement] = []
    for tip in statement.fleetTips where !authority.wasEverAdmin(tip.issuer) {
      var next: Digest? = tip.id
      while let id = next, let step = authority[id], named.insert(id).inserted {
        line.append(step)
        next = step.previous
      }
    }
    return line.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
  }
}
