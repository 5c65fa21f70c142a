import Foundation
import Identity
import Replication
import Storage
import Synchronization
import Testing
import Transport
import Wire

@testable import Engine
@testable import Seamesh

/// Devices enter by one-use codes, over real connections.
@Suite struct JoiningTests {
  private let fleet: TestFleet
  private var inviter: Node { fleet.nodes[0] }

  init() throws { fleet = try TestFleet(1) }

  private func invite(role: Text = "officer", validMilliseconds: Int64 = 3_600_000) throws -> IssuedInvitation {
    try inviter.invite(
      InviteRequest(user: "new@test.example", role: role, profile: ValueMap(), validMilliseconds: validMilliseconds))
  }

  /// Into a new directory. Answers why not, nil where it went well.
  @discardableResult
  private func join(
    _ code: String, in path: String? = nil, at peers: [PeerAddress] = [], timeoutMilliseconds: UInt64 = 10_000,
    progress: (JoinProgress) -> Void = { _ in }
  ) throws -> NodeError? {
    let path = try path ?? fleet.directory()
    do throws(NodeError) {
      _ = try NodeSetup.join(
        path, code: code, label: "tablet", peers: peers, usesDiscovery: false,
        timeoutMilliseconds: timeoutMilliseconds, progress: progress)
      return nil
    } catch {
      #expect(!isThere(path + "/fleet.id"))
      return error
    }
  }

  private func changed(_ code: String, _ change: (inout JoinCode) throws -> Void) throws -> String {
    var parsed = try JoinCode.parse(code)
    try change(&parsed)
    return try parsed.encode()
  }

  @Test("a code lets one device in, as its maker said; another hears that it was used, after a restart too")
  func once() throws {
    let issued = try invite()
    #expect(try join(issued.code) == nil)
    let member = try #require(try inviter.devices().first { !$0.isSelf })
    #expect(member.user == "new@test.example" && member.role == "officer" && member.label == "tablet")
    #expect(try inviter.invitations().isEmpty)
    let used = NodeError(
      .notPermitted, "this join code was used by another device: ask for a new one with seamesh invite")
    #expect(try join(issued.code) == used)
    try fleet.restart(0)
    #expect(try join(issued.code, at: [fleet.peerAddress(of: inviter)]) == used)
    #expect(try inviter.devices().count == 2)
  }

  @Test("a device whose answer was lost enters by the same code with the same key, after a restart of the inviter")
  func lostAnswer() throws {
    let issued = try invite()
    let path = try fleet.directory()
    #expect(try join(issued.code, in: path) == nil)
    let files = try NodeFiles.load(DataDirectory(existing: path))
    for name in ["fleet.id", "seamesh.db"] { try FileManager.default.removeItem(atPath: "\(path)/\(name)") }
    try SetupMarker(.join, fleet: files.fleet, device: files.device, begun: "1").save(to: files.directory)
    try fleet.restart(0)
    #expect(try join(issued.code, in: path, at: [fleet.peerAddress(of: inviter)]) == nil)
    #expect(try NodeFiles.load(DataDirectory(existing: path)).device == files.device)
    #expect(try inviter.devices().count == 2)
  }

  @Test("an expired, a cancelled and a wrong code are told apart, each within two seconds")
  func closedCodes() throws {
    let (brief, cancelled, wrong) = (try invite(validMilliseconds: 1_000), try invite(), try invite())
    try inviter.cancelInvitation(cancelled.status.serial)
    let forged = try changed(wrong.code) { code in
      code.secret = try #require(InvitationSecret([UInt8](repeating: 1, count: InvitationSecret.byteCount)))
    }
    try eventually("the brief one has expired") { try inviter.invitations().map(\.serial) == [wrong.status.serial] }
    for (code, words) in [
      (cancelled.code, "this join code was cancelled"), (brief.code, "this join code has expired"),
      (forged, "the device that this join code names did not make it"),
    ] {
      let started = ElapsedClock.now()
      #expect(try join(code)?.message.hasPrefix(words) == true)
      let took = ElapsedClock.now().millisecondsSince(started)
      #expect(took < 2_000, "\(words): \(took) ms")
    }
    #expect(try inviter.devices().count == 1)
  }

  @Test("no secret of an invitation stays on the device that joined by it")
  func secretsGo() throws {
    let issued = try invite()
    let secret = try JoinCode.parse(issued.code).secret.bytes
    let hex = secret.map { String(format: "%02x", $0) }.joined()
    let forms = [Data(secret), Data(hex.utf8), Data(issued.code.utf8)]
    func holds(_ path: String) throws -> [String] {
      try FileManager.default.subpathsOfDirectory(atPath: path).filter { name in
        guard let content = FileManager.default.contents(atPath: "\(path)/\(name)") else { return false }
        return forms.contains { content.range(of: $0) != nil }
      }
    }
    // While it is open its maker alone knows it: so this finds what there is.
    #expect(try !holds(fleet.path(of: 0)).isEmpty)
    let path = try fleet.directory()
    #expect(try join(issued.code, in: path) == nil)
    #expect(try holds(path) == [])
    let joined = try Node.start(
      directory: path, configuration: fleet.configuration([try fleet.peerAddress(of: inviter)]) { _ in })
    try eventually { try joined.devices().count == 2 }
    #expect(try holds(path) == [])
    joined.stop()
    #expect(try holds(path) == [])
  }

  @Test("what a device's own clock says of the expiry does not matter", arguments: [0, 1, UInt64.max])
  func clock(expires: UInt64) throws {
    let code = try changed(invite().code) { $0.expires = expires }
    #expect(try join(code) == nil)
  }

  @Test("a node of another fleet stays mute, and the join says so")
  func foreign() throws {
    let other = try TestFleet(1)
    let code = try changed(invite().code) { $0.addresses = [] }
    let refused = try join(code, at: [other.peerAddress(of: other.nodes[0])])
    #expect(refused?.message.contains("as a node of another fleet does") == true, "\(refused?.message ?? "")")
    #expect(try other.nodes[0].doctor().allSatisfy { $0.code != "wrong-join-code" })
  }

  @Test("another member names the device that made the code, and whoever waits hears for whom, and how long")
  func otherMember() throws {
    let fleet = try TestFleet(2)
    let issued = try fleet.nodes[0].invite(InviteRequest(user: "u", role: "", profile: ValueMap()))
    try eventually { try fleet.nodes[1].devices().count == 2 }
    fleet.nodes[0].stop()
    let told = Mutex<[JoinProgress]>([])
    let peer = try fleet.peerAddress(of: fleet.nodes[1])
    let refused = try join(issued.code, at: [peer], timeoutMilliseconds: 3_000) { now in
      told.withLock { $0.append(now) }
    }
    #expect(refused?.message.hasPrefix("device node 0 (") == true, "\(refused?.message ?? "")")
    #expect(told.withLock { $0.allSatisfy { $0.timeoutMilliseconds == 3_000 } })
  }

  @Test("other members say of a used code that it was, once they know")
  func usedElsewhere() throws {
    let fleet = try TestFleet(2)
    let issued = try fleet.nodes[0].invite(InviteRequest(user: "u", role: "", profile: ValueMap()))
    #expect(try join(issued.code) == nil)
    try eventually { try fleet.nodes[1].devices().count == 3 }
    fleet.nodes[0].stop()
    let refused = try join(issued.code, at: [fleet.peerAddress(of: fleet.nodes[1])], timeoutMilliseconds: 3_000)
    #expect(refused?.message.contains("says that this code was used already") == true, "\(refused?.message ?? "")")
  }

  @Test("an admin is invited where the root's key lies, and may then invite")
  func admins() throws {
    let issued = try invite(role: "admin")
    let path = try fleet.directory()
    #expect(try join(issued.code, in: path) == nil)
    let second = try Node.start(
      directory: path, configuration: fleet.configuration([try fleet.peerAddress(of: inviter)]) { _ in })
    defer { second.stop() }
    let code = try second.invite(InviteRequest(user: "u", role: "officer", profile: ValueMap())).code
    #expect(try join(code) == nil)
    try eventually("the first admin knows whom the second let in") { try inviter.devices().count == 3 }
    let refused = try #require(throws: NodeError.self) {
      try second.invite(InviteRequest(user: "u", role: "admin", profile: ValueMap()))
    }
    #expect(refused.code == .notPermitted && refused.message.contains("fleet's root key"))
  }

  @Test("a device that is no admin makes no code")
  func notAnAdmin() throws {
    let fleet = try TestFleet(2)
    let refused = try #require(throws: NodeError.self) {
      try fleet.nodes[1].invite(InviteRequest(user: "u", role: "", profile: ValueMap()))
    }
    #expect(refused.code == .notPermitted && refused.message.hasPrefix("this device is no admin"))
  }

  @Test("a resting node's directory makes codes that its node honours once it runs, and cancels others")
  func resting() throws {
    let path = fleet.path(of: 0)
    inviter.stop()
    let request = InviteRequest(user: "u", role: "officer", profile: ValueMap())
    let (kept, dropped) = (try NodeSetup.invite(path, request), try NodeSetup.invite(path, request))
    try NodeSetup.cancelInvitation(path, dropped.status.serial)
    #expect(try NodeSetup.invitations(path) == [kept.status])
    try fleet.restart(0)
    let address = try fleet.peerAddress(of: inviter)
    #expect(try join(dropped.code, at: [address])?.message.hasPrefix("this join code was cancelled") == true)
    #expect(try join(kept.code, at: [address]) == nil)
  }

  enum Impostor: CaseIterable { case otherKey, inviterWithoutSecret }

  @Test("who answers without the code's secret, or is another device, takes nobody in", arguments: Impostor.allCases)
  func impostor(kind: Impostor) throws {
    let issued = try invite()
    let key = kind == .otherKey ? SigningKey() : inviter.files.deviceKey
    let listener = try FalseInviter(key) { request, exporter in
      var acceptance = JoinAcceptance()
      // One that knows the secret is another device; one that is the device does not know it.
      let secret = kind == .otherKey ? try JoinCode.parse(issued.code).secret.bytes : [0]
      acceptance.proof = HMAC.sha256(
        key: secret,
        JoinProof.ofInviter(acceptance, to: request, of: try JoinCode.parse(issued.code).fleet, exporter: exporter))
      return acceptance
    }
    defer { listener.stop() }
    let code = try changed(issued.code) { $0.addresses = [] }
    let refused = try join(code, at: [listener.address], timeoutMilliseconds: 3_000)
    #expect(refused?.message.contains("took this device in without knowing the code") == true)
    #expect(listener.wasAsked)
  }
}

/// Answers every request to join as if it had made the code.
private final class FalseInviter: TransportHandler {
  private let answer: @Sendable (JoinRequest, Digest) throws -> JoinAcceptance
  private struct State {
    var transport: SecureTransport?
    var exporters: [ConnectionID: Digest] = [:]
    var asked = false
  }

  private let held = Mutex(State())
  let address: PeerAddress

  init(_ key: SigningKey, _ answer: @escaping @Sendable (JoinRequest, Digest) throws -> JoinAcceptance) throws {
    self.answer = answer
    let identity = try TLSIdentity(key)
    let relay = Relay()
    let transport = try SecureTransport(
      credentials: TLSCredentials(certificate: identity.certificateDER, privateKey: identity.privateKeyDER),
      handler: relay)
    address = .socket(try #require(try transport.listen(host: .ipv4(0x7f00_0001), port: 0).first))
    held.withLock { $0.transport = transport }
    relay.target.withLock { $0 = self }
  }

  var wasAsked: Bool { held.withLock { $0.asked } }
  func stop() { held.withLock { $0.transport }?.stop() }

  func opened(_ connection: OpenedConnection) {
    held.withLock { $0.exporters[connection.id] = connection.exporter }
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {
    guard case .joinRequest(let request)? = try? MessageCodec.decode(frame[...]),
      let exporter = held.withLock({ $0.exporters[connection] }), let acceptance = try? answer(request, exporter)
    else { return }
    let transport = held.withLock { held in
      held.asked = true
      return held.transport
    }
    _ = transport?.send(connection, MessageCodec.encode(.joinAccepted(acceptance)))
  }

  func closed(_ connection: ConnectionID, reason: CloseReason) {}
  func drained(_ connection: ConnectionID, queuedBytes: Int) {}
  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {}

  /// The transport's handler is made before it.
  private final class Relay: TransportHandler {
    let target = Mutex<FalseInviter?>(nil)
    private var handler: FalseInviter? { target.withLock { $0 } }
    func opened(_ connection: OpenedConnection) { handler?.opened(connection) }
    func received(_ connection: ConnectionID, frame: [UInt8]) { handler?.received(connection, frame: frame) }
    func closed(_ connection: ConnectionID, reason: CloseReason) {}
    func drained(_ connection: ConnectionID, queuedBytes: Int) {}
    func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {}
  }
}
