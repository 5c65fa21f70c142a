import Foundation
import Glibc
import Replication
import TestSupport
import Testing

@testable import Transport

private func advertisement(_ name: String, tag: UInt8 = 1, port: UInt16 = 7_000) throws -> Advertisement {
  try #require(Advertisement(instance: name, tag: [UInt8](repeating: tag, count: 8), port: port))
}

/// Of this process's own, so that test runs beside each other do not meet.
private func beaconPort(_ number: Int) -> UInt16 { UInt16(22_000 + (Int(getpid()) % 1_000) * 8 + number) }

private let anyRandom: @Sendable () -> UInt64 = { UInt64.random(in: 0...UInt64.max) }

@Suite(.serialized) struct BeaconTests {
  private func discovery(
    _ name: String, _ port: UInt16, beaconPort: UInt16, _ change: (inout DiscoveryConfiguration) -> Void = { _ in }
  ) throws -> (Discovery, DiscoveryRecorder) {
    var configuration = DiscoveryConfiguration()
    configuration.usesResponder = false
    configuration.beaconInterfaces = ["lo"]
    configuration.beaconPort = beaconPort
    configuration.firstBeaconIntervalMilliseconds = 100
    configuration.beaconIntervalMilliseconds = 200
    change(&configuration)
    let recorder = DiscoveryRecorder()
    let discovery = try Discovery(
      configuration, advertisement: try advertisement(name, port: port), handler: recorder, random: anyRandom)
    return (discovery, recorder)
  }

  @Test("three nodes of one machine find each other on loopback, without a responder and without themselves")
  func loopback() throws {
    let nodes = try [("a", 7_001), ("b", 7_002), ("c", 7_003)].map {
      try discovery($0.0, $0.1, beaconPort: beaconPort(0))
    }
    for (index, (_, recorder)) in nodes.enumerated() {
      #expect(recorder.wait { $0.known.count == 2 })
      let others = Set(["a", "b", "c"]).subtracting([["a", "b", "c"][index]])
      #expect(Set(recorder.now.known.keys) == others)
      #expect(recorder.wait { $0.discovery.hasHeardMulticast && $0.discovery.isBeaconing })
    }
    let seenByC = try #require(nodes[2].1.now.known["a"])
    #expect(seenByC.addresses.contains(SocketAddress(.ipv4(0x7f00_0001), port: 7_001)))
    #expect(seenByC.tag == [UInt8](repeating: 1, count: 8))
    for (discovery, _) in nodes { discovery.stop() }
  }

  @Test("a node that falls silent is lost after its time, and its new name is found")
  func lostAndRenamed() throws {
    let (a, seenByA) = try discovery("a", 7_001, beaconPort: beaconPort(1)) { $0.beaconLifetimeMilliseconds = 600 }
    let (b, _) = try discovery("b", 7_002, beaconPort: beaconPort(1))
    #expect(seenByA.wait { $0.known["b"] != nil })
    b.advertise(try advertisement("b2", port: 7_002))
    #expect(seenByA.wait { $0.known["b2"] != nil && $0.lost == ["b"] })
    b.stop()
    #expect(seenByA.wait { $0.known.isEmpty && $0.lost == ["b", "b2"] })
    a.stop()
  }

  /// Sends to groups over loopback, from its address unless another is bound.
  private func loopbackSender() -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var request = ip_mreqn()
    request.imr_ifindex = Int32(if_nametoindex("lo"))
    request.imr_address.s_addr = UInt32(0x7f00_0001).bigEndian
    setsockopt(descriptor, Int32(IPPROTO_IP), IP_MULTICAST_IF, &request, socklen_t(MemoryLayout<ip_mreqn>.size))
    return descriptor
  }

  private func send(_ packet: [UInt8], to address: UInt32, port: UInt16, from descriptor: Int32) {
    _ = SocketAddress(.ipv4(address), port: port).withKernelForm {
      sendto(descriptor, packet, packet.count, 0, $0, $1)
    }
  }

  @Test("what was sent to this host alone, from wherever it says, has nobody dialled; what was sent to all is found")
  func sentToOne() throws {
    let (a, seenByA) = try discovery("a", 7_001, beaconPort: beaconPort(3))
    let descriptor = loopbackSender()
    defer { close(descriptor) }
    for _ in 0..<3 {
      let lure = BeaconPacket(try advertisement("lured")).bytes
      send(lure, to: 0x7f00_0001, port: beaconPort(3), from: descriptor)
    }
    #expect(
      waitUntil {
        guard let packet = try? BeaconPacket(advertisement("honest")).bytes else { return true }
        send(packet, to: BeaconSockets.ipv4Group, port: beaconPort(3), from: descriptor)
        return seenByA.now.known["honest"] != nil
      })
    #expect(seenByA.now.known["lured"] == nil)
    a.stop()
  }

  /// Of this host, on another interface than loopback.
  private static let elsewhere = NetworkInterfaces.addresses().compactMap { host -> UInt32? in
    if case .ipv4(let address) = host, address >> 24 != 127 { address } else { nil }
  }.first

  @Test(
    "a beacon whose source is no neighbour on the link that it came by has nobody dialled",
    .enabled(if: elsewhere != nil, "needs another interface than loopback"))
  func forgedSource() throws {
    let (a, seenByA) = try discovery("a", 7_001, beaconPort: beaconPort(4))
    let (forger, honest) = (loopbackSender(), loopbackSender())
    defer { [forger, honest].forEach { close($0) } }
    let source = SocketAddress(.ipv4(try #require(Self.elsewhere)), port: 0)
    #expect(source.withKernelForm { bind(forger, $0, $1) } == 0)
    let lure = BeaconPacket(try advertisement("lured")).bytes
    for _ in 0..<3 { send(lure, to: BeaconSockets.ipv4Group, port: beaconPort(4), from: forger) }
    #expect(
      waitUntil {
        guard let packet = try? BeaconPacket(advertisement("honest")).bytes else { return true }
        send(packet, to: BeaconSockets.ipv4Group, port: beaconPort(4), from: honest)
        return seenByA.now.known["honest"] != nil
      })
    #expect(seenByA.now.known["lured"] == nil)
    a.stop()
  }

  @Test("datagrams of anyone, whole, cut or random, at any rate, harm nothing")
  func hostileDatagrams() throws {
    let (a, seenByA) = try discovery("a", 7_001, beaconPort: beaconPort(2))
    let descriptor = loopbackSender()
    defer { close(descriptor) }
    var random = SplitMix64(seed: 1)
    let valid = BeaconPacket(try advertisement("x")).bytes
    for index in 0..<20_000 {
      var packet = index % 3 == 0 ? random.bytes(Int.random(in: 0...200, using: &random)) : valid
      if index % 3 == 1 {
        packet[Int.random(in: packet.indices, using: &random)] = UInt8(truncatingIfNeeded: random.next())
      }
      if index % 3 == 2 { packet = BeaconPacket(try advertisement("flood-\(index)")).bytes }
      send(packet, to: BeaconSockets.ipv4Group, port: beaconPort(2), from: descriptor)
    }
    let (b, seenByB) = try discovery("b", 7_002, beaconPort: beaconPort(2))
    #expect(seenByB.wait { $0.known["a"] != nil })
    #expect(seenByA.wait { $0.known["b"] != nil })
    // 20 a second from one source: far from the 6,667 names that were sent.
    #expect(seenByA.now.known.count < 300)
    a.stop()
    b.stop()
  }
}

/// Against a real avahi-daemon, in namespaces of the test's own.
@Suite(
  .serialized, .enabled(if: TestNetwork.isPossible, "needs root, ip, unshare, dbus-daemon, avahi-daemon, avahi-publish")
)
struct ResponderTests {
  /// libdbus reads the address once for a process: all tests of this suite use the same bus path.
  static let network: TestNetwork? = {
    guard let network = try? TestNetwork(["a", "b"]), (try? network.connect("a", "b")) != nil else { return nil }
    setenv("DBUS_SYSTEM_BUS_ADDRESS", network.busAddress("a"), 1)
    atexit { ResponderTests.tearDown() }
    return network
  }()

  private static func tearDown() {
    guard let network else { return }
    for key in ["publisher-b", "responder-a", "responder-b", "bus-a", "bus-b"] {
      network.signal(key, SIGCONT)
      network.stop(key)
    }
    for name in ["a", "b"] { try? network.run("ip netns del \(network.namespace(name))") }
    try? FileManager.default.removeItem(at: network.directory)
  }

  private func network() throws -> TestNetwork { try #require(ResponderTests.network) }

  private func discovery(
    _ name: String, port: UInt16 = 7_000, beaconPort: UInt16? = nil,
    _ change: (inout DiscoveryConfiguration) -> Void = { _ in }
  ) throws -> (Discovery, DiscoveryRecorder) {
    var configuration = DiscoveryConfiguration()
    configuration.usesBeacon = beaconPort != nil
    configuration.beaconPort = beaconPort ?? 0
    configuration.firstBeaconIntervalMilliseconds = 100
    configuration.beaconIntervalMilliseconds = 200
    change(&configuration)
    let recorder = DiscoveryRecorder()
    let announced = try advertisement(name, port: port)
    let fixed = configuration
    let discovery = try network().inside("a") {
      try Discovery(fixed, advertisement: announced, handler: recorder, random: anyRandom)
    }
    return (discovery, recorder)
  }

  private func restartResponder() throws {
    let network = try network()
    if access("\(network.directory.path)/a.bus", F_OK) != 0 { try network.startBus("a") }
    network.stop("responder-a")
    try network.startResponder("a")
  }

  @Test("without D-Bus, without a daemon, then with one that comes late: the beacon finds meanwhile, and all is told")
  func lateResponder() throws {
    let network = try network()
    let (a, seenByA) = try discovery("late-a", beaconPort: beaconPort(3))
    let (b, seenByB) = try discovery("late-b", port: 7_001, beaconPort: beaconPort(3))
    #expect(seenByA.wait { $0.discovery.responder == .absent && $0.discovery.isBeaconing && $0.known["late-b"] != nil })
    #expect(seenByB.wait { $0.known["late-a"] != nil })
    if access("\(network.directory.path)/a.bus", F_OK) != 0 { try network.startBus("a") }
    try network.startResponder("a")
    #expect(seenByA.wait { $0.discovery.responder == .available && $0.discovery.isRegistered })
    #expect(seenByA.wait { !$0.discovery.isBeaconing })
    a.stop()
    b.stop()
  }

  @Test("two nodes of one machine find each other by the responder; a new name replaces the old one; a stop is seen")
  func twoNodes() throws {
    try restartResponder()
    let (a, seenByA) = try discovery("two-a")
    let (b, seenByB) = try discovery("two-b", port: 7_001)
    #expect(seenByA.wait { $0.known["two-b"] != nil })
    #expect(seenByB.wait { $0.known["two-a"] != nil })
    let found = try #require(seenByA.now.known["two-b"])
    #expect(found.addresses.allSatisfy { $0.port == 7_001 })
    #expect(found.addresses.contains { $0.host == .ipv4(0x0a4d_0001) || $0.host == .ipv4(0x7f00_0001) })
    #expect(
      found.addresses.allSatisfy { address in
        guard address.host.isLinkLocal, case .ipv6(_, _, let scope) = address.host else { return true }
        return scope != 0
      })
    #expect(found.tag == [UInt8](repeating: 1, count: 8))
    #expect(seenByA.now.known["two-a"] == nil)
    b.advertise(try advertisement("two-c", tag: 2, port: 7_001))
    #expect(seenByA.wait { $0.known["two-c"]?.tag == [UInt8](repeating: 2, count: 8) && $0.lost.contains("two-b") })
    b.stop()
    #expect(seenByA.wait { $0.known["two-c"] == nil })
    a.stop()
  }

  /// Fills fresh memory with garbage, which shows whether the library still reads what it never wrote.
  private func disturbFreshMemory() throws {
    let perturb: Int32 = -6
    let symbol = try #require(dlsym(nil, "mallopt"))
    typealias Function = @convention(c) (Int32, Int32) -> Int32
    #expect(unsafeBitCast(symbol, to: Function.self)(perturb, 0xa5) == 1)
  }

  @Test("twenty restarts of the responder under open operations do no harm, and everything is found again")
  func restarts() throws {
    try disturbFreshMemory()
    try restartResponder()
    let (a, seenByA) = try discovery("re-a") { $0.resolveIntervalMilliseconds = 300 }
    let (b, _) = try discovery("re-b", port: 7_001)
    #expect(seenByA.wait { $0.known["re-b"] != nil && $0.discovery.isRegistered })
    let descriptors = openDescriptors()
    for round in 0..<20 {
      let network = try network()
      network.stop("responder-a", round % 2 == 0 ? SIGKILL : SIGTERM)
      #expect(seenByA.wait { $0.discovery.responder == .absent })
      try network.startResponder("a")
      #expect(seenByA.wait { $0.discovery.responder == .available })
    }
    let count = seenByA.now.foundCount["re-b"] ?? 0
    #expect(
      seenByA.wait { $0.discovery.isRegistered && ($0.foundCount["re-b"] ?? 0) >= count && $0.known["re-b"] != nil })
    let (late, seenByLate) = try discovery("re-late")
    #expect(seenByLate.wait { $0.known["re-a"] != nil && $0.known["re-b"] != nil })
    late.stop()
    #expect(waitUntil { openDescriptors() <= descriptors + 12 })
    a.stop()
    b.stop()
  }

  private func openDescriptors() -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
  }

  @Test("a hung responder is told of; the beacon goes on finding, and stopping does not wait for it")
  func hung() throws {
    try restartResponder()
    let network = try network()
    let (a, seenByA) = try discovery("hung-a", beaconPort: beaconPort(4))
    #expect(seenByA.wait { $0.discovery.isRegistered })
    let (b, seenByB) = try discovery("hung-b", port: 7_001, beaconPort: beaconPort(4))
    #expect(seenByA.wait { $0.known["hung-b"] != nil })
    network.signal("responder-a", SIGSTOP)
    // Only a call of the library shows it.
    a.advertise(try advertisement("hung-a2"))
    #expect(seenByA.wait { $0.discovery.responder == .hung })
    let (c, seenByC) = try discovery("hung-c", port: 7_002, beaconPort: beaconPort(4))
    #expect(seenByC.wait { $0.known["hung-a2"] != nil })
    #expect(seenByA.wait { $0.known["hung-c"] != nil })
    let start = ElapsedClock.now()
    for discovery in [a, b, c] { discovery.stop() }
    #expect(ElapsedClock.now().millisecondsSince(start) < 10_000)
    network.signal("responder-a", SIGCONT)
    withExtendedLifetime(seenByB) {}
  }

  @Test("a peer on another host is found with its scope, lost with the link, and found again when it is back")
  func remotePeer() throws {
    try restartResponder()
    let network = try network()
    try network.startBus("b")
    try network.startResponder("b")
    let (a, seenByA) = try discovery("here") { $0.resolveIntervalMilliseconds = 500 }
    #expect(seenByA.wait { $0.discovery.isRegistered })
    // The publisher ends at once while its daemon is not up yet.
    #expect(
      waitUntil {
        network.stop("publisher-b")
        try? network.startPublisher("b", instance: "there", port: 7_009, tag: "0102030405060708")
        return seenByA.wait(seconds: 3) { $0.known["there"] != nil }
      })
    #expect(
      seenByA.wait { state in
        guard let addresses = state.known["there"]?.addresses else { return false }
        return addresses.contains(SocketAddress(.ipv4(0x0a4d_0002), port: 7_009))
          && addresses.contains { address in
            guard case .ipv6(_, _, let scope) = address.host else { return false }
            return address.host.isLinkLocal && scope != 0 && address.port == 7_009
          }
      })
    #expect(seenByA.now.known["there"]?.tag == [1, 2, 3, 4, 5, 6, 7, 8])
    try network.run("ip -n \(network.namespace("a")) link set eth0 down")
    #expect(seenByA.wait { $0.known["there"] == nil && $0.interfaceChanges >= 1 })
    try network.run("ip -n \(network.namespace("a")) link set eth0 up")
    #expect(seenByA.wait { $0.known["there"] != nil })
    // Another address for this host while everything is open.
    try network.run("ip -n \(network.namespace("b")) addr add 10.77.0.9/24 brd + dev eth0")
    #expect(
      seenByA.wait { state in
        state.known["there"]?.addresses.contains(SocketAddress(.ipv4(0x0a4d_0009), port: 7_009)) ?? false
      })
    network.stop("publisher-b")
    #expect(seenByA.wait { $0.known["there"] == nil })
    a.stop()
  }
}
