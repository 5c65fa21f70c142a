import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: joining") struct MeshJoiningTests {
  /// What node 0 may say on its session to be admitted by node 1.
  static func request(_ bench: MeshBench, _ id: SessionID) throws -> JoinRequest {
    var request = JoinRequest(
      fleet: bench.fleet.id, device: bench.nodes[0].key.publicKey, user: "ann", label: "tablet", role: "officer",
      profile: ValueMap())
    request.proof = bench.fleet.admission.sign(request.signedBytes(exporter: bench.exporter(of: id)))
    return request
  }

  @Test("who shows the admission key is admitted, gets every statement, and is asked to come again")
  func admitted() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.loseMessages()
    let request = try Self.request(bench, id)
    bench.nodes[1].receive(.joinRequest(request), on: id)
    #expect(bench.nodes[1].admissions == [request])
    #expect(bench.said(from: 1, to: 0) == [], "nothing before the membership is durable")
    bench.nodes[1].deliver(.admitted(id, true))
    guard case .statements(let told)? = bench.messages(from: 1, to: 0).first else {
      Issue.record("no statements")
      return
    }
    #expect(Set(told) == Set(bench.nodes[1].mesh.statements.values))
    #expect(bench.said(from: 1, to: 0) == ["statements", "joinAccepted"])
    #expect(bench.nodes[1].mesh.sessions[id] == nil)
  }

  @Test("who cannot be admitted here is told so")
  func cannotAdmit() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.nodes[1].receive(.joinRequest(try Self.request(bench, id)), on: id)
    bench.nodes[1].deliver(.admitted(id, false))
    #expect(bench.messages(from: 1, to: 0) == [.joinRefused(.cannotAdmit)])
    #expect(bench.nodes[1].mesh.sessions[id] == nil)
  }

  @Test("an answer of the shell counts only for a session that asked to join")
  func unasked() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    let start = bench.transcript.count
    bench.nodes[1].deliver(.admitted(id, true))
    bench.nodes[1].deliver(.admitted(id, false))
    #expect(bench.transcript.count == start && bench.nodes[1].mesh.sessions[id] != nil)
  }

  enum Flaw: CaseIterable { case fleet, device, noProof, wrongKey, otherConnection, otherUser }

  @Test("a request that does not hold is refused, and nobody is asked to admit", arguments: Flaw.allCases)
  func refused(flaw: Flaw) throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    bench.loseMessages()
    var request = try Self.request(bench, id)
    func sign(_ key: FakeKey, _ exporter: Digest) { request.proof = key.sign(request.signedBytes(exporter: exporter)) }
    switch flaw {
    case .fleet:
      request.fleet = FleetID(.zero)
      sign(bench.fleet.admission, bench.exporter(of: id))
    case .device:
      request.device = bench.nodes[1].key.publicKey
      sign(bench.fleet.admission, bench.exporter(of: id))
    case .noProof: request.proof = nil
    case .wrongKey: sign(bench.nodes[0].key, bench.exporter(of: id))
    case .otherConnection: sign(bench.fleet.admission, bench.exporter(of: SessionID(rawValue: 9)))
    case .otherUser: request.user = "ben"
    }
    bench.nodes[1].receive(.joinRequest(request), on: id)
    let refusal: JoinRefusal = flaw == .fleet ? .otherFleet : .wrongCode
    #expect(bench.nodes[1].admissions.isEmpty)
    #expect(bench.messages(from: 1, to: 0) == [.joinRefused(refusal)])
    #expect(bench.nodes[1].notes == [.joinRefused(refusal)] && bench.nodes[1].mesh.sessions[id] == nil)
  }
}
