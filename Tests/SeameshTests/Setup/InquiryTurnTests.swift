import Dispatch
import Identity
import Replication
import Synchronization
import Testing
import Transport
import Wire

@testable import Seamesh

@Suite("Whom a device without a store asks next") struct InquiryTurnTests {
  private struct Question: InquiryTopic {
    let fleet: FleetID
    let key: SigningKey

    func greeting(_ connection: OpenedConnection) -> Message { .statementsComplete() }
    func step(after message: Message, on connection: OpenedConnection) -> InquiryStep {
      if case .statementsComplete = message { .complete } else { .wait }
    }
    func failure(_ inquiry: InquiryProgress) -> NodeError { NodeError(.failed, inquiry.lastFailure ?? "") }
  }

  @Test(
    "who tells statements one by one holds up nobody but himself: the next one has his turn", .timeLimit(.minutes(1)))
  func turns() throws {
    let founding = try FleetFounding.make(fleetName: "patrol", user: "ann", label: "a", profile: ValueMap())
    let statement = MessageCodec.encode(.statements([try #require(founding.statements.first).encoded]))
    let strangers = try [TalkingStranger([statement]), TalkingStranger([statement])]
    defer { for stranger in strangers { stranger.stop() } }
    let inquiry = FleetInquiry(Question(fleet: founding.fleet, key: SigningKey()), turnMilliseconds: 1_000)
    var failure: String?
    #expect(throws: NodeError.self) {
      try inquiry.run(
        strangers.map(\.address), usesDiscovery: false, timeoutMilliseconds: 30_000,
        isGivenUp: { progress in
          failure = progress.lastFailure
          return strangers[1].wasAsked
        })
    }
    #expect(strangers[1].wasAsked && failure?.contains("its turn was over") == true, "\(failure ?? "")")
  }

  @Test("of what a node tells, statements are kept that stand on the fleet's own: others would fill the store for ever")
  func unfounded() throws {
    let founding = try FleetFounding.make(fleetName: "patrol", user: "ann", label: "a", profile: ValueMap())
    let unfounded = try (0..<20).map { _ in
      let key = SigningKey()
      return try StatementSigner(fleet: founding.fleet, key: key).sign(
        .membership(
          Statement.Membership(device: key.publicKey, user: "u", label: "l", role: "officer", profile: ValueMap())),
        after: nil)
    }
    let stranger = try TalkingStranger([
      MessageCodec.encode(.statements((founding.statements + unfounded).map(\.encoded))),
      MessageCodec.encode(.statementsComplete()),
    ])
    defer { stranger.stop() }
    let found = try FleetInquiry(Question(fleet: founding.fleet, key: founding.deviceKey))
      .run([stranger.address], usesDiscovery: false, timeoutMilliseconds: 30_000)
    #expect(Set(found.map(\.id)) == Set(founding.statements.map(\.id)))
  }

  @Test("who sends what is no message is asked no further: the connection is closed", .timeLimit(.minutes(1)))
  func noMessage() throws {
    let founding = try FleetFounding.make(fleetName: "patrol", user: "ann", label: "a", profile: ValueMap())
    let stranger = try TalkingStranger([[0xff, 0xff, 0xff]])
    defer { stranger.stop() }
    var looks = 0
    #expect(throws: NodeError.self) {
      try FleetInquiry(Question(fleet: founding.fleet, key: SigningKey())).run(
        [stranger.address], usesDiscovery: false, timeoutMilliseconds: .max,
        isGivenUp: { _ in
          looks += 1
          return stranger.wasClosed || looks > 20
        })
    }
    #expect(stranger.wasClosed && looks <= 20)
  }
}

/// Says one and the same over and over.
private final class TalkingStranger: TransportHandler {
  private let frames: [[UInt8]]
  private let held = Mutex<SecureTransport?>(nil)
  private let isStopped = Mutex(false)
  private let asked = Mutex(false)
  private let left = Mutex(false)
  let address: PeerAddress

  init(_ frames: [[UInt8]]) throws {
    self.frames = frames
    let identity = try TLSIdentity(SigningKey())
    let relay = Relay()
    let transport = try SecureTransport(
      credentials: TLSCredentials(certificate: identity.certificateDER, privateKey: identity.privateKeyDER),
      handler: relay)
    address = .socket(try #require(try transport.listen(host: .ipv4(0x7f00_0001), port: 0).first))
    held.withLock { $0 = transport }
    relay.target.withLock { $0 = self }
  }

  var wasAsked: Bool { asked.withLock { $0 } }
  /// Somebody who was connected is no more.
  var wasClosed: Bool { left.withLock { $0 } }

  func stop() {
    isStopped.withLock { $0 = true }
    held.withLock { $0 }?.stop()
  }

  func opened(_ connection: OpenedConnection) {
    asked.withLock { $0 = true }
    held.withLock { $0 }?.authenticate(connection.id)
    talk(connection.id)
  }

  private func talk(_ id: ConnectionID) {
    guard !isStopped.withLock({ $0 }), let transport = held.withLock({ $0 }) else { return }
    for frame in frames { _ = transport.send(id, frame) }
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100)) { [weak self] in self?.talk(id) }
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {}
  func closed(_ connection: ConnectionID, reason: CloseReason) { left.withLock { $0 = true } }
  func drained(_ connection: ConnectionID, queuedBytes: Int) {}
  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {}

  /// The transport's handler is made before it.
  private final class Relay: TransportHandler {
    let target = Mutex<TalkingStranger?>(nil)
    private var handler: TalkingStranger? { target.withLock { $0 } }
    func opened(_ connection: OpenedConnection) { handler?.opened(connection) }
    func received(_ connection: ConnectionID, frame: [UInt8]) {}
    func closed(_ connection: ConnectionID, reason: CloseReason) { handler?.closed(connection, reason: reason) }
    func drained(_ connection: ConnectionID, queuedBytes: Int) {}
    func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {}
  }
}
