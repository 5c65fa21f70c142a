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
    func step(after message: Message, on connection: OpenedConnection) -> InquiryStep { .wait }
    func failure(_ inquiry: InquiryProgress) -> NodeError { NodeError(.failed, inquiry.lastFailure ?? "") }
  }

  @Test(
    "who tells statements one by one holds up nobody but himself: the next one has his turn", .timeLimit(.minutes(1)))
  func turns() throws {
    let founding = try FleetFounding.make(fleetName: "patrol", user: "ann", label: "a", profile: ValueMap())
    let statement = try #require(founding.statements.first).encoded
    let strangers = try [TalkingStranger(statement), TalkingStranger(statement)]
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
}

/// Says one and the same statement over and over.
private final class TalkingStranger: TransportHandler {
  private let statement: [UInt8]
  private let held = Mutex<SecureTransport?>(nil)
  private let isStopped = Mutex(false)
  private let asked = Mutex(false)
  let address: PeerAddress

  init(_ statement: [UInt8]) throws {
    self.statement = statement
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

  func stop() {
    isStopped.withLock { $0 = true }
    held.withLock { $0 }?.stop()
  }

  func opened(_ connection: OpenedConnection) {
    asked.withLock { $0 = true }
    talk(connection.id)
  }

  private func talk(_ id: ConnectionID) {
    guard !isStopped.withLock({ $0 }), let transport = held.withLock({ $0 }) else { return }
    _ = transport.send(id, MessageCodec.encode(.statements([statement])))
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100)) { [weak self] in self?.talk(id) }
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {}
  func closed(_ connection: ConnectionID, reason: CloseReason) {}
  func drained(_ connection: ConnectionID, queuedBytes: Int) {}
  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {}

  /// The transport's handler is made before it.
  private final class Relay: TransportHandler {
    let target = Mutex<TalkingStranger?>(nil)
    private var handler: TalkingStranger? { target.withLock { $0 } }
    func opened(_ connection: OpenedConnection) { handler?.opened(connection) }
    func received(_ connection: ConnectionID, frame: [UInt8]) {}
    func closed(_ connection: ConnectionID, reason: CloseReason) {}
    func drained(_ connection: ConnectionID, queuedBytes: Int) {}
    func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {}
  }
}
