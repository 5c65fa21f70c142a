import Testing
import TestSupport

@testable import Replication

@Suite struct DialPolicyRoomTests {
  /// Nodes that discover one another and whose dials lead at once to a session, unless there is one.
  private struct Fleet {
    var policies: [DialPolicy]
    var random = SplitMix64(seed: 5)
    var now: UInt64 = 1_000_000
    /// Who dialled whom.
    private(set) var links: Set<[Int]> = []
    private(set) var everLinked: Set<Set<Int>> = []

    init(_ count: Int) { policies = (0..<count).map { DialPolicy(thisDevice: Fleet.device($0)) } }

    static func device(_ number: Int) -> DeviceID { DeviceID(Digest(words: (UInt64(100 + number), 0, 0, 0))) }
    static func socket(_ number: Int) -> SocketAddress {
      SocketAddress(.ipv4(0x0a00_0000 + UInt32(number)), port: 7_000)
    }

    func peers(of node: Int) -> Set<Int> { Set(links.filter { $0.contains(node) }.flatMap { $0 }).subtracting([node]) }

    func outgoing(of node: Int) -> Int { links.count { $0[0] == node } }

    mutating func handle(_ node: Int, _ event: DialPolicy.Event) {
      let dials = policies[node].handle(event, now: now, using: &random)
      for case .socket(let address) in dials {
        guard let other = policies.indices.first(where: { Fleet.socket($0) == address }) else { continue }
        connect(node, other)
      }
      while let dropped = policies[node].takeDrop() {
        guard let other = policies.indices.first(where: { Fleet.device($0) == dropped }) else { continue }
        links.remove([node, other])
        for (end, peer) in [(node, other), (other, node)] { handle(end, .disconnected(Fleet.device(peer))) }
      }
    }

    private mutating func connect(_ node: Int, _ other: Int) {
      handle(node, .identified(.socket(Fleet.socket(other)), Fleet.device(other)))
      guard !peers(of: node).contains(other) else { return }
      links.insert([node, other])
      everLinked.insert([node, other])
      for (end, peer) in [(node, other), (other, node)] {
        handle(end, .connected(Fleet.device(peer), outgoing: end == node))
      }
    }

    /// `finders`: who sees the others.
    mutating func discover(_ finders: Range<Int>? = nil) {
      for node in finders ?? policies.indices {
        for other in policies.indices where other != node {
          handle(node, .found(instance: Text("n\(other)"), addresses: [Fleet.socket(other)], tagMatches: true))
        }
      }
    }

    mutating func pass(_ milliseconds: UInt64) {
      let end = now + milliseconds
      while let wake = policies.compactMap({ $0.nextWake() }).min(), wake <= end {
        now = max(now + 1, wake)
        for node in policies.indices { handle(node, .tick) }
      }
      now = end
    }
  }

  @Test("up to six nodes everyone is linked with everyone, and no link is ever given up", arguments: 2...6)
  func smallFleet(count: Int) {
    var fleet = Fleet(count)
    fleet.discover(0..<1)
    fleet.pass(10_000)
    #expect(fleet.outgoing(of: 0) == count - 1)
    fleet.discover()
    fleet.pass(60_000)
    let links = fleet.links
    #expect(fleet.policies.indices.allSatisfy { fleet.peers(of: $0).count == count - 1 })
    fleet.pass(3_600_000)
    #expect(fleet.links == links)
  }

  @Test("above six nodes nobody dials more than five, and the fleet hangs together", arguments: [7, 12, 30])
  func largeFleet(count: Int) {
    var fleet = Fleet(count)
    fleet.discover()
    fleet.pass(600_000)
    #expect(fleet.policies.indices.allSatisfy { fleet.outgoing(of: $0) <= 5 })
    var reached: Set<Int> = [0]
    while case let next = reached.union(reached.flatMap(fleet.peers)), next != reached { reached = next }
    #expect(reached.count == count)
  }

  @Test("in time any two nodes of a large fleet meet")
  func swaps() {
    var fleet = Fleet(16)
    fleet.discover()
    fleet.pass(60_000)
    let linked = fleet.everLinked.count
    #expect(linked < 16 * 15 / 2)
    fleet.pass(2 * 3_600_000)
    #expect(fleet.everLinked.count == 16 * 15 / 2)
  }

  @Test("what the operator named is dialled beyond the five, and is not given up for others")
  func configured() {
    var fleet = Fleet(16)
    fleet.handle(0, .configured((1...8).map { .socket(Fleet.socket($0)) }))
    fleet.pass(30_000)
    #expect(fleet.outgoing(of: 0) == 8)
    fleet.discover()
    fleet.pass(3_600_000)
    #expect(fleet.peers(of: 0).isSuperset(of: 1...8))
  }
}
