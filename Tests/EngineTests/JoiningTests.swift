import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// A device asks to be admitted.
@Suite struct JoiningTests {
  private let bench: EngineBench
  private let device: SigningKey
  private let session = SessionID(rawValue: 77)

  init() throws {
    bench = try EngineBench()
    device = SigningKey(random: { [UInt8](repeating: 3, count: $0) })
  }

  private var node: BenchNode { bench.nodes[0] }

  private func ask(with secret: AdmissionSecret, fleet: FleetID? = nil) {
    node.engine.turn([
      .opened(
        OpenedLink(
          session: session, dialTag: nil, remote: SocketAddress(.ipv4(1), port: 1), peerKey: device.publicKey,
          exporter: .zero))
    ])
    var request = JoinRequest(
      fleet: fleet ?? bench.founding.fleet, device: device.publicKey, user: "new", label: "phone", role: "officer",
      profile: ValueMap())
    request.proof = secret.key(in: bench.founding.fleet).sign(request.signedBytes(exporter: .zero))
    node.trace.clear()
    node.engine.turn([.message(session, .joinRequest(request), byteCount: 100)])
  }

  private var isMember: Bool { node.state.mesh.authority.member(of: device.publicKey) != nil }

  @Test("who knows the secret is a member, durably, before it hears so")
  func admitted() throws {
    ask(with: bench.founding.admissionSecret)
    #expect(isMember)
    #expect(
      node.trace.entries == [
        .began, .committed, .sent(session, "statements"), .sent(session, "joinAccepted"), .closed(session),
      ])
    try bench.restart(0)
    #expect(isMember)
  }

  @Test("asked again it is told the same, and no second membership is signed")
  func twice() throws {
    ask(with: bench.founding.admissionSecret)
    node.engine.turn([.closed(session, reason: "done")])
    let count = node.state.mesh.authority.count
    ask(with: bench.founding.admissionSecret)
    #expect(node.state.mesh.authority.count == count)
    #expect(node.trace.entries.contains(.sent(session, "joinAccepted")))
  }

  @Test("another code is refused and counted")
  func wrongCode() {
    ask(with: AdmissionSecret(random: { [UInt8](repeating: 9, count: $0) }))
    #expect(!isMember)
    #expect(node.engine.refusedJoins == 1)
    #expect(node.trace.entries == [.sent(session, "joinRefused"), .closed(session)])
    #expect(node.journal.says("refused to admit a device"))
  }

  @Test("a device for another fleet is refused, and that is no wrong code")
  func otherFleet() throws {
    ask(with: bench.founding.admissionSecret, fleet: try EngineBench(seed: 3).founding.fleet)
    #expect(!isMember)
    #expect(node.engine.refusedJoins == 0)
    #expect(node.trace.entries.first == .sent(session, "joinRefused"))
  }

  @Test("a membership that the disk does not take admits nobody, then or later")
  func diskFull() throws {
    try node.refuse("INSERT", on: "statements")
    ask(with: bench.founding.admissionSecret)
    #expect(!isMember)
    #expect(!node.trace.entries.contains(.sent(session, "joinAccepted")))
    #expect(!node.trace.entries.contains(.sent(session, "statements")))
    try bench.restart(0)
    #expect(!isMember)
    ask(with: bench.founding.admissionSecret)
    #expect(isMember)
  }
}
