import Glibc
import Links
import Replication
import TestSupport
import Testing

@testable import Transport

@Suite("What connections cost", .serialized) struct MeteringTests {
  private static let loopbackPath = LinkPath(interface: "lo", remote: Node.loopback)

  private func node(_ seed: UInt8, _ meter: FakeMeter) throws -> Node { try Node(seed: seed, meter: meter) }

  private func send(_ byteCount: Int, from node: Node, _ connection: OpenedConnection) {
    for _ in 0..<(byteCount / 50_000) {
      let frame = [UInt8](repeating: 7, count: 50_000)
      #expect(waitUntil { node.transport.send(connection.id, frame) != .full })
    }
  }

  @Test("both ends charge what went over the connection, little more than the frames, while it is open")
  func chargedWhileOpen() throws {
    let (here, there) = (FakeMeter(), FakeMeter())
    let (a, b) = (try node(1, here), try node(2, there))
    let pair = try #require(a.connectAuthenticated(to: b))
    #expect(pair.here.path == MeteringTests.loopbackPath)
    #expect(pair.there.path == MeteringTests.loopbackPath)
    send(3_000_000, from: a, pair.here)
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == 60 })
    for meter in [here, there] {
      #expect(waitUntil { meter.charged > 3_000_000 })
      #expect(meter.charged < 3_120_000)
      #expect(meter.now.paths == [MeteringTests.loopbackPath])
      #expect(meter.now.questionsWhetherMetered == 1)
    }
  }

  @Test(
    "what is charged for connections of all sizes is what the interface has counted, to the hundredth",
    .enabled(if: TestNetwork.isPossible), arguments: [0, 50_000, 20_000_000])
  func agreesWithInterface(byteCount: Int) throws {
    let network = try TestNetwork(["meter"])
    let (charged, counted) = try network.inside("meter") {
      let meters = [FakeMeter(), FakeMeter()]
      let before = try InterfaceCounter.bytes(of: "lo")
      do {
        let (a, b) = (try node(1, meters[0]), try node(2, meters[1]))
        let pair = try #require(a.connectAuthenticated(to: b))
        send(byteCount, from: a, pair.here)
        a.transport.close(pair.here.id)
        #expect(a.recorder.wait { $0.closed[pair.here.id] == .requested })
        #expect(b.recorder.wait { $0.closed[pair.there.id] == .ended })
      }
      return (meters.map(\.charged), try InterfaceCounter.bytes(of: "lo") - before)
    }
    for charged in charged {
      let difference = charged > counted ? charged - counted : counted - charged
      // Which of the last acknowledgements are sent apart is chance.
      #expect(difference <= counted / 100 + 150, "charged \(charged), counted \(counted)")
    }
  }

  @Test("a dial over a link of class none fails with that reason, and nothing is sent")
  func refusedDial() throws {
    let meter = FakeMeter(admits: false)
    let (a, b) = (try node(1, meter), try Node(seed: 2))
    a.transport.dial(b.address, tag: 1)
    #expect(a.recorder.wait { $0.failed[1] == .linkClosed })
    #expect(a.recorder.now.failed[1]?.description == "the link is of class none")
    meter.change { $0.admits = true }
    _ = try #require(a.connect(to: b, tag: 2))
    #expect(b.transport.statistics.accepted == 1)
  }

  @Test("a connection that comes over a link of class none is reset before it costs a handshake")
  func refusedAccept() throws {
    let meter = FakeMeter(admits: false)
    let (a, b) = (try Node(seed: 1), try node(2, meter))
    a.transport.dial(b.address, tag: 1)
    #expect(a.recorder.wait { $0.failed[1] != nil })
    #expect(b.transport.statistics.refusedByLink == 1)
    #expect(b.transport.statistics.accepted == 0)
    meter.change { $0.admits = true }
    _ = try #require(a.connect(to: b, tag: 2))
  }

  @Test("a dial that nobody takes is charged with its packets")
  func failedDial() throws {
    let meter = FakeMeter()
    let a = try node(1, meter)
    let closed = try TCP.listen(SocketAddress(Node.loopback, port: 0))
    let port = try #require(TCP.localAddress(closed.number)?.port)
    shutdown(closed.number, Int32(SHUT_RDWR))
    a.transport.dial(.socket(SocketAddress(Node.loopback, port: port)), tag: 1)
    #expect(a.recorder.wait { $0.failed[1] != nil })
    // A SYN and the reset.
    #expect((100...120).contains(meter.charged))
  }

  @Test("what the kernel throws away with a connection that is given up is not charged")
  func thrownAway() throws {
    let meter = FakeMeter()
    let b = try node(2, meter)
    // It reads nothing.
    let client = try TLSClient(to: b)
    let id = try #require(b.recorder.wait { $0.opened.first?.id })
    b.transport.authenticate(id)
    while b.transport.send(id, [UInt8](repeating: 7, count: 500_000)) == .queued {}
    // Until nothing comes any more: the rest waits here, part of it in the kernel.
    var (before, since) = (meter.charged, ContinuousClock.now)
    let isStuck = waitUntil {
      if meter.charged > before + 200 { (before, since) = (meter.charged, .now) }
      return before > 100_000 && .now - since > .seconds(1.2)
    }
    #expect(isStuck)
    b.transport.close(id, afterFlush: false)
    #expect(b.recorder.wait { $0.closed[id] == .requested })
    // A reset, and what the two ends have said of the full window meanwhile.
    #expect((before + 40...before + 1_000).contains(meter.charged))
    withExtendedLifetime(client) {}
  }

  @Test("links that are free are not charged")
  func free() throws {
    let (free, paid) = (FakeMeter(isMetered: false), FakeMeter())
    let (a, b) = (try node(1, free), try node(2, paid))
    let pair = try #require(a.connectAuthenticated(to: b))
    send(100_000, from: a, pair.here)
    #expect(waitUntil { paid.charged > 100_000 })
    a.transport.stop()
    #expect(free.charged == 0)
  }

  @Test("a connection whose link becomes one that costs is charged from then on, without what it had sent before")
  func costsLater() throws {
    let meter = FakeMeter(isMetered: false)
    let (a, b) = (try node(1, meter), try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    send(1_000_000, from: a, pair.here)
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == 20 })
    meter.change { $0.isMetered = true }
    a.transport.reviewLinks()
    send(200_000, from: a, pair.here)
    #expect(waitUntil { meter.charged > 200_000 })
    a.transport.stop()
    #expect(meter.charged < 220_000)
  }

  @Test("a connection whose link becomes one of class none ends")
  func becomesNone() throws {
    let meter = FakeMeter()
    let (a, b) = (try node(1, meter), try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    meter.change { $0.admits = false }
    a.transport.reviewLinks()
    #expect(a.recorder.wait { $0.closed[pair.here.id] == .linkClosed })
    #expect(b.recorder.wait { $0.closed[pair.there.id] != nil })
  }
}
