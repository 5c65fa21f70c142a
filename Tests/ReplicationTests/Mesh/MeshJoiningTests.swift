import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: joining") struct MeshJoiningTests {
  /// What node 0 may say on its session to be admitted by node 1, which made the invitation.
  static func request(_ bench: MeshBench, _ id: SessionID) throws -> JoinRequest {
    JoinRequest(
      fleetProof: bench.fleetProof(id).proof(ofDialer: true),
      invitation: InvitationID(inviter: bench.nodes[1].key.publicKey, serial: 4),
      device: bench.nodes[0].key.publicKey, label: "tablet", proof: bench.exporter(of: id))
  }

  private static let acceptance = JoinAcceptance(proof: Digest(words: (1, 2, 3, 4)))

  @Test("who is accepted gets every statement, then the answer, and is asked to come again")
  func admitted() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.loseMessages()
    let request = try Self.request(bench, id)
    bench.nodes[1].receive(.joinRequest(request), on: id)
    #expect(bench.nodes[1].redeemed == [request])
    #expect(bench.said(from: 1, to: 0) == [], "nothing before the membership is durable")
    bench.nodes[1].deliver(.joinJudged(id, .accepted(Self.acceptance)))
    guard case .statements(let told, "")? = bench.messages(from: 1, to: 0).first else {
      Issue.record("no statements")
      return
    }
    #expect(Set(told) == Set(bench.nodes[1].mesh.ledger.statements.values))
    #expect(bench.messages(from: 1, to: 0).dropFirst() == [.joinAccepted(Self.acceptance)])
    #expect(bench.nodes[1].mesh.sessions[id] == nil)
  }

  @Test("who is refused is told why, and nothing else")
  func refused() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.nodes[1].receive(.joinRequest(try Self.request(bench, id)), on: id)
    bench.nodes[1].deliver(.joinJudged(id, .refused(.expired)))
    #expect(bench.messages(from: 1, to: 0) == [.joinRefused(.expired)])
    #expect(bench.nodes[1].mesh.sessions[id] == nil)
  }

  @Test("an answer of the shell counts only for a session that asked to join")
  func unasked() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    bench.nodes[1].deliver(.joinJudged(id, .accepted(Self.acceptance)))
    bench.nodes[1].deliver(.joinJudged(id, .refused(.busy)))
    #expect(bench.transcript.count == start && bench.nodes[1].mesh.sessions[id] != nil)
  }

  @Test("a node of another fleet says nothing at all, and closes when the time is over", arguments: [false, true])
  func otherFleet(isReflected: Bool) throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.loseMessages()
    var request = try Self.request(bench, id)
    let other = FakeCryptography.fleetProof(FleetID(.zero), bench.exporter(of: id))
    request.fleetProof = isReflected ? bench.fleetProof(id).proof(ofDialer: false) : other.proof(ofDialer: true)
    bench.nodes[1].receive(.joinRequest(request), on: id)
    #expect(bench.nodes[1].redeemed.isEmpty && bench.nodes[1].mesh.sessions[id] != nil)
    bench.tick(1, after: bench.nodes[1].mesh.configuration.handshakeMilliseconds + 1)
    #expect(bench.messages(from: 1, to: 0) == [] && bench.nodes[1].mesh.sessions[id] == nil)
  }

  enum Flaw: CaseIterable { case otherDevice, controlCharacters }

  @Test("a request that is not its device's breaks the protocol", arguments: Flaw.allCases)
  func flawed(flaw: Flaw) throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.loseMessages()
    var request = try Self.request(bench, id)
    switch flaw {
    case .otherDevice: request.device = bench.nodes[1].key.publicKey
    case .controlCharacters: request.label = "\u{1b}[2J"
    }
    bench.nodes[1].receive(.joinRequest(request), on: id)
    #expect(bench.nodes[1].redeemed.isEmpty && bench.messages(from: 1, to: 0) == [.goodbye(.protocolError)])
  }

  @Test("another member names the device that made the invitation, or says that it was used", arguments: [false, true])
  func otherMember(isUsed: Bool) throws {
    let bench = try MeshBench([0, 1, 2])
    let id = bench.connect(0, 1)
    bench.loseMessages()
    var request = try Self.request(bench, id)
    request.invitation = InvitationID(inviter: bench.nodes[2].key.publicKey, serial: 4)
    if isUsed { bench.nodes[1].deliver(.statementsStored([try bench.entered(request.invitation)])) }
    bench.nodes[1].receive(.joinRequest(request), on: id)
    #expect(bench.nodes[1].redeemed.isEmpty)
    #expect(bench.messages(from: 1, to: 0) == [.joinRefused(isUsed ? .used : .askInviter(label: "node"))])
  }
}

extension MeshBench {
  /// Root's word that somebody has entered with the invitation.
  func entered(_ invitation: InvitationID) throws -> Statement {
    let membership = Statement.Membership(
      device: FakeKey(&random).publicKey, user: "zoe", label: "", role: "officer", profile: ValueMap())
    let note = StatementNotes.Entry(
      key: StatementNotes.Key.invitationSerial, content: invitation.note(signedBy: fleet.root.publicKey))
    return try byRoot(.membership(membership), StatementNotes([note]))
  }
}
