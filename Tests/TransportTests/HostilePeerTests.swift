import Foundation
import Glibc
import Replication
import Synchronization
import TestSupport
import Testing

@testable import Transport

/// Peers that stall, flood, lie or speak something else (N12, N14, W2–W4, W6, W11).
@Suite(.serialized) struct HostilePeerTests {
  private func header(_ length: UInt32) -> [UInt8] { withUnsafeBytes(of: length.bigEndian) { Array($0) } }

  /// The node still serves honest peers.
  private func expectAlive(_ node: Node) throws {
    let honest = try Node(seed: 200, listening: false)
    let pair = try #require(honest.connectAuthenticated(to: node))
    honest.transport.send(pair.here.id, [1, 2, 3])
    #expect(node.recorder.wait { $0.frames[pair.there.id] == [[1, 2, 3]] })
  }

  @Test("bytes that are no TLS close the connection and are never delivered", arguments: 0..<5)
  func garbageBeforeTLS(seed: UInt64) throws {
    let node = try Node(seed: 1)
    var random = SplitMix64(seed: seed)
    let socket = try #require(RawSocket(to: node.port))
    #expect(socket.write(seed == 0 ? Array("GET / HTTP/1.1\r\n\r\n".utf8) : random.bytes(500)))
    shutdown(socket.descriptor, Int32(SHUT_WR))
    #expect(socket.isClosed(withinMilliseconds: 10_000))
    #expect(waitUntil { node.transport.statistics.handshakeFailures == 1 })
    #expect(node.recorder.now.opened.isEmpty)
    try expectAlive(node)
  }

  @Test("bytes that are no TLS after the handshake close the connection")
  func garbageAfterTLS() throws {
    let node = try Node(seed: 1)
    let client = try TLSClient(to: node)
    var random = SplitMix64(seed: 5)
    #expect(client.socket.write([23, 3, 3, 1, 0] + random.bytes(256)))
    #expect(
      node.recorder.wait { state in
        state.closed.values.contains { if case .failed = $0 { true } else { false } }
      })
    try expectAlive(node)
    withExtendedLifetime(client) {}
  }

  @Test("a first frame above 16 KiB is refused by its length alone, even where later ones might have it")
  func oversizeFirstFrame() throws {
    let node = try Node(seed: 1)
    let client = try TLSClient(to: node)
    client.write(header(16 * 1024 + 1))
    #expect(
      node.recorder.wait {
        $0.closed.values.contains(.frameTooLarge(byteCount: 16 * 1024 + 1, limit: 16 * 1024))
      })
    #expect(node.transport.statistics.framingViolations == 1)
    try expectAlive(node)
  }

  @Test(
    "an authenticated peer's frame above 4 MiB and a bit is refused by its length",
    arguments: [4 * 1024 * 1024 + 64 * 1024 + 1 as UInt32, UInt32.max])
  func oversizeLaterFrame(length: UInt32) throws {
    let node = try Node(seed: 1)
    let client = try TLSClient(to: node)
    let id = try #require(node.recorder.wait { $0.opened.first?.id })
    node.transport.authenticate(id)
    client.write(header(length))
    #expect(
      node.recorder.wait {
        $0.closed[id] == .frameTooLarge(byteCount: Int(length), limit: 4 * 1024 * 1024 + 64 * 1024)
      })
  }

  @Test("an empty frame ends the connection")
  func emptyFrame() throws {
    let node = try Node(seed: 1)
    let client = try TLSClient(to: node)
    client.write([0, 0, 0, 0])
    #expect(node.recorder.wait { $0.closed.values.contains(.emptyFrame) })
  }

  @Test("a large frame right behind the first one waits until the peer is authenticated, then arrives")
  func largeFrameBeforeAuthentication() throws {
    let node = try Node(seed: 1)
    let client = try TLSClient(to: node)
    let large = [UInt8](repeating: 7, count: 100_000)
    client.write(header(2) + [1, 2])
    client.write(header(UInt32(large.count)))
    var position = 0
    while position < large.count {
      guard case .bytes(let count) = large[position...].withUnsafeBytes({ client.session.write($0) }) else { break }
      position += count
    }
    let id = try #require(node.recorder.wait { $0.opened.first?.id })
    #expect(node.recorder.wait { $0.frames[id] == [[1, 2]] })
    // Whatever else the IO thread would do with the input happens before it answers another peer.
    try expectAlive(node)
    #expect(node.recorder.now.frames[id] == [[1, 2]])
    node.transport.authenticate(id)
    #expect(node.recorder.wait { $0.frames[id] == [[1, 2], large] })
  }

  @Test("what a stranger may send before authentication is bounded in all, too")
  func strangersInputIsBounded() throws {
    let node = try Node(seed: 1)
    let client = try TLSClient(to: node)
    let frame = header(10_000) + [UInt8](repeating: 1, count: 10_000)
    for _ in 0..<20 { client.write(frame) }
    let id = try #require(node.recorder.wait { $0.opened.first?.id })
    #expect(node.recorder.wait { $0.frames[id]?.count == 7 })
    try expectAlive(node)
    #expect(node.recorder.now.frames[id]?.count == 7)
    node.transport.authenticate(id)
    #expect(node.recorder.wait { $0.frames[id]?.count == 20 })
  }

  @Test("a handshake that stalls, silent or byte by byte, ends after its time")
  func slowLoris() throws {
    let node = try Node(seed: 1) { $0.handshakeTimeoutMilliseconds = 300 }
    let silent = try #require(RawSocket(to: node.port))
    let trickle = try #require(RawSocket(to: node.port))
    #expect(trickle.write([22, 3, 1, 1, 0]))
    #expect(silent.isClosed(withinMilliseconds: 10_000))
    #expect(trickle.isClosed(withinMilliseconds: 10_000))
    #expect(node.transport.statistics.handshakeFailures == 2)
    try expectAlive(node)
  }

  @Test("a peer that nobody authenticates is closed after its time, however much it talks")
  func neverAuthenticated() throws {
    let node = try Node(seed: 1) { $0.authenticationTimeoutMilliseconds = 300 }
    let client = try TLSClient(to: node)
    client.write(header(1) + [1])
    #expect(client.socket.isClosed(withinMilliseconds: 10_000))
    #expect(node.recorder.wait { $0.closed.values.contains(.authenticationTimedOut) })
    withExtendedLifetime(client) {}
  }

  @Test("beside 32 silent unauthenticated connections a newcomer is served at once: the oldest gives way")
  func unauthenticatedLimit() throws {
    let node = try Node(seed: 1) { $0.handshakeTimeoutMilliseconds = 60_000 }
    var sockets: [RawSocket] = []
    for index in 0..<32 {
      sockets.append(try #require(RawSocket(to: node.port, from: 0x7f00_0101 + UInt32(index / 8))))
    }
    #expect(waitUntil { node.transport.statistics.accepted == 32 })
    try expectAlive(node)
    #expect(node.transport.statistics.evicted == 1 && node.transport.statistics.accepted == 33)
    #expect(sockets[0].isClosed(withinMilliseconds: 10_000))
    // Whoever has eight places already does not drive others out.
    let greedy = try #require(RawSocket(to: node.port, from: 0x7f00_0104))
    #expect(greedy.isClosed(withinMilliseconds: 10_000))
    #expect(node.transport.statistics.refusedBySource == 1 && node.transport.statistics.evicted == 1)
  }

  @Test("of many addresses with one connection each whoever came first gives way, and not whose address is lowest")
  func firstComeGoes() throws {
    let node = try Node(seed: 1) { $0.handshakeTimeoutMilliseconds = 60_000 }
    func stranger(_ number: UInt32) throws -> RawSocket {
      let before = node.transport.statistics.accepted
      let socket = try #require(RawSocket(to: node.port, from: 0x7f00_0200 + number))
      #expect(waitUntil { node.transport.statistics.accepted == before + 1 })
      return socket
    }
    let crowd = try (1...31).map(stranger)
    let lowest = try stranger(0)
    let newcomers = try (32...50).map(stranger)
    // That are all that went.
    #expect(node.transport.statistics.evicted == 19)
    for socket in crowd[..<19] { #expect(socket.isClosed(withinMilliseconds: 10_000)) }
    withExtendedLifetime((crowd, lowest, newcomers)) {}
  }

  @Test("one address gets eight unauthenticated connections, while others are served")
  func perSourceLimit() throws {
    let node = try Node(seed: 1) { $0.handshakeTimeoutMilliseconds = 60_000 }
    let sockets = (0..<20).compactMap { _ in RawSocket(to: node.port, from: 0x7f00_0102) }
    #expect(sockets.count == 20)
    #expect(waitUntil { node.transport.statistics.refusedBySource == 12 })
    #expect(node.transport.statistics.accepted == 8)
    try expectAlive(node)
  }

  @Test("a flood of connections does not keep an honest peer out")
  func flood() throws {
    let node = try Node(seed: 1) {
      $0.acceptBurst = 16
      $0.handshakeTimeoutMilliseconds = 500
    }
    let stop = Flag()
    let port = node.port
    let flooders = (0..<2).map { number in
      let thread = Thread {
        while !stop.isRaised { _ = RawSocket(to: port, from: 0x7f00_0110 + UInt32(number)) }
        stop.lower()
      }
      thread.start()
      return thread
    }
    #expect(waitUntil { node.transport.statistics.accepted > 50 })
    for _ in 0..<3 { try expectAlive(node) }
    stop.raise()
    #expect(waitUntil { stop.lowered == flooders.count })
  }

  @Test("a peer that reads nothing is closed after its time; others are served meanwhile, and the queue is bounded")
  func stalledReader() throws {
    let node = try Node(seed: 1) {
      $0.stallTimeoutMilliseconds = 700
      $0.sendQueueByteLimit = 1_000_000
    }
    let client = try TLSClient(to: node)
    let id = try #require(node.recorder.wait { $0.opened.first?.id })
    node.transport.authenticate(id)
    let frame = [UInt8](repeating: 1, count: 200_000)
    var results: [SendResult] = []
    #expect(
      waitUntil {
        results.append(node.transport.send(id, frame))
        return results.last == .full
      })
    #expect((node.transport.queuedBytes(of: id) ?? 0) <= 1_000_000 + frame.count + 4)
    try expectAlive(node)
    #expect(node.recorder.wait { $0.closed[id] == .peerStalled })
    #expect(node.transport.statistics.stalledPeers == 1)
    withExtendedLifetime(client) {}
  }

  @Test("a queue that was full tells when it has drained")
  func drained() throws {
    let (a, b) = (try Node(seed: 1) { $0.sendQueueByteLimit = 3_000_000 }, try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    b.transport.pauseReading(pair.there.id)
    let frame = [UInt8](repeating: 1, count: 500_000)
    var (sent, refused) = (0, 0)
    // Full once is not full for good: the system's own buffers still take some.
    #expect(
      waitUntil {
        let isQueued = a.transport.send(pair.here.id, frame) == .queued
        (sent, refused) = isQueued ? (sent + 1, 0) : (sent, refused + 1)
        return refused == 20
      })
    let before = a.recorder.now.drained.count
    b.transport.resumeReading(pair.there.id)
    #expect(a.recorder.wait { $0.drained.count > before })
    #expect(Set(a.recorder.now.drained) == [pair.here.id])
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == sent })
  }

  @Test("a paused connection delivers nothing until it is resumed, and then everything")
  func paused() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    b.transport.pauseReading(pair.there.id)
    let frames = (0..<100).map { [UInt8](repeating: UInt8($0), count: 50_000) }
    #expect(a.transport.send(pair.here.id, frames) == .queued)
    try expectAlive(b)
    #expect((b.recorder.now.frames[pair.there.id]?.count ?? 0) < 30)
    b.transport.resumeReading(pair.there.id)
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == 100 })
    #expect(b.recorder.now.frames[pair.there.id] == frames)
  }

  @Test("without a free descriptor new peers wait, those that are connected go on, and it recovers")
  func descriptorExhaustion() async {
    // In a process of its own: the limit is the process's.
    await #expect(processExitsWith: .success) {
      let (a, b) = (try Node(seed: 1), try Node(seed: 2))
      let pair = try #require(a.connectAuthenticated(to: b))
      // The client's socket must exist before the descriptors are gone.
      let late = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      let before = limit
      limit.rlim_cur = rlim_t(late) + 8
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      var hoarded: [Int32] = []
      while case let number = dup(late), number >= 0 { hoarded.append(number) }
      let result = SocketAddress(Node.loopback, port: b.port).withKernelForm { connect(late, $0, $1) }
      try #require(result == 0)
      try #require(waitUntil { b.transport.statistics.acceptFailures >= 1 })
      #expect(b.transport.statistics.lastAcceptFailure.map { $0 <= ElapsedClock.now() } == true)
      try #require(a.transport.send(pair.here.id, [5]) == .queued)
      try #require(b.recorder.wait { $0.frames[pair.there.id] == [[5]] })
      for number in hoarded { close(number) }
      var restored = before
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &restored)
      let honest = try Node(seed: 200, listening: false)
      try #require(honest.connectAuthenticated(to: b) != nil)
    }
  }

  @Test(
    "TLS 1.2, another protocol name or none, another signature algorithm and no certificate are refused",
    .enabled(if: access("/usr/bin/openssl", X_OK) == 0, "needs the openssl command"),
    arguments: [
      ("-tls1_2 -alpn seamesh/1", "ed25519"), ("-tls1_3 -alpn http/1.1", "ed25519"), ("-tls1_3", "ed25519"),
      ("-tls1_3 -alpn seamesh/1", "ec -pkeyopt ec_paramgen_curve:P-256"), ("-tls1_3 -alpn seamesh/1", nil),
      ("-tls1_3 -alpn seamesh/1 -groups P-256", "ed25519"),
    ])
  func downgrade(arguments: String, key: String?) throws {
    let node = try Node(seed: 1)
    try runOpenSSL(arguments, key: key, to: node)
    #expect(waitUntil { node.transport.statistics.handshakeFailures == 1 })
    #expect(node.recorder.now.opened.isEmpty)
  }

  @Test(
    "another TLS library's client with the right version, name and key is let in",
    .enabled(if: access("/usr/bin/openssl", X_OK) == 0, "needs the openssl command"))
  func otherClient() throws {
    let node = try Node(seed: 1)
    try runOpenSSL("-tls1_3 -alpn seamesh/1", key: "ed25519", to: node)
    #expect(node.recorder.wait { $0.opened.count == 1 })
  }

  /// `key` is an algorithm for `openssl req -newkey`; nil shows no certificate.
  private func runOpenSSL(_ arguments: String, key: String?, to node: Node) throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "seamesh-tls-\(getpid())-\(node.port)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let identity = key == nil ? "" : "-cert c.pem -key k.pem"
    try ChildProcess(
      """
      cd \(directory.path)
      openssl req -x509 -newkey \(key ?? "ed25519") -nodes -keyout k.pem -out c.pem -subj /CN=x
      printf x | timeout 10 openssl s_client -connect 127.0.0.1:\(node.port) \(arguments) \(identity) -quiet
      """
    ).wait()
  }

  @Test("a flood of TLS key updates ends the connection, a few do not")
  func keyUpdateFlood() throws {
    let node = try Node(seed: 1)
    let client = try TLSClient(to: node)
    let id = try #require(node.recorder.wait { $0.opened.first?.id })
    node.transport.authenticate(id)
    let frame = header(1) + [7]
    for _ in 0..<10 {
      client.session.renewKey()
      client.write(frame)
    }
    #expect(node.recorder.wait { $0.frames[id]?.count == 10 })
    for _ in 0..<300 {
      client.session.renewKey()
      _ = frame.withUnsafeBytes { client.session.write($0) }
    }
    #expect(node.recorder.wait { $0.closed[id] == .flooded })
  }
}

/// Tells threads to stop and counts those that did.
private final class Flag: Sendable {
  private let state = Mutex((isRaised: false, lowered: 0))
  var isRaised: Bool { state.withLock { $0.isRaised } }
  var lowered: Int { state.withLock { $0.lowered } }
  func raise() { state.withLock { $0.isRaised = true } }
  func lower() { state.withLock { $0.lowered += 1 } }
}
