import Replication

/// The statements in the set by what they say, each kind in the order of ids. A part says nothing by itself (C12), and what
/// this version does not read has no effect (C27).
struct NaiveFacts {
  let root: PublicKey
  let set: NaiveSet
  let certificate: NaiveRights.Certificate
  private(set) var memberships: [NaiveMember] = []
  /// Memberships of unknown shape.
  private(set) var strange: [NaiveMember] = []
  private(set) var replicas: [NaiveFact<Statement.ReplicaDeclaration>] = []
  private(set) var grants: [NaiveFact<Statement.Grant>] = []
  private(set) var rules: [NaiveFact<Statement.Rule>] = []
  private(set) var ends: [NaiveFact<Statement.End>] = []
  private(set) var raises: [NaiveFact<Statement.Raise>] = []
  private(set) var baselines: [NaiveFact<Statement.Baseline>] = []
  /// By room.
  private(set) var rooms: [Text: [Statement]] = [:]
  /// Of fleet scope.
  private(set) var unknown: [Statement] = []
  private var listings: [Digest: NaiveListing] = [:]

  init(_ set: NaiveSet, certificate: @escaping NaiveRights.Certificate) {
    (root, self.set, self.certificate) = (set.root, set, certificate)
    for statement in set.statements.values.sorted(by: { $0.id < $1.id }) {
      if NaiveListing.own(of: statement) != nil { listings[statement.id] = NaiveListing(statement, in: set) }
      if NaiveListing.own(of: statement)?.more == true { continue }
      if statement.isOfFleet { addOfFleet(statement) } else { addOfRoom(statement) }
    }
  }

  private mutating func addOfFleet(_ statement: Statement) {
    func fact<Content>(_ content: Content) -> NaiveFact<Content> { NaiveFact(statement: statement, content: content) }
    switch statement.body {
    case .membership: memberships += NaiveMember(statement).map { [$0] } ?? []
    case .replica(let content): replicas.append(fact(content))
    case .grant(let content): grants.append(fact(content))
    case .rule(let content): rules.append(fact(content))
    case .end(let content): ends.append(fact(content))
    case .raise(let content): raises.append(fact(content))
    case .baseline(let content): baselines.append(fact(content))
    case .unknown:
      unknown.append(statement)
      strange += NaiveMember(statement).map { [$0] } ?? []
    case .genesis, .room, .invitation, .removal, .leave: break
    }
  }

  private mutating func addOfRoom(_ statement: Statement) {
    switch statement.body {
    case .room, .invitation, .removal, .leave: rooms[statement.scope, default: []].append(statement)
    default: break
    }
  }

  /// Of any shape and scope.
  func member(_ id: Digest) -> NaiveMember? { set.statements[id].flatMap { NaiveMember($0) } }

  func listing(of statement: Statement) -> NaiveListing {
    listings[statement.id] ?? NaiveListing(statement, in: set)
  }

  /// C2: was the replica ever declared by the device whose id is in its own?
  func declarations(of replica: ReplicaID) -> [NaiveFact<Statement.ReplicaDeclaration>] {
    replicas.filter { $0.content.replica == replica && certificate($0.content, $0.issuer) }
  }
}
