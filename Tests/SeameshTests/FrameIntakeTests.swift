import Foundation
import Identity
import Replication
import Synchronization
import Testing
import Wire

@testable import Engine
@testable import Seamesh
@testable import Transport

@Suite struct FrameIntakeTests {
  private let inbox = Inbox()
  private let connection = ConnectionID(number: 7)
  private let authority: Authority
  private let fleet: FleetID

  init() throws {
    let founding = try FleetFounding.make(fleetName: "f", user: "u", label: "l")
    fleet = founding.fleet
    authority = Authority(root: founding.rootKey.publicKey, statements: founding.statements, hash: SHA256.hash)
  }

  private func intake(_ pause: @escaping @Sendable (ConnectionID) -> Void) -> FrameIntake {
    let verifier = StatementVerifier(fleet: fleet)
    let cryptography = Cryptography(
      hash: SHA256.hash, verify: Ed25519.verify, sign: SigningKey().sign, authenticationCode: HMAC.sha256,
      statement: verifier.read, holdingsBytes: HoldingsCodec.signedBytes)
    return FrameIntake(
      FrameDecoder(fleet: fleet, cryptography), authority: CurrentAuthority(authority), inbox: inbox, pause: pause)
  }

  @Test("a flood of the smallest messages is held up while the engine is busy")
  func smallMessages() {
    let pauses = Mutex(0)
    let intake = intake { _ in pauses.withLock { $0 += 1 } }
    let ping = MessageCodec.encode(.ping(nonce: 1))
    var count = 0
    while pauses.withLock({ $0 == 0 }), count < 200_000 {
      intake.received(connection, frame: ping)
      count += 1
    }
    #expect(pauses.withLock { $0 } == 1)
    #expect(count == WaitingFrames.messageLimit + 1)
    var resumed = 0
    for _ in 0..<count where intake.release(connection, ping.count) { resumed += 1 }
    #expect(resumed == 1)
  }

  @Test("what peers send is counted by kind, and nothing that is no message")
  func tally() {
    let intake = intake { _ in }
    let ping = MessageCodec.encode(.ping(nonce: 1_000_000))
    let news = MessageCodec.encode(.neighbours(NeighbourNews(added: [DeviceMark(DeviceID(fleet.digest))])))
    for frame in [ping, ping, news, [0x81, 0x18, 0x7f], [0x41], []] { intake.received(connection, frame: frame) }
    let all = intake.tally.received
    #expect(all.count == MessageCodec.Number.allCases.count)
    let figures = all.filter { $0.row.frames > 0 }
    #expect(figures.map(\.name) == ["ping", "neighbours"])
    #expect(
      figures.map(\.row) == [
        .init(frames: 2, bytes: UInt64(2 * ping.count)), .init(frames: 1, bytes: UInt64(news.count)),
      ])
    let metrics = NodeGauges.Figures(received: figures).metrics
    #expect(metrics.contains("seamesh_received_messages_total{message=\"neighbours\"} 1"))
    #expect(metrics.contains("seamesh_received_bytes_total{message=\"ping\"} \(2 * ping.count)"))
  }

  @Test("frames that have not come to their end leave less to those that wait for the engine")
  func unfinishedFrames() {
    let frame = 1 << 20
    func taken(_ unfinished: Int) -> Int {
      var waiting = WaitingFrames()
      waiting.unfinishedByteCount = unfinished
      for number in 0..<64 as Range<UInt64> {
        while !waiting.add(frame, of: ConnectionID(number: number)) {}
      }
      return waiting.byteCount
    }
    #expect(taken(0) > taken(32 << 20) + (16 << 20))
  }

  @Test(
    "a peer that is held up is read from again only when it is let go and the engine has caught up, in either order")
  func twoReasons() {
    let pauses = Mutex(0)
    let intake = intake { _ in pauses.withLock { $0 += 1 } }
    let ping = MessageCodec.encode(.ping(nonce: 1))
    intake.holdUp(connection)
    #expect(pauses.withLock { $0 } == 0, "nothing is known of this connection")
    intake.received(connection, frame: ping)
    intake.holdUp(connection)
    #expect(pauses.withLock { $0 } == 1)
    for _ in 0..<WaitingFrames.messageLimit { intake.received(connection, frame: ping) }
    #expect(!intake.letGo(connection), "the engine is behind")
    intake.holdUp(connection)
    for _ in 0...WaitingFrames.messageLimit { #expect(!intake.release(connection, ping.count)) }
    #expect(intake.letGo(connection))
    #expect(!intake.letGo(connection))
  }

  @Test("after what is no message nothing more of its connection reaches the engine")
  func garbage() {
    let intake = intake { _ in }
    for _ in 0..<1_000 { intake.received(connection, frame: [0xff]) }
    intake.received(connection, frame: MessageCodec.encode(.ping(nonce: 1)))
    intake.received(ConnectionID(number: 8), frame: MessageCodec.encode(.ping(nonce: 1)))
    #expect(inbox.take(.peers).count == 2)
  }

  @Test("an engine that catches up at the very moment of a pause has the last word")
  func race() throws {
    let said = Mutex<[String]>([])
    let engine = Mutex<FrameIntake?>(nil)
    let released = DispatchSemaphore(value: 0)
    let connection = connection
    let intake = intake { _ in
      let intake = engine.withLock { $0 }
      Thread.detachNewThread {
        if intake?.release(connection, WaitingFrames.connectionByteLimit) == true {
          said.withLock { $0.append("resume") }
        }
        released.signal()
      }
      // Long enough for the other thread, were it not kept out.
      if released.wait(timeout: .now() + 0.5) == .success { released.signal() }
      said.withLock { $0.append("pause") }
    }
    engine.withLock { $0 = intake }
    let name = try PartitionName("room=1")
    let piece = MessageCodec.encode(
      .payloadPiece(
        PayloadPiece(
          name: name, stream: 1, hash: .zero, total: UInt64(PayloadPiece.byteLimit), offset: 0,
          bytes: [UInt8](repeating: 0, count: PayloadPiece.byteLimit)[...])))
    while said.withLock({ $0.isEmpty }) { intake.received(connection, frame: piece) }
    released.wait()
    #expect(said.withLock { $0 } == ["pause", "resume"])
    engine.withLock { $0 = nil }
  }
}
