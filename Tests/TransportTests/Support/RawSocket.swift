import Glibc
import Replication
import Testing

@testable import Transport

/// A plain blocking TCP socket: the peer that does not speak our protocol.
final class RawSocket {
  let descriptor: Int32

  /// `from` is a loopback address to come from: 127.0.0.0/8 is all ours.
  init?(to port: UInt16, from source: UInt32 = 0x7f00_0001) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    let bound = SocketAddress(.ipv4(source), port: 0).withKernelForm { bind(descriptor, $0, $1) }
    let result = SocketAddress(Node.loopback, port: port).withKernelForm { connect(descriptor, $0, $1) }
    guard bound == 0, result == 0 else {
      close(descriptor)
      return nil
    }
  }

  deinit { close(descriptor) }

  func write(_ bytes: [UInt8]) -> Bool { send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count }

  /// Waits for the other end's closing; false when it is still open after the time.
  func isClosed(withinMilliseconds limit: Int32) -> Bool {
    let deadline = ElapsedClock.now().advanced(byMilliseconds: UInt64(limit))
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let now = ElapsedClock.now()
      guard now < deadline else { return false }
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, Int32(clamping: deadline.millisecondsSince(now))) == 1 else { return false }
      if recv(descriptor, &buffer, buffer.count, 0) <= 0 { return true }
    }
  }
}

/// A blocking TLS client with a key of its own that writes what it likes.
final class TLSClient {
  let socket: RawSocket
  let session: TLSSession

  init(to node: Node, seed: UInt8 = 9) throws {
    // libssl writes without MSG_NOSIGNAL; the transport's own threads block the signal.
    signal(SIGPIPE, SIG_IGN)
    let (_, credentials) = try Node.identity(seed: seed)
    socket = try #require(RawSocket(to: node.port))
    session = try TLSSession(try TLSContext(credentials), descriptor: socket.descriptor, asClient: true)
    #expect(session.handshake() == .done)
  }

  func write(_ bytes: [UInt8]) {
    let written = bytes.withUnsafeBytes { session.write($0) }
    #expect(written == .bytes(bytes.count))
  }
}
