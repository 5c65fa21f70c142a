import Engine
import Identity
import Replication
import Synchronization
import Testing
import Transport

@testable import Seamesh

@Suite(.serialized) struct DialTests {
  /// Takes connections and closes each as soon as it stands, before a word was said.
  private final class Closer: TransportHandler {
    let transport = Mutex<SecureTransport?>(nil)
    let count = Mutex(0)

    func opened(_ connection: OpenedConnection) {
      count.withLock { $0 += 1 }
      transport.withLock { $0 }?.close(connection.id)
    }
    func received(_ connection: ConnectionID, frame: [UInt8]) {}
    func closed(_ connection: ConnectionID, reason: CloseReason) {}
    func drained(_ connection: ConnectionID, queuedBytes: Int) {}
    func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {}
  }

  @Test("a dialled connection that closes without a session frees its place at once")
  func closedBeforeSession() throws {
    let identity = try TLSIdentity(SigningKey())
    let closer = Closer()
    let transport = try SecureTransport(
      credentials: TLSCredentials(certificate: identity.certificateDER, privateKey: identity.privateKeyDER),
      handler: closer)
    closer.transport.withLock { $0 = transport }
    defer {
      closer.transport.withLock { $0 = nil }
      transport.stop()
    }
    let address = try #require(try transport.listen(host: .ipv4(0x7f00_0001), port: 0).first)
    let fleet = try TestFleet(1) { $0.peers = [.socket(address)] }
    // Well below the time that an attempt without an end may take.
    try eventually(within: 8) { closer.count.withLock { $0 } >= 3 }
    let state = try fleet.nodes[0].engine.ask { $0.links.policy.entries.map(\.failures) }
    #expect((state.first ?? 0) >= 2)
  }

  @Test("a peer that cannot be reached is shown with the system's own words")
  func unreachable() throws {
    let fleet = try TestFleet(1) { $0.peers = [.socket(SocketAddress(.ipv4(0x7f00_0001), port: 1))] }
    try eventually { try fleet.nodes[0].peers().first?.state == .unreachable }
    #expect(try fleet.nodes[0].peers().first?.detail == "connect: Connection refused")
  }
}
