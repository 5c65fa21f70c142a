import Identity
import Links
import Replication

@testable import Transport

/// A transport on loopback with an identity of its own, made from a seed.
final class Node {
  let key: PublicKey
  let credentials: TLSCredentials
  let recorder = Recorder()
  let transport: SecureTransport
  private(set) var port: UInt16 = 0

  static let loopback = SocketAddress.Host.ipv4(0x7f00_0001)

  init(
    seed: UInt8, listening: Bool = true, meter: (any LinkMeter)? = nil,
    _ change: (inout TransportConfiguration) -> Void = { _ in }
  ) throws {
    (key, credentials) = try Node.identity(seed: seed)
    var configuration = TransportConfiguration()
    change(&configuration)
    transport = try SecureTransport(configuration, credentials: credentials, handler: recorder, meter: meter)
    if listening { port = try transport.listen(host: Node.loopback, port: 0).first?.port ?? 0 }
  }

  deinit { transport.stop() }

  static func identity(seed: UInt8) throws -> (PublicKey, TLSCredentials) {
    guard let key = SigningKey(seed: [UInt8](repeating: seed, count: 32)) else { throw BadSeed() }
    let identity = try TLSIdentity(key)
    return (key.publicKey, TLSCredentials(certificate: identity.certificateDER, privateKey: identity.privateKeyDER))
  }

  struct BadSeed: Error {}

  var address: PeerAddress { .socket(SocketAddress(Node.loopback, port: port)) }

  /// Connects to the other node; both ends as they are told.
  func connect(to other: Node, tag: UInt64 = 1) -> (here: OpenedConnection, there: OpenedConnection)? {
    let id = transport.dial(other.address, tag: tag)
    guard let here = recorder.wait(for: { $0.opened.first { $0.id == id } }) else { return nil }
    guard let there = other.recorder.wait(for: { $0.opened.first { $0.exporter == here.exporter } }) else { return nil }
    return (here, there)
  }

  func connectAuthenticated(to other: Node) -> (here: OpenedConnection, there: OpenedConnection)? {
    guard let pair = connect(to: other) else { return nil }
    transport.authenticate(pair.here.id)
    other.transport.authenticate(pair.there.id)
    return pair
  }
}
