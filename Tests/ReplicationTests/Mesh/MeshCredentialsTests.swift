import Testing

@testable import Replication
@testable import Simulation

/// A device that an admin let in elsewhere meets a node that knows neither.
@Suite("Mesh: credentials") struct MeshCredentialsTests {
  private let bench: MeshBench
  /// Signed by root and by the admin, behind all that the bench's nodes know.
  private let root: [Statement]
  private let admin: FakeKey
  private let adminSaid: [Statement]
  private let newcomer: FakeKey

  private var membership: Statement { adminSaid[adminSaid.count - 1] }
  private var adminMembership: Statement { root[root.count - 1] }

  init() throws {
    bench = try MeshBench([0, 1])
    (admin, newcomer) = (FakeKey(&bench.random), FakeKey(&bench.random))
    let made = try #require(
      bench.state(.membership(MeshCredentialsTests.membership(admin, role: Authority.adminRole))))
    root = [made]
    // It has said something before, so that what it says of the newcomer is linked to nothing that others hold.
    let rule = try #require(admin.statement(bench.fleet.id, .rule(Statement.Rule(key: "agency"))))
    let admits = Statement.Body.membership(MeshCredentialsTests.membership(newcomer, role: "officer"))
    adminSaid = [rule, try #require(admin.statement(bench.fleet.id, admits, after: rule))]
  }

  private static func membership(_ key: FakeKey, role: Text) -> Statement.Membership {
    Statement.Membership(device: key.publicKey, user: "zoe", label: "", role: role, profile: ValueMap())
  }

  /// The newcomer's node, as the last of the bench.
  private func enter(
    _ credentials: [Statement], knowing more: [Statement]? = nil, key: FakeKey? = nil
  ) -> Int {
    let known = bench.nodes[0].mesh.authority.fleetStatements + (more ?? root + adminSaid)
    return bench.add(key ?? newcomer, known, credentials: credentials)
  }

  private func phase(_ slot: Int, _ id: SessionID) -> PeerSession.Phase? { bench.nodes[slot].mesh.sessions[id]?.phase }

  @Test("it is let in, whichever side dials, and its statements come before all else", arguments: [true, false])
  func letIn(dials: Bool) throws {
    let slot = enter([adminMembership, membership])
    let id = dials ? bench.connected(slot, 1) : bench.connected(1, slot)
    #expect(phase(1, id) == .live && phase(slot, id) == .live)
    #expect(bench.nodes[1].mesh.authority.member(of: newcomer.publicKey) != nil)
    #expect(Set(bench.nodes[1].stored.map(\.id)) == Set((root + adminSaid).map(\.id)))
    // What it heard before it had shown itself.
    let shown = try #require(
      bench.transcript.firstIndex { line in
        if case .statementsComplete = line.message { line.from == slot } else { false }
      })
    let heard = bench.transcript[..<shown].filter { $0.to == slot }.map { "\($0.message)".prefix { $0 != "(" } }
    #expect(
      heard.allSatisfy { ["hello", "credentials", "credentialRequest"].contains($0) || $0.hasPrefix("statement") },
      "\(heard)")
    if dials { #expect(!heard.contains("statements")) }
  }

  @Test("root's own word needs nobody else's, and an admin that is known need not be brought")
  func shorter() throws {
    let byRoot = try #require(bench.state(.membership(Self.membership(newcomer, role: "officer"))))
    let slot = enter([byRoot], knowing: root + [byRoot])
    let id = bench.connected(slot, 1)
    #expect(phase(1, id) == .live)
    bench.cut(id)
    let other = enter([membership])
    #expect(phase(1, bench.connected(other, 1)) == .live)
  }

  @Test("good credentials without the statements end in a goodbye after the exchange")
  func notShown() throws {
    let slot = enter([adminMembership, membership], knowing: [adminMembership])
    let id = bench.connected(slot, 1)
    #expect(phase(1, id) == nil)
    #expect(bench.messages(from: 1, to: slot).contains(.goodbye(.notAMember)))
    #expect(!bench.said(from: 1, to: slot).contains("statements"))
  }

  enum Flaw: CaseIterable {
    case none, withoutAdmin, falseAdmin, adminByAdmin, otherDevice, otherFleet, tooMany, endedSelf, endedAdmin
  }

  @Test("credentials that do not hold get a goodbye alone", arguments: Flaw.allCases)
  func flawed(flaw: Flaw) throws {
    var (credentials, key) = ([adminMembership, membership], newcomer)
    func said(_ role: Text, by issuer: FakeKey, fleet: FleetID? = nil) throws -> Statement {
      try #require(issuer.statement(fleet ?? bench.fleet.id, .membership(Self.membership(newcomer, role: role))))
    }
    func end(_ membership: Statement) throws {
      let end = Statement.End(reason: .retire, target: .membership(membership.id), listing: Statement.Listing())
      bench.nodes[1].deliver(.statementsStored(root + [try #require(bench.state(.end(end)))]))
    }
    switch flaw {
    case .none: credentials = []
    case .withoutAdmin: credentials = [membership]
    case .falseAdmin: credentials = [try said(Authority.adminRole, by: admin), try said("officer", by: newcomer)]
    case .adminByAdmin: credentials = [adminMembership, try said(Authority.adminRole, by: admin)]
    case .otherDevice: key = FakeKey(&bench.random)
    case .otherFleet: credentials = [try said("officer", by: bench.fleet.root, fleet: FleetID(.zero))]
    case .tooMany: credentials = [Statement](repeating: adminMembership, count: Message.credentialLimit) + [membership]
    case .endedSelf: try end(membership)
    case .endedAdmin: try end(adminMembership)
    }
    let slot = enter(credentials, key: key)
    let id = bench.connect(slot, 1)
    bench.run()
    let asked = Message.credentialRequest(fleetProof: bench.fleetProof(id).proof(ofDialer: false))
    #expect(bench.messages(from: 1, to: slot) == [asked, .goodbye(.notAMember)] && phase(1, id) == nil)
  }

  @Test("whom an ended admin let in is told of the end by that admin's device, as soon as it has heard of it")
  func letInByAnEndedAdmin() throws {
    // By who knows nothing that the admin said.
    let none = Statement.Tip(issuer: admin.publicKey, sequence: 0, id: .zero)
    let listing = Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [none])])
    let end = try #require(
      bench.state(.end(Statement.End(reason: .retire, target: .membership(adminMembership.id), listing: listing))))
    bench.nodes[1].deliver(.statementsStored(root + [end]))
    let inviter = enter([adminMembership], key: admin)
    let slot = enter([adminMembership, membership])
    let between = bench.connected(slot, inviter)
    // Who knows the end says nothing of it to a stranger.
    let refused = bench.connect(slot, 1)
    bench.run()
    #expect(phase(1, refused) == nil && !bench.said(from: 1, to: slot).contains("statements"))
    #expect(!bench.nodes[slot].mesh.authority.holds(end.id) && phase(slot, between) == .live)
    _ = bench.connect(inviter, 1)
    bench.run()
    #expect(bench.nodes[inviter].mesh.authority.holds(end.id))
    #expect(bench.nodes[slot].mesh.authority.holds(end.id))
    #expect(bench.nodes[slot].mesh.authority.member(of: newcomer.publicKey) == nil)
  }

  @Test("credentials are shown once, and to nobody who has not shown to know the fleet", arguments: [true, false])
  func shownOnDemand(knowsFleet: Bool) throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.loseMessages()
    let fleet = knowsFleet ? bench.fleet.id : FleetID(.zero)
    let proof = FakeCryptography.fleetProof(fleet, bench.exporter(of: id)).proof(ofDialer: false)
    let start = bench.transcript.count
    bench.nodes[0].receive(.credentialRequest(fleetProof: proof), on: id)
    let answer = bench.messages(from: 0, to: 1).suffix(bench.transcript.count - start)
    #expect(answer == [knowsFleet ? .credentials(bench.nodes[0].mesh.local.credentials) : .goodbye(.otherFleet)])
    bench.nodes[0].receive(.credentialRequest(fleetProof: proof), on: id)
    #expect(bench.nodes[0].mesh.sessions[id] == nil)
  }

  @Test("what is learnt and wanted meanwhile reaches it once it has shown itself")
  func meanwhile() throws {
    let slot = enter([adminMembership, membership])
    let id = bench.connect(slot, 1)
    bench.run(3)
    try #require(bench.nodes[1].mesh.sessions[id]?.isToBeShown == true)
    let news = try #require(bench.state(.rule(Statement.Rule(key: "user"))))
    bench.nodes[1].deliver(.statementsStored(root + [news]))
    bench.nodes[1].deliver(.interestChanged(added: Interest(prefixes: ["more"]), removed: Interest()))
    #expect(!bench.said(from: 1, to: slot).contains("interestChange"))
    bench.run()
    #expect(phase(1, id) == .live && phase(slot, id) == .live)
    #expect(bench.nodes[slot].mesh.authority.holds(news.id))
    #expect(bench.nodes[slot].mesh.sessions[id]?.peerInterest?.prefixes.contains("more") == true)
  }
}
