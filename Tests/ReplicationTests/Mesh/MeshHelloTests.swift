import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: hellos and second connections") struct MeshHelloTests {
  /// The dialler's hello, as node 1 would get it.
  private func hello(_ bench: MeshBench) throws -> Hello {
    guard case .hello(let hello)? = bench.messages(from: 0, to: 1).first else { throw BenchNode.NotTaken() }
    return hello
  }

  private func signed(_ hello: Hello, _ key: FakeKey, _ exporter: Digest, isDialer: Bool = true) -> Hello {
    var hello = hello
    hello.signature = key.sign(
      hello.signedBytes(device: key.publicKey, exporter: exporter, isDialer: isDialer))
    return hello
  }

  enum Flaw: CaseIterable {
    case version, fleet, otherProof, device, instance, noSignature, wrongKey, otherConnection, reflected, changed,
      extended

    var goodbye: Goodbye {
      switch self {
      case .version: .versionUnknown
      case .fleet, .otherProof: .otherFleet
      case .instance: .ownConnection
      default: .protocolError
      }
    }
  }

  @Test("a hello that does not hold is answered by a reason and nothing else", arguments: Flaw.allCases)
  func flawed(flaw: Flaw) throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connect(0, 1)
    let (key, exporter) = (bench.nodes[0].key, bench.exporter(of: id))
    var hello = try hello(bench)
    switch flaw {
    case .version: hello.version = 0
    case .fleet: hello.fleetProof = FakeCryptography.fleetProof(FleetID(.zero), exporter).proof(ofDialer: true)
    case .otherProof: hello.fleetProof = bench.fleetProof(id).proof(ofDialer: false)
    case .instance: hello.instance = bench.nodes[1].mesh.local.instance
    default: break
    }
    hello = signed(hello, flaw == .device ? bench.nodes[1].key : key, exporter)
    switch flaw {
    case .noSignature: hello.signature = Signature(first: .zero, second: .zero)
    case .wrongKey: hello = signed(hello, bench.nodes[1].key, exporter)
    case .otherConnection: hello = signed(hello, key, .zero)
    case .reflected: hello = signed(hello, key, exporter, isDialer: false)
    case .changed: hello.interest = .zero
    case .extended: hello.extensions = MessageExtensions([.init(key: 1, content: [])])
    default: break
    }
    bench.nodes[1].receive(.hello(hello), on: id)
    #expect(bench.messages(from: 1, to: 0) == [.goodbye(flaw.goodbye)])
    #expect(bench.nodes[1].mesh.sessions[id] == nil && bench.nodes[1].authenticated.isEmpty)
  }

  @Test("a hello names neither fleet, nor device, nor a digest of what is held")
  func tellsNothing() throws {
    let bench = try MeshBench([0, 1])
    let hellos = try (0..<2).map { _ in
      bench.cut(bench.connect(0, 1))
      guard case .hello(let hello)? = bench.messages(from: 0, to: 1).last else { throw BenchNode.NotTaken() }
      return (hello, MessageCodec.encode(.hello(hello)))
    }
    let mesh = bench.nodes[0].mesh
    let secret = [
      bench.fleet.id.digest, bench.nodes[0].key.publicKey.raw, mesh.authority.digest(FakeCryptography.hash),
      mesh.interest.digest(FakeCryptography.hash),
    ]
    for digest in secret {
      let beginning = Array(digest.bytes.prefix(8))
      #expect(hellos.allSatisfy { $0.1.firstRange(of: beginning) == nil })
    }
    let (first, second) = (hellos[0].0, hellos[1].0)
    #expect(first.fleetProof != second.fleetProof)
    #expect(Set([first.authority, first.interest, second.authority, second.interest]).count == 4)
  }

  @Test("the shell hears of every peer that has shown to be a member, once")
  func authenticated() throws {
    let bench = try MeshBench([0, 1])
    let id = bench.connected(0, 1)
    #expect(bench.nodes.map(\.authenticated) == [[id], [id]])
    #expect(bench.said(from: 0, to: 1).count { $0 == "hello" } == 1)
  }

  @Test("of two connections between two processes one stays, the same at both ends", arguments: [true, false])
  func duplicates(crossing: Bool) throws {
    for attempt in 0..<8 {
      let bench = try MeshBench([0, 1])
      // Of two from one side the exporter value decides, which is another with every connection.
      for _ in 0..<attempt { bench.cut(bench.connect(0, 1)) }
      _ = bench.connect(0, 1)
      _ = crossing ? bench.connect(1, 0) : bench.connect(0, 1)
      bench.run()
      #expect(bench.nodes[0].mesh.sessions.count == 1)
      #expect(bench.nodes[0].mesh.sessions.ids == bench.nodes[1].mesh.sessions.ids)
      let notes = bench.nodes.flatMap(\.notes)
      #expect(!notes.contains { if case .peerRefused = $0 { true } else { false } }, "nothing is wrong with either")
      #expect(notes.contains(.secondConnection))
    }
  }

  @Test("a dialler that has a living connection drops its new one before it says hello")
  func livingConnection() throws {
    let bench = try MeshBench([0, 1])
    let first = bench.connected(0, 1)
    bench.pass(20_000)
    let start = bench.transcript.count
    let second = bench.connected(0, 1)
    #expect(!bench.said(from: 0, to: 1, since: start).contains("hello"))
    #expect(bench.nodes[0].mesh.sessions[first] != nil && bench.nodes[0].mesh.sessions[second] == nil)
  }

  @Test("a listener that has a living older connection goes over to the new one")
  func restartedPeer() throws {
    let bench = try MeshBench([0, 1])
    let first = bench.connected(0, 1)
    bench.pass(20_000)
    // The dialler's end has gone without a word.
    bench.nodes[0].deliver(.closed(first))
    let second = bench.connected(0, 1)
    #expect(bench.nodes[1].mesh.sessions.ids == [second])
  }

  @Test("a clone of a device is another process: both keep their connections")
  func clones() throws {
    let bench = try MeshBench([0, 0, 1])
    let ids = [bench.connected(0, 2), bench.connected(1, 2)]
    #expect(bench.nodes[2].mesh.sessions.ids == ids)
  }

  @Test(
    "a clock more than ten minutes off is noted at both ends, ahead or behind",
    arguments: [(600_000, false), (600_001, true), (-600_000, false), (-600_001, true)])
  func clock(difference: Int64, isNoted: Bool) throws {
    let bench = try MeshBench([0, 1])
    bench.nodes[0].wallMilliseconds = difference
    _ = bench.connected(0, 1)
    #expect(bench.nodes[1].notes.contains(.clockDiffers(milliseconds: difference)) == isNoted)
    #expect(bench.nodes[0].notes.contains(.clockDiffers(milliseconds: -difference)) == isNoted)
  }
}
