import Testing

@testable import Replication

@Suite("Rights from statements")
struct AuthorityTests {
  /// Numbers statements per issuer, as nodes do.
  struct Book {
    var statements: [Statement] = []

    @discardableResult
    mutating func say(_ body: Statement.Body, by issuer: String = "root") -> Digest {
      let id = Digest(words: (UInt64(statements.count + 1), 0, 0, 0))
      statements.append(Statement(body, by: Named.key(issuer), after: statements, id: id))
      return id
    }

    @discardableResult
    mutating func member(_ device: String, role: Text = "officer", agency: Text = "A", by issuer: String = "root")
      -> Digest
    {
      let profile = ValueMap(ascending: [ValueMap.Entry(key: "agency", value: .string(agency))])
      return say(
        .membership(
          Statement.Membership(
            device: Named.key(device), user: Text("u-" + device), label: "", role: role, profile: profile)), by: issuer)
    }

    mutating func declare(_ replica: String, under membership: Digest, by issuer: String) {
      say(
        .replica(
          Statement.ReplicaDeclaration(replica: Named.replica(replica), nonce: .zero, membership: membership)),
        by: issuer)
    }

    @discardableResult
    mutating func grant(
      _ level: AccessLevel, to subject: Statement.Subject, on pattern: Text, by issuer: String = "root",
      listing: Statement.Listing = Statement.Listing()
    ) -> Digest {
      say(.grant(Statement.Grant(subject: subject, level: level, pattern: pattern, listing: listing)), by: issuer)
    }

    var authority: Authority { Authority(named: statements) }
  }

  private func book() -> Book {
    var book = Book()
    book.say(.genesis(Statement.Genesis(fleetName: "fleet")))
    for key: Text in ["agency", "user", "all-users"] { book.say(.rule(Statement.Rule(key: key))) }
    return book
  }

  @Test("an admin admits members, but no admins")
  func admission() throws {
    var book = book()
    book.member("dA", role: "admin")
    let officer = book.member("d0", by: "dA")
    let false1 = book.member("d1", role: "admin", by: "dA")
    let false2 = book.member("d2", by: "stranger")
    let admin = book.member("d3", role: "admin")
    let partition = try PartitionName("agency=A")
    let authority = book.authority
    #expect(authority.level(of: officer, in: partition) == .write)
    #expect(authority.level(of: false1, in: partition) == .none)
    #expect(authority.level(of: false2, in: partition) == .none)
    #expect(authority.isAdmin(Named.key("d3")) && !authority.isAdmin(Named.key("d1")))
    #expect(authority.level(of: admin, in: partition) == .write)
    #expect(authority.members(of: Named.key("d1")).isEmpty)
  }

  @Test("only root's genesis names the fleet")
  func genesis() {
    var book = Book()
    book.member("d0")
    book.say(.genesis(Statement.Genesis(fleetName: "x")), by: "d0")
    #expect(book.authority.fleetName == nil)
  }

  @Test("a statement with the scope of a room says nothing in the fleet")
  func scope() throws {
    var book = book()
    let member = book.member("d0")
    let grant = Statement.Grant(subject: .everyone, level: .manage, pattern: "*")
    book.statements.append(
      Statement(
        .grant(grant), by: Named.root, sequence: 1, previous: nil, id: Digest(words: (99, 0, 0, 0)),
        scope: "conversation=1"))
    #expect(book.authority.level(of: member, in: try PartitionName("/t")) == .none)
  }

  @Test("a replica belongs to the device whose id is in its own, under its first declaration")
  func replicas() {
    var book = book()
    let (first, second) = (book.member("d0"), book.member("d0", agency: "B"))
    let other = book.member("d1")
    book.declare("d0.1", under: second, by: "d1")
    book.declare("d0.1", under: other, by: "d1")
    book.declare("d0.1", under: first, by: "d0")
    book.declare("d0.1", under: second, by: "d0")
    book.declare("d0.2", under: other, by: "d0")
    let authority = book.authority
    #expect(authority.signer(of: Named.replica("d0.1")) == Named.key("d0"))
    #expect(authority.membership(for: Named.replica("d0.1"))?.id == first)
    #expect(authority.isVoid(Named.replica("d0.2")) && authority.signer(of: Named.replica("d0.2")) == nil)
    #expect(!authority.isVoid(Named.replica("d0.3")))
  }

  @Test("the protocol's own replica ids depend on device and nonce")
  func derivation() throws {
    let hash: HashFunction = { bytes in
      var random = ChainsRandom(seed: bytes.reduce(17) { ($0 &* 31) &+ UInt64($1) })
      return random.digest()
    }
    let device = DeviceID.derived(from: Named.key("d0"), hash)
    let nonce = UUIDValue(high: 1, low: 2)
    let replica = ReplicaID.derived(device: device, nonce: nonce, hash)
    #expect(replica != ReplicaID.derived(device: device, nonce: UUIDValue(high: 1, low: 3), hash))
    var book = Book()
    let member = book.member("d0")
    let (mine, theirs) = (
      book.member("d1"), Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: member)
    )
    book.say(.replica(theirs), by: "d0")
    #expect(Authority(root: Named.root, statements: book.statements, hash: hash).signer(of: replica) == Named.key("d0"))
    var thief = Book()
    thief.statements = book.statements.filter { if case .membership = $0.body { true } else { false } }
    thief.say(
      .replica(Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: mine)), by: "d1")
    let authority = Authority(root: Named.root, statements: thief.statements, hash: hash)
    #expect(authority.signer(of: replica) == nil && authority.isVoid(replica))
  }

  @Test("a manager's grants count until the grant that made him one is lowered")
  func managers() throws {
    var book = book()
    let member = book.member("d0")
    book.member("dM")
    let partition = try PartitionName("/t/red")
    book.grant(.manage, to: .device(Named.key("dM")), on: "/t/*")
    book.grant(.write, to: .device(Named.key("d0")), on: "/t/red", by: "dM")
    book.grant(.read, to: .everyone, on: "/*", by: "dM")
    #expect(book.authority.level(of: member, in: partition) == .write)
    #expect(book.authority.level(of: member, in: try PartitionName("/u")) == .none)
    let last = try #require(book.statements.last { $0.issuer == Named.key("dM") })
    let tip = Statement.Tip(issuer: last.issuer, sequence: last.sequence, id: last.id)
    book.grant(
      .write, to: .device(Named.key("dM")), on: "/t/*",
      listing: Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [tip])]))
    book.grant(.write, to: .role("officer"), on: "/t/blue", by: "dM")
    #expect(book.authority.level(of: member, in: partition) == .write)
    #expect(book.authority.level(of: member, in: try PartitionName("/t/blue")) == .none)
    book.grant(.read, to: .device(Named.key("dM")), on: "/t/*")
    #expect(book.authority.level(of: member, in: partition) == .write, "the first lowering closed it, for ever")
    #expect(book.authority.floor(of: Named.replica("d0.1"), in: partition) == .max, "d0.1 is not declared")
    book.declare("d0.1", under: member, by: "d0")
    #expect(book.authority.floor(of: Named.replica("d0.1"), in: partition) == 0, "what it rests on could have fallen")
    #expect(book.authority.bound(of: Named.replica("d0.1"), in: partition).isUnbounded)
  }

  @Test("of two grants with one number in one register the lower id counts, in whatever order they came")
  func equalNumbers() throws {
    var book = book()
    let member = book.member("d0")
    let grants = [(AccessLevel.write, 101), (AccessLevel.none, 100)].map { level, id in
      Statement(
        .grant(Statement.Grant(subject: .everyone, level: level, pattern: "*")), by: Named.root,
        after: book.statements, id: Digest(words: (UInt64(id), 0, 0, 0)))
    }
    for order in [grants, grants.reversed()] {
      let authority = Authority(named: book.statements + order)
      #expect(authority.level(of: member, in: try PartitionName("/t")) == .none)
    }
  }

  @Test("a device may what any of its memberships may", arguments: [["officer", "guest"], ["guest", "officer"]])
  func severalMemberships(roles: [String]) throws {
    var book = book()
    for role in roles { book.member("d0", role: Text(role)) }
    book.grant(.write, to: .role("officer"), on: "/t")
    book.grant(.read, to: .role("guest"), on: "/t")
    #expect(book.authority.level(of: Named.key("d0"), in: try PartitionName("/t")) == .write)
    #expect(book.authority.level(of: Named.key("d0"), in: try PartitionName("/u")) == .none)
    #expect(book.authority.member(of: Named.key("d0"))?.membership.role == Text(roles[1]), "the last, to declare under")
    #expect(book.authority.allMembers.map(\.membership.role) == [Text(roles[1])])
  }

  @Test("rules apply to names of one key and one value, and only an admin makes them")
  func rules() throws {
    var book = Book()
    let member = book.member("d0", agency: "A")
    for key: Text in ["agency", "all-users"] { book.say(.rule(Statement.Rule(key: key)), by: "d0") }
    let name = try PartitionName("agency=A")
    #expect(book.authority.level(of: member, in: name) == .none)
    for key: Text in ["agency", "user", "all-users"] { book.say(.rule(Statement.Rule(key: key))) }
    #expect(book.authority.level(of: member, in: name) == .write)
    for other in ["agency=B", "agency=A=", "agency=", "=A", "agency"] {
      #expect(book.authority.level(of: member, in: try PartitionName(Text(other))) == .none, "\(other)")
    }
    #expect(book.authority.level(of: member, in: try PartitionName("all-users=x")) == .read)
    #expect(book.authority.level(of: member, in: try PartitionName("user=u-d0")) == .write)
  }

  @Test("who was made a manager makes none himself")
  func managersOfManagers() throws {
    var book = book()
    for device in ["d0", "dM"] { book.member(device) }
    book.grant(.manage, to: .device(Named.key("dM")), on: "/t*")
    book.grant(.manage, to: .device(Named.key("d0")), on: "/t*", by: "dM")
    #expect(book.authority.level(of: Named.key("d0"), in: try PartitionName("/t")) == .none)
    book.grant(.read, to: .device(Named.key("d0")), on: "/t*", by: "dM")
    #expect(book.authority.level(of: Named.key("d0"), in: try PartitionName("/t")) == .read)
  }

  @Test(
    "managers' raises are judged by ascending id, each with those before it", arguments: [(10, 20), (20, 10)],
    [false, true])
  func raisesOfManagers(ids: (first: UInt64, second: UInt64), isEnded: Bool) throws {
    let (first, second) = ids
    var book = book()
    let member = book.member("d0")
    let nothing = { Statement.Tip(issuer: Named.key($0), sequence: 0, id: .zero) }
    // Only who was an admin once may list what others said.
    let admin = book.member("dY", role: "admin")
    let none = Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [nothing("dY")])])
    book.say(.end(Statement.End(reason: .retire, target: .membership(admin), listing: none)))
    for device in ["dX", "dY"] { book.member(device) }
    book.declare("d0.1", under: member, by: "d0")
    book.grant(.write, to: .everyone, on: "/t*")
    let managing = ["dX", "dY"].map { book.grant(.manage, to: .device(Named.key($0)), on: "/t*") }
    func listing(_ sequence: UInt64, tips: [Statement.Tip] = []) -> Statement.Listing {
      let position = ChainPosition(sequence: sequence, tip: .zero)
      let end = Statement.ChainEnd(replica: Named.replica("d0.1"), position: position)
      return Statement.Listing(
        ends: [Statement.PartitionEnds(partition: "/t", chains: [end])],
        tips: tips.isEmpty ? [] : [Statement.ScopeTips(scope: "", tips: tips)])
    }
    func raise(_ end: Digest, _ id: UInt64, by device: String, _ listing: Statement.Listing) -> Digest {
      let id = Digest(words: (id, 1, 0, 0))
      let raise = Statement.Raise(end: end, listing: listing)
      book.statements.append(Statement(.raise(raise), by: Named.key(device), after: book.statements, id: id))
      return id
    }
    let end = book.say(
      .end(Statement.End(reason: .retire, target: .replica(Named.replica("d0.1")), listing: listing(1))))
    // So that the order of numbers is another one.
    book.grant(.read, to: .everyone, on: "/tt", by: "dY")
    let raised = raise(end, second, by: "dX", listing(5))
    // The lowering of the right by which it was raised lists nothing of its issuer; a raise by another manager lists that.
    let narrowing = listing(1, tips: [nothing("dX")])
    let lowering =
      isEnded
      ? book.say(.end(Statement.End(reason: .retire, target: .grant(managing[0]), listing: narrowing)))
      : book.grant(.read, to: .device(Named.key("dX")), on: "/t*", listing: narrowing)
    _ = raise(
      lowering, first, by: "dY", listing(1, tips: [Statement.Tip(issuer: Named.key("dX"), sequence: 1, id: raised)]))
    let bound = book.authority.bound(of: Named.replica("d0.1"), in: try PartitionName("/t"))
    #expect(bound.sequence == (first < second ? 5 : 1))
  }

  @Test("under which replica, and which membership, whatever a device writes counts")
  func mayWriteOn() throws {
    var book = book()
    let (officer, partition, cards) = (book.member("d0"), try PartitionName("/t"), try PartitionName("all-users=x"))
    book.declare("d0.1", under: officer, by: "d0")
    book.grant(.write, to: .role("officer"), on: "/u")
    book.grant(.write, to: .role("master"), on: "*")
    func mayWriteOn(_ name: PartitionName) -> Bool { book.authority.mayWriteOn(as: Named.replica("d0.1"), in: name) }
    func membership(_ name: PartitionName) -> Digest? {
      book.authority.membershipToWrite(as: Named.key("d0"), in: name)?.id
    }
    for name in [partition, cards] { #expect(!mayWriteOn(name) && membership(name) == nil) }
    #expect(mayWriteOn(try PartitionName("/u")))
    let master = book.member("d0", role: "master")
    book.grant(.write, to: .role("master"), on: "all-users=*")
    book.member("d0", role: "guest")
    for name in [partition, cards] { #expect(!mayWriteOn(name) && membership(name) == master) }
    // More may be allowed than can be read here: what is not known to be allowed is no right to write.
    book.say(.unknown(Statement.Unknown(kind: 99)))
    #expect(book.authority.isInDoubt && book.authority.bound(of: Named.replica("d0.1"), in: partition).isUnbounded)
    for name in [partition, cards] { #expect(!mayWriteOn(name) && membership(name) == master) }
    let tip = Statement.Tip(issuer: Named.key("d0"), sequence: 0, id: .zero)
    let listing = Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [tip])])
    book.say(.end(Statement.End(reason: .retire, target: .membership(officer), listing: listing)))
    #expect(!mayWriteOn(try PartitionName("/u")), "its membership has ended, which spares what it does not list")
  }

  @Test("a grant on a name reaches that name alone, a prefix what begins with it")
  func patternsOfGrants() throws {
    var book = book()
    let member = book.member("d0")
    book.grant(.write, to: .everyone, on: "/t")
    book.grant(.read, to: .everyone, on: "/u*")
    for (name, level) in [("/t", AccessLevel.write), ("/tt", .none), ("/u", .read), ("/uu", .read)] {
      #expect(book.authority.level(of: member, in: try PartitionName(Text(name))) == level)
    }
  }

  @Test("adding is the same as having had it from the start, and equal sets have equal digests")
  func adding() throws {
    let hash: HashFunction = { bytes in
      Digest(words: (bytes.reduce(17) { ($0 &* 31) &+ UInt64($1) }, UInt64(bytes.count), 0, 0))
    }
    for seed in 0..<20 as Range<UInt64> {
      let history = try ChainsHistory(seed: seed)
      var random = ChainsRandom(seed: seed)
      let whole = Authority(named: history.statements)
      var (grown, waiting) = (Authority(named: []), history.statements.shuffled(using: &random))
      while !waiting.isEmpty {
        #expect(grown.digest(hash) != whole.digest(hash))
        // What nothing leads to yet is not taken.
        let next = try #require(waiting.firstIndex { grown.adding([$0]).holds($0.id) })
        let statement = waiting.remove(at: next)
        grown = grown.adding([statement]).adding([statement])
      }
      #expect(grown.digest(hash) == whole.digest(hash) && grown.count == whole.count)
      for replica in ChainsHistory.replicas {
        #expect(grown.limits(of: replica, in: history.partition) == whole.limits(of: replica, in: history.partition))
        #expect(grown.floor(of: replica, in: history.partition) == whole.floor(of: replica, in: history.partition))
      }
    }
  }

  @Test("whom a device named before root made it an admin is a member all the same, whatever more root says")
  func namedBefore() throws {
    var book = book()
    book.member("dA")
    let early = book.member("d0", by: "dA")
    let again = Statement(
      .membership(
        Statement.Membership(
          device: Named.key("dA"), user: "u-dA", label: "", role: "admin", profile: ValueMap())),
      by: Named.root, after: book.statements, id: Digest(words: (500, 0, 0, 0)))
    book.statements.append(again)
    book.declare("d0.1", under: early, by: "d0")
    // Root's first statements, and its last, which makes the admin, have higher numbers than what the others said.
    for statements in [book.statements, book.statements.reversed()] {
      let authority = Authority(named: statements)
      #expect(statements.allSatisfy { authority.holds($0.id) })
      #expect(authority.signer(of: Named.replica("d0.1")) == Named.key("d0"))
    }
  }

  @Test("the floor only falls as statements arrive")
  func floorsFall() throws {
    for seed in 0..<60 as Range<UInt64> {
      let history = try ChainsHistory(seed: seed)
      var random = ChainsRandom(seed: seed)
      var (authority, heard): (Authority, [Statement]) = (Authority(named: []), [])
      var floors = Dictionary(uniqueKeysWithValues: ChainsHistory.replicas.map { ($0, UInt64.max) })
      for statement in history.statements.shuffled(using: &random) {
        heard.append(statement)
        authority = Authority(named: heard)
        for replica in ChainsHistory.replicas {
          let floor = authority.floor(of: replica, in: history.partition)
          #expect(floor <= floors[replica] ?? .max, "seed \(seed)")
          floors[replica] = floor
        }
      }
    }
  }

  @Test(
    "patterns cover what all their names belong to",
    arguments: [
      ("/t/*", "/t/red", true), ("/t/*", "/t/*", true), ("/t/*", "/t/a*", true), ("/t/*", "/*", false),
      ("/t", "/t", true), ("/t", "/t*", false), ("*", "", true), ("/t/*", "/t", false), ("é*", "e\u{301}", false),
    ])
  func patterns(pattern: String, narrower: String, isCovered: Bool) {
    #expect(NamePattern(Text(pattern)).covers(NamePattern(Text(narrower))) == isCovered)
  }

  @Test("the document rule knows whose document a change writes")
  func documentOwner() {
    func write(_ id: Value, _ field: Text) -> DocumentWrite {
      DocumentWrite(
        collection: "User", id: id, kind: .edit, generation: 1,
        operations: [Operation(.set, [.key(field)], value: .null)])
    }
    #expect(DocumentRule.ownDocument(of: [write(.string("a"), "presence"), write(.string("a"), "userName")]) == "a")
    #expect(DocumentRule.ownDocument(of: [write(.string("a"), "presence"), write(.string("b"), "presence")]) == nil)
    #expect(
      DocumentRule.ownDocument(of: [write(.string("a"), "secret"), write(.string("a"), "presence")])
        == OwnDocument(user: "a", otherFields: ["secret"]))
    #expect(DocumentRule.ownDocument(of: [write(.int(1), "presence")]) == nil)
    #expect(DocumentRule.ownDocument(of: []) == nil)
  }
}
