import Replication
import Testing
import TestSupport

@testable import Transport

/// The parts of discovery that need no network.
@Suite struct DiscoveryValueTests {
  private let tag: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
  private func address(_ last: UInt32, port: UInt16 = 7_000) -> SocketAddress {
    SocketAddress(.ipv4(0x0a00_0000 + last), port: port)
  }

  // MARK: Beacon packet

  @Test("a beacon packet survives its way as bytes; cut or lengthened anywhere it is refused")
  func packet() throws {
    let packet = BeaconPacket(try #require(Advertisement(instance: "é-node", tag: tag, port: 0x1234)))
    let bytes = packet.bytes
    #expect(BeaconPacket(bytes) == packet)
    #expect(Array(bytes.prefix(8)) == Array("seamesh".utf8) + [1])
    #expect(Array(bytes[8...9]) == [0x12, 0x34])
    for count in 0..<bytes.count { #expect(BeaconPacket(bytes.prefix(count)) == nil) }
    #expect(BeaconPacket(bytes + [0]) == nil)
    var later = bytes
    later[7] = 2
    #expect(BeaconPacket(later) == nil)
  }

  @Test("no bytes at all trap the packet reader, and what it takes has a port and a valid name", arguments: 0..<20)
  func packetFuzz(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let valid = BeaconPacket(try #require(Advertisement(instance: "name", tag: tag, port: 7_000))).bytes
    for _ in 0..<2_000 {
      var bytes = Bool.random(using: &random) ? valid : random.bytes(Int.random(in: 0...100, using: &random))
      for _ in 0..<Int.random(in: 0...3, using: &random) where !bytes.isEmpty {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8(truncatingIfNeeded: random.next())
      }
      guard let packet = BeaconPacket(bytes) else { continue }
      #expect(packet.advertisement.port != 0)
      #expect(packet.bytes == bytes)
    }
  }

  @Test("a neighbour is who differs from an interface's address where its mask has zeros, in its family, on its link")
  func neighbours() {
    func ipv4(_ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: UInt32) -> SocketAddress.Host {
      .ipv4(a << 24 | b << 16 | c << 8 | d)
    }
    func linkLocal(_ low: UInt64) -> SocketAddress.Host { .ipv6(high: 0xfe80 << 48, low: low, scope: 2) }
    var ship = NetworkInterface(index: 2, name: "ship")
    ship.networks = [
      Network(ipv4(10, 1, 2, 3), mask: ipv4(255, 255, 255, 0)),
      Network(linkLocal(7), mask: .ipv6(high: .max, low: 0, scope: 0)),
    ]
    var tunnel = NetworkInterface(index: 3, name: "tunnel")
    tunnel.networks = [Network(ipv4(192, 0, 2, 1), mask: nil)]
    func isTaken(_ source: SocketAddress.Host, by interface: UInt32) -> Bool {
      BeaconSockets.Datagram(
        bytes: [], source: SocketAddress(source, port: 1), destination: nil, interface: interface
      ).isFromNeighbour(on: [ship, tunnel])
    }
    #expect(isTaken(ipv4(10, 1, 2, 250), by: 2) && isTaken(linkLocal(9), by: 2) && isTaken(ipv4(192, 0, 2, 1), by: 3))
    #expect(!isTaken(ipv4(10, 1, 3, 3), by: 2) && !isTaken(ipv4(8, 8, 8, 8), by: 2))
    #expect(!isTaken(.ipv6(high: 0x2001_0db8 << 32, low: 9, scope: 0), by: 2))
    // Neighbours of another link, and the other family's zeros.
    #expect(!isTaken(ipv4(10, 1, 2, 250), by: 3) && !isTaken(ipv4(192, 0, 2, 2), by: 3))
    #expect(!isTaken(.ipv6(high: 0, low: 0x0a01_0203, scope: 0), by: 2))
  }

  @Test("one source gets 20 datagrams a second, all together 200, and a new second starts afresh")
  func admission() {
    var admission = BeaconAdmission()
    let admitted = (0..<1_000).count { _ in admission.admit(.ipv4(1), now: 5_000) }
    #expect(admitted == 20)
    let others = (0..<500).count { admission.admit(.ipv4(UInt32($0 + 2)), now: 5_500) }
    #expect(others == 180)
    let isAfresh = admission.admit(.ipv4(1), now: 6_000)
    #expect(isAfresh)
  }

  // MARK: TXT record

  @Test("the record carries the tag; anything else gives a tag of zeros, and nothing traps")
  func record() {
    let record = ServiceRecord.bytes(tag: tag)
    #expect(record == [3] + Array("v=1".utf8) + [18] + Array("t=0102030405060708".utf8))
    #expect(ServiceRecord.tag(in: record) == tag)
    let none = [UInt8](repeating: 0, count: 8)
    for count in 0..<record.count { #expect(ServiceRecord.tag(in: Array(record.prefix(count))) == none) }
    #expect(ServiceRecord.tag(in: [5] + Array("t=010".utf8)) == none)
    #expect(ServiceRecord.tag(in: [18] + Array("t=010203040506070X".utf8)) == none)
    var random = SplitMix64(seed: 1)
    for _ in 0..<5_000 {
      #expect(ServiceRecord.tag(in: random.bytes(Int.random(in: 0...80, using: &random))).count == 8)
    }
  }

  @Test("a link-local address takes the interface it was heard on, others none (N7)")
  func scope() {
    let linkLocal: [UInt8] = [0xfe, 0x80] + [UInt8](repeating: 0, count: 13) + [9]
    let global: [UInt8] = [0x20, 0x01] + [UInt8](repeating: 0, count: 13) + [9]
    let one = linkLocal.withUnsafeBytes { SocketAddress.Host(record: $0, type: 28, interface: 4) }
    let two = linkLocal.withUnsafeBytes { SocketAddress.Host(record: $0, type: 28, interface: 5) }
    #expect(one == .ipv6(high: 0xfe80 << 48, low: 9, scope: 4))
    #expect(one != two)
    #expect(
      global.withUnsafeBytes { SocketAddress.Host(record: $0, type: 28, interface: 4) }
        == .ipv6(high: 0x2001 << 48, low: 9, scope: 0))
    #expect(global.withUnsafeBytes { SocketAddress.Host(record: $0, type: 1, interface: 4) } == nil)
    #expect([1, 2, 3, 4].withUnsafeBytes { SocketAddress.Host(record: $0, type: 1, interface: 4) } == nil)
  }

  // MARK: Instances

  @Test("an instance is told when it is new, changed, or seen again after half a minute; lost when no source has it")
  func instances() {
    var random = SplitMix64(seed: 1)
    var table = InstanceTable()
    let found = InstanceTable.Output.found(instance: "x", addresses: [address(1)], tag: tag)
    func see(_ source: InstanceTable.Source, _ last: UInt32, _ now: MonotonicTime) -> [InstanceTable.Output] {
      table.see("x", by: source, [address(last)], tag: tag, now: now, expiresAt: nil, using: &random)
    }
    #expect(see(.responder, 1, 0) == [found])
    #expect(see(.responder, 1, 29_999).isEmpty)
    #expect(see(.responder, 1, 30_000) == [found])
    #expect(see(.beacon, 2, 30_001) == [.found(instance: "x", addresses: [address(1), address(2)], tag: tag)])
    #expect(table.remove("x", from: .beacon, now: 30_002) == [found])
    #expect(table.remove("x", from: .beacon, now: 30_003).isEmpty)
    #expect(table.remove("x", from: .responder, now: 30_004) == [.lost(instance: "x")])
    #expect(table.count == 0)
  }

  @Test("100,000 made-up names keep the table at its bound")
  func instanceFlood() {
    var random = SplitMix64(seed: 1)
    var table = InstanceTable()
    for index in 0..<100_000 {
      _ = table.see(
        "n\(index)", by: .beacon, [address(UInt32(index))], tag: tag, now: 0, expiresAt: 30_000, using: &random)
    }
    #expect(table.count == InstanceTable.instanceLimit)
    #expect(table.expire(now: 30_000).count == InstanceTable.instanceLimit)
    #expect(table.count == 0)
  }

  @Test("what a dead responder told ends after a while unless it is told anew")
  func ageing() {
    var random = SplitMix64(seed: 1)
    var table = InstanceTable()
    for name in ["x", "y"] {
      _ = table.see(name, by: .responder, [address(1)], tag: tag, now: 0, expiresAt: nil, using: &random)
    }
    table.age(.responder, expiresAt: 60_000)
    _ = table.see("x", by: .responder, [address(1)], tag: tag, now: 1_000, expiresAt: nil, using: &random)
    #expect(table.expire(now: 59_999).isEmpty)
    #expect(table.expire(now: 60_000) == [.lost(instance: "y")])
    #expect(table.count == 1)
  }

  // MARK: Services

  private func key(_ name: String, _ interface: UInt32 = 1) -> ServiceDirectory.Key {
    .init(name: name, interface: interface)
  }

  @Test("a name is resolved when it appears and every interval after; a ghost is lost after two failures")
  func services() {
    var random = SplitMix64(seed: 1)
    var directory = ServiceDirectory(resolveIntervalMilliseconds: 30_000)
    #expect(directory.appeared(key("x"), now: 0, using: &random).isEmpty)
    #expect(directory.takeDue(now: 0, using: &random) == key("x"))
    #expect(directory.takeDue(now: 0, using: &random) == nil)
    let resolution = ServiceDirectory.Resolution(addresses: [address(1)], tag: tag)
    #expect(directory.resolved(key("x"), resolution, now: 10) == [.seen(name: "x", addresses: [address(1)], tag: tag)])
    #expect(directory.nextDue == 30_010)
    #expect(directory.takeDue(now: 30_010, using: &random) == key("x"))
    #expect(directory.failed(key("x"), now: 30_010).isEmpty)
    #expect(directory.nextDue == 40_010)
    #expect(directory.takeDue(now: 40_010, using: &random) == key("x"))
    #expect(directory.failed(key("x"), now: 40_010) == [.lost(name: "x")])
    #expect(directory.takeDue(now: 60_010, using: &random) == key("x"))
    #expect(
      directory.resolved(key("x"), resolution, now: 60_020) == [.seen(name: "x", addresses: [address(1)], tag: tag)])
    #expect(directory.vanished(key("x")) == [.lost(name: "x")])
  }

  @Test("a name on two interfaces has the addresses of both, and stays while one report is left")
  func twoInterfaces() {
    var random = SplitMix64(seed: 1)
    var directory = ServiceDirectory(resolveIntervalMilliseconds: 30_000)
    for interface: UInt32 in [1, 1, 2] { _ = directory.appeared(key("x", interface), now: 0, using: &random) }
    _ = directory.resolved(key("x", 1), .init(addresses: [address(1)], tag: tag), now: 0)
    #expect(
      directory.resolved(key("x", 2), .init(addresses: [address(2)], tag: tag), now: 0)
        == [.seen(name: "x", addresses: [address(1), address(2)], tag: tag)])
    #expect(directory.vanished(key("x", 1)).isEmpty)
    #expect(directory.vanished(key("x", 1)) == [.seen(name: "x", addresses: [address(2)], tag: tag)])
    #expect(directory.vanished(key("x", 2)) == [.lost(name: "x")])
    #expect(directory.vanished(key("x", 2)).isEmpty)
  }

  @Test("in a flood of 100,000 names one that keeps coming is resolved all the same, and the table stays bounded (N6)")
  func serviceFlood() {
    var random = SplitMix64(seed: 4)
    var directory = ServiceDirectory(resolveIntervalMilliseconds: 30_000)
    var wasResolved = false
    for index in 0..<100_000 {
      _ = directory.appeared(key("flood-\(index)"), now: 0, using: &random)
      if index % 500 == 0 { _ = directory.appeared(key("real"), now: 0, using: &random) }
      if index % 10 == 0, let taken = directory.takeDue(now: 0, using: &random) {
        wasResolved = wasResolved || taken == key("real")
        _ = directory.failed(taken, now: 0)
      }
    }
    #expect(directory.count == ServiceDirectory.serviceLimit)
    #expect(wasResolved)
  }

  @Test("names of connected peers are looked at rarely, and at once when the connection is gone")
  func settled() {
    var random = SplitMix64(seed: 1)
    var directory = ServiceDirectory(resolveIntervalMilliseconds: 30_000)
    _ = directory.appeared(key("x"), now: 0, using: &random)
    directory.setSettled(["x"], now: 0)
    _ = directory.takeDue(now: 0, using: &random)
    _ = directory.resolved(key("x"), .init(addresses: [address(1)], tag: tag), now: 0)
    #expect(directory.nextDue == 3_600_000)
    directory.setSettled([], now: 1_000)
    #expect(directory.nextDue == 1_000)
  }

  @Test("a name that was resolved before its peer was connected is left alone from then on")
  func settledLater() {
    var random = SplitMix64(seed: 1)
    var directory = ServiceDirectory(resolveIntervalMilliseconds: 30_000)
    _ = directory.appeared(key("x"), now: 0, using: &random)
    _ = directory.takeDue(now: 0, using: &random)
    directory.setSettled(["x"], now: 0)
    #expect(directory.takeDue(now: 0, using: &random) == nil, "under way")
    _ = directory.failed(key("x"), now: 0)
    directory.setSettled([], now: 5)
    _ = directory.takeDue(now: 5, using: &random)
    _ = directory.resolved(key("x"), .init(addresses: [address(1)], tag: tag), now: 5)
    #expect(directory.nextDue == 30_005)
    directory.setSettled(["x"], now: 10)
    #expect(directory.nextDue == 3_600_010)
  }

  @Test("names that go on being found are looked at ever more rarely, and once at once where a connection is gone")
  func unsettled() {
    var random = SplitMix64(seed: 1)
    var directory = ServiceDirectory(resolveIntervalMilliseconds: 30_000)
    _ = directory.appeared(key("x"), now: 0, using: &random)
    var waits: [UInt64] = []
    var now: MonotonicTime = 0
    for _ in 0..<7 {
      _ = directory.takeDue(now: now, using: &random)
      _ = directory.resolved(key("x"), .init(addresses: [address(1)], tag: tag), now: now)
      let next = directory.nextDue ?? now
      waits.append(next.millisecondsSince(now) / 1_000)
      now = next
    }
    #expect(waits == [30, 60, 120, 240, 480, 600, 600])
    directory.setSettled(["x"], now: now)
    directory.setSettled([], now: now)
    #expect(directory.nextDue == now)
    _ = directory.takeDue(now: now, using: &random)
    _ = directory.resolved(key("x"), .init(addresses: [address(1)], tag: tag), now: now)
    #expect(directory.nextDue == now + 600_000)
  }

  // MARK: Beacon schedule

  @Test("the beacon runs fast, then slowly, while nothing announces this node")
  func unannounced() {
    var schedule = BeaconSchedule(DiscoveryConfiguration(), now: 1_000)
    var sent: [UInt64] = []
    for now in stride(from: UInt64(1_000), through: 16_000, by: 100) {
      if schedule.due(isAnnounced: false, now: MonotonicTime(milliseconds: now)) { sent.append(now) }
    }
    #expect(sent == [1_000, 2_000, 3_000, 4_000, 5_000, 10_000, 15_000])
    #expect(schedule.isActive)
  }

  @Test("an announced node is silent while it knows somebody, beacons when nobody is heard for ten seconds")
  func announced() {
    var schedule = BeaconSchedule(DiscoveryConfiguration(), now: 1_000)
    let early = schedule.due(isAnnounced: true, now: 10_999)
    #expect(!early)
    #expect(schedule.nextWake(now: 10_999) == 11_000)
    let onTime = schedule.due(isAnnounced: true, now: 11_000)
    #expect(onTime)
    #expect(schedule.isActive)
    schedule.noteKnown(now: 12_000)
    let known = schedule.due(isAnnounced: true, now: 12_000)
    #expect(!known)
    #expect(!schedule.isActive)
  }

  @Test("a silent node answers the beacons of others, at most every ten seconds")
  func answers() {
    var schedule = BeaconSchedule(DiscoveryConfiguration(), now: 1_000)
    var sent: [UInt64] = []
    for now in stride(from: UInt64(1_000), through: 31_000, by: 500) {
      schedule.noteBeacon(now: MonotonicTime(milliseconds: now))
      if schedule.due(isAnnounced: true, now: MonotonicTime(milliseconds: now)) { sent.append(now) }
    }
    #expect(sent == [1_000, 11_000, 21_000, 31_000])
  }

  // MARK: Addresses as text

  @Test(
    "addresses keep their meaning as text",
    arguments: ["127.0.0.1:7000", "[::1]:1", "[2001:db8::5]:65535", "[fe80::1%lo]:7000"])
  func addressText(text: String) throws {
    let address = try #require(SocketAddress(text))
    #expect(address.description == text)
    #expect(PeerAddress(text) == .socket(address))
  }

  @Test("names and addresses of peers are told apart; what is neither is refused")
  func peerAddressText() {
    #expect(PeerAddress("port.example-1.org:7000") == .name("port.example-1.org", port: 7_000))
    for text in [
      "", ":", "a", "a:", "a:0", "a:65536", "a:-1", ":7000", "a b:1", "[::1]", "[::1:7000", "::1:7000", "é:1",
    ] {
      #expect(PeerAddress(text) == nil, "\(text)")
    }
    #expect(PeerAddress(String(repeating: "a", count: 254) + ":1") == nil)
  }
}
