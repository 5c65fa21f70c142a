import Glibc
import Identity
import Replication
import TestSupport
import Testing

@testable import Transport

@Suite(.serialized) struct ConnectionTests {
  @Test("both ends learn the other's key and share an exporter value")
  func keys() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let pair = try #require(a.connect(to: b, tag: 77))
    #expect(pair.here.peerKey == b.key)
    #expect(pair.there.peerKey == a.key)
    #expect(pair.here.exporter == pair.there.exporter)
    #expect(pair.here.exporter != .zero)
    #expect(pair.here.origin == .dialled(tag: 77))
    #expect(pair.there.origin == .accepted)
    #expect(pair.here.remote == SocketAddress(Node.loopback, port: b.port))
    let other = try #require(a.connect(to: b, tag: 78))
    #expect(other.here.exporter != pair.here.exporter)
  }

  @Test("the whole handshake with both certificates stays below 1,700 bytes")
  func handshakeSize() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let (_, credentials) = try Node.identity(seed: 3)
    let context = try TLSContext(credentials)
    let socket = try #require(RawSocket(to: b.port))
    let session = try TLSSession(context, descriptor: socket.descriptor, asClient: true)
    #expect(session.handshake() == .done)
    #expect(session.wireByteCount < 1_700)
    #expect(session.peer?.key == b.key)
    withExtendedLifetime(a) {}
  }

  @Test("frames of all sizes arrive whole and in order in both directions", arguments: [1, 42])
  func frames(seed: UInt64) throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    var random = SplitMix64(seed: seed)
    let sizes = [1, 2, 3, 4, 5, 16_379, 16_380, 16_381, 16_384, 65_536, 262_144, 4 * 1024 * 1024 + 64 * 1024]
    let frames = (sizes + (0..<100).map { _ in Int.random(in: 1...40_000, using: &random) }).map { random.bytes($0) }
    for frame in frames {
      #expect(waitUntil { a.transport.send(pair.here.id, frame) != .full })
      #expect(waitUntil { b.transport.send(pair.there.id, frame) != .full })
    }
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == frames.count })
    #expect(a.recorder.wait { $0.frames[pair.here.id]?.count == frames.count })
    #expect(b.recorder.now.frames[pair.there.id] == frames)
    #expect(a.recorder.now.frames[pair.here.id] == frames)
    #expect(waitUntil { a.transport.queuedBytes(of: pair.here.id) == 0 })
  }

  @Test("frames that were sent before the connection opened go first")
  func sentEarly() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let id = a.transport.dial(b.address, tag: 1)
    #expect(a.transport.send(id, [[1], [2, 2]]) == .queued)
    #expect(b.recorder.wait { $0.frames.values.first == [[1], [2, 2]] })
  }

  @Test("a clean close delivers all that was queued, then the end")
  func cleanClose() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    let frames = (0..<50).map { [UInt8](repeating: UInt8($0), count: 100_000) }
    #expect(a.transport.send(pair.here.id, frames) == .queued)
    a.transport.close(pair.here.id, afterFlush: true)
    #expect(b.recorder.wait { $0.closed[pair.there.id] == .ended })
    #expect(b.recorder.now.frames[pair.there.id] == frames)
    #expect(a.recorder.wait { $0.closed[pair.here.id] == .requested })
    #expect(a.transport.send(pair.here.id, [1]) == .closed)
    #expect(a.transport.queuedBytes(of: pair.here.id) == nil)
  }

  @Test("an end without close_notify is told apart from a clean one")
  func truncated() throws {
    let b = try Node(seed: 2)
    let (_, credentials) = try Node.identity(seed: 3)
    let context = try TLSContext(credentials)
    do {
      let socket = try #require(RawSocket(to: b.port))
      let session = try TLSSession(context, descriptor: socket.descriptor, asClient: true)
      #expect(session.handshake() == .done)
      shutdown(socket.descriptor, Int32(SHUT_WR))
      #expect(socket.isClosed(withinMilliseconds: 10_000))
    }
    #expect(b.recorder.wait { $0.closed.values.contains(.truncated) })
  }

  @Test("a clean end inside a frame counts as broken off")
  func endInsideFrame() throws {
    let b = try Node(seed: 2)
    let (_, credentials) = try Node.identity(seed: 3)
    let socket = try #require(RawSocket(to: b.port))
    let session = try TLSSession(try TLSContext(credentials), descriptor: socket.descriptor, asClient: true)
    #expect(session.handshake() == .done)
    let start: [UInt8] = [0, 0, 0, 9, 1]
    #expect(start.withUnsafeBytes { session.write($0) } == .bytes(5))
    #expect(session.sendCloseNotify() == .done)
    #expect(b.recorder.wait { $0.closed.values.contains(.truncated) })
  }

  @Test("a dial to a closed port, an unknown name and a port that speaks something else fails with the reason")
  func failures() throws {
    let a = try Node(seed: 1)
    let closed = try TCP.listen(SocketAddress(Node.loopback, port: 0))
    let port = try #require(TCP.localAddress(closed.number)?.port)
    shutdown(closed.number, Int32(SHUT_RDWR))
    a.transport.dial(.socket(SocketAddress(Node.loopback, port: port)), tag: 1)
    a.transport.dial(.name("name.invalid", port: 1), tag: 2)
    #expect(a.recorder.wait { $0.failed[1] == .unreachable("connect: Connection refused") })
    #expect(a.recorder.wait { $0.failed[2] == .unknownHost })

    let talker = try TCP.listen(SocketAddress(Node.loopback, port: 0))
    let talkerPort = try #require(TCP.localAddress(talker.number)?.port)
    a.transport.dial(.socket(SocketAddress(Node.loopback, port: talkerPort)), tag: 3)
    var accepted: Int32 = -1
    #expect(
      waitUntil {
        accepted = accept(talker.number, nil, nil)
        return accepted >= 0
      })
    let answer = Array("HTTP/1.1 200 OK\r\n\r\nplease log in".utf8)
    #expect(send(accepted, answer, answer.count, Int32(MSG_NOSIGNAL)) == answer.count)
    #expect(a.recorder.wait { state in if case .handshakeFailed = state.failed[3] { true } else { false } })
    close(accepted)
  }

  @Test("localhost by name connects, trying its addresses in turn")
  func byName() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    a.transport.dial(.name("localhost", port: b.port), tag: 5)
    #expect(b.recorder.wait { $0.opened.count == 1 })
  }

  @Test("a node listens on both families on one port")
  func dualStack() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2, listening: false))
    let bound = try b.transport.listen(port: 0)
    #expect(Set(bound.map(\.port)).count == 1)
    for (tag, address) in bound.enumerated() {
      let loopback = address.family == AF_INET ? Node.loopback : .ipv6(high: 0, low: 1, scope: 0)
      a.transport.dial(.socket(SocketAddress(loopback, port: address.port)), tag: UInt64(tag))
    }
    #expect(b.recorder.wait { $0.opened.count == bound.count })
  }

  @Test("stop closes every connection, tells so, and nothing works afterwards")
  func stop() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    a.transport.stop()
    #expect(a.recorder.now.closed[pair.here.id] == .stopped)
    #expect(b.recorder.wait { $0.closed[pair.there.id] == .ended })
    #expect(a.transport.send(pair.here.id, [1]) == .closed)
    #expect(RawSocket(to: a.port) == nil)
  }
}
