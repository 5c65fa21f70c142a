import Testing
import TestSupport

@testable import Replication

@Suite struct DialPolicyTests {
  private typealias Limits = DialPolicy.Limits

  private static let me = DeviceID(Digest(words: (1, 0, 0, 0)))
  private static func device(_ number: UInt64) -> DeviceID { DeviceID(Digest(words: (100 + number, 0, 0, 0))) }
  private static func socket(_ number: UInt32) -> SocketAddress {
    SocketAddress(.ipv4(0x0a00_0000 + number), port: 7_000)
  }
  private static func address(_ number: UInt32) -> PeerAddress { .socket(socket(number)) }

  /// A policy with its clock and generator.
  private struct World {
    var policy = DialPolicy(thisDevice: DialPolicyTests.me)
    var random = SplitMix64(seed: 11)
    var now: UInt64 = 1_000_000

    mutating func handle(_ event: DialPolicy.Event) -> [PeerAddress] {
      policy.handle(event, now: MonotonicTime(milliseconds: now), using: &random)
    }

    mutating func advance(_ milliseconds: UInt64) -> [PeerAddress] {
      now += milliseconds
      return handle(.tick)
    }

    mutating func find(_ name: Text, _ numbers: [UInt32], matches: Bool = true) -> [PeerAddress] {
      handle(.found(instance: name, addresses: numbers.map(DialPolicyTests.socket), tagMatches: matches))
    }

    /// Lets time pass, with every dial failing at once, and counts the dials by address.
    mutating func failEverything(for milliseconds: UInt64) -> [PeerAddress: Int] {
      var counts: [PeerAddress: Int] = [:]
      let end = now + milliseconds
      var dials = handle(.tick)
      while true {
        for dial in dials { counts[dial, default: 0] += 1 }
        dials = dials.flatMap { handle(.dialFailed($0)) }
        guard dials.isEmpty else { continue }
        guard let wake = policy.wake, wake <= end else { return counts }
        now = max(now + 1, wake)
        dials = handle(.tick)
      }
    }
  }

  @Test(
    "who refuses behind the greetings is dialled as rarely as who refuses before them, at whichever of his addresses",
    arguments: [[1], [1, 2]] as [[UInt32]])
  func refusedLate(addresses: [UInt32]) {
    var world = World()
    var dials = world.find("a", addresses)
    var count = 0
    let end = world.now + 3_600_000
    while world.now < end {
      for dial in dials {
        count += 1
        _ = world.handle(.identified(dial, Self.device(1)))
        _ = world.handle(.connected(Self.device(1), outgoing: true))
        _ = world.handle(.dialRefused(dial))
        _ = world.handle(.disconnected(Self.device(1)))
      }
      dials = world.advance(500)
    }
    #expect((6...20).contains(count), "\(count) dials")
  }

  @Test("the first refusal makes nobody wait for more than a minute, however often nobody was there before")
  func firstRefusal() {
    var world = World()
    _ = world.find("a", [1])
    #expect(world.failEverything(for: 600_000).values.max() ?? 0 > 6)
    world.now = world.policy.wake ?? 0
    #expect(world.handle(.tick) == [Self.address(1)])
    _ = world.handle(.identified(Self.address(1), Self.device(1)))
    _ = world.handle(.connected(Self.device(1), outgoing: true))
    _ = world.handle(.dialRefused(Self.address(1)))
    _ = world.handle(.disconnected(Self.device(1)))
    var waited: UInt64 = 0
    while world.advance(500).isEmpty, waited < 600_000 { waited += 500 }
    #expect((29_000...61_000).contains(waited), "\(waited) ms")
  }

  @Test("a configured address is dialled at once; a dead one is tried again after 1 s, more and more rarely, to 15 s")
  func configured() {
    var world = World()
    #expect(world.handle(.configured([Self.address(1)])) == [Self.address(1)])
    #expect(world.handle(.tick) == [])
    #expect(world.handle(.dialFailed(Self.address(1))) == [])
    var waits: [UInt64] = []
    for _ in 0..<8 {
      let start = world.now
      world.now = world.policy.wake ?? 0
      waits.append(world.now - start)
      #expect(world.handle(.tick) == [Self.address(1)])
      _ = world.handle(.dialFailed(Self.address(1)))
    }
    for (index, wait) in waits.enumerated() {
      let whole = min(UInt64(1_000) << UInt64(index), 15_000)
      #expect((whole / 2...whole).contains(wait))
    }
  }

  @Test("a discovered address waits up to 60 s, and a fresh sighting brings it forward once in half a minute (N5)")
  func sightings() {
    var world = World()
    #expect(world.find("x", [1]) == [Self.address(1)])
    _ = world.failEverything(for: 600_000)
    let wait = (world.policy.wake ?? 0) - world.now
    #expect(wait <= 60_000)
    world.now += 100
    #expect(world.find("x", [1]).isEmpty)
    #expect((world.policy.wake ?? 0) <= world.now + 1_000)
    var dials = 0
    for _ in 0..<1_000 {
      world.now += 10
      for dial in world.find("x", [1]) {
        dials += 1
        _ = world.handle(.dialFailed(dial))
      }
    }
    #expect(dials <= 2)
  }

  @Test("the names of linked devices are told apart from those of others, by whichever end the link was made")
  func linkedInstances() {
    var world = World()
    for (name, number) in [("x", 1), ("y", 2), ("z", 3)] as [(Text, UInt32)] { _ = world.find(name, [number]) }
    #expect(world.policy.linkedInstances.isEmpty)
    _ = world.handle(.identified(Self.address(1), Self.device(1)))
    _ = world.handle(.connected(Self.device(1), outgoing: true))
    _ = world.handle(.connected(Self.device(2), outgoing: false, listening: Self.address(2)))
    #expect(world.policy.linkedInstances == ["x", "y"])
    _ = world.handle(.disconnected(Self.device(1)))
    #expect(world.policy.linkedInstances == ["y"])
  }

  @Test("a connected device's addresses are not dialled, and soon after it is gone one is")
  func connected() {
    var world = World()
    let device = Self.device(1)
    #expect(world.find("x", [1, 2]) == [Self.address(1)])
    #expect(world.handle(.identified(Self.address(1), device)).isEmpty)
    #expect(world.handle(.connected(device, outgoing: true)).isEmpty)
    #expect(world.advance(600_000).isEmpty)
    #expect(world.find("x", [1, 2]).isEmpty)
    #expect(world.policy.entries.map(\.state) == [.connected, .idle])
    for dial in world.handle(.disconnected(device)) { _ = world.handle(.dialFailed(dial)) }
    #expect(world.failEverything(for: 2_000)[Self.address(1)] != nil)
  }

  @Test("the addresses of one instance are dialled one after another, not at once")
  func oneAtATime() {
    var world = World()
    #expect(world.find("x", [1, 2, 3]).count == 1)
    let second = world.handle(.dialFailed(Self.address(1)))
    #expect(second == [Self.address(2)])
  }

  @Test("an address that led nowhere is no trouble once another of its instance is connected")
  func otherAddress() {
    var world = World()
    #expect(world.find("x", [1, 2]) == [Self.address(1)])
    #expect(world.handle(.dialFailed(Self.address(1))) == [Self.address(2)])
    #expect(world.policy.entries.map(\.state) == [.unreachable, .dialling])
    _ = world.handle(.identified(Self.address(2), Self.device(1)))
    _ = world.handle(.connected(Self.device(1), outgoing: true))
    #expect(world.policy.entries.map(\.state) == [.idle, .connected])
  }

  @Test("at most four dials are under way; an attempt nobody answers for is given up after its time")
  func concurrency() {
    var world = World()
    #expect(world.handle(.configured((1...10).map(Self.address))).count == 4)
    #expect(world.advance(29_999).isEmpty)
    #expect(world.advance(1).count == 4)
    #expect(world.handle(.dialFailed(Self.address(5))).count == 1)
  }

  @Test("an identified peer that makes no session gives its place free after ten seconds")
  func noSession() {
    var world = World()
    _ = world.find("x", [1])
    _ = world.handle(.identified(Self.address(1), Self.device(1)))
    #expect(world.policy.entries.map(\.state) == [.dialling])
    #expect(world.policy.wake == world.now + 10_000)
    #expect(world.advance(10_000).isEmpty)
    #expect(world.policy.entries.map(\.state) == [.unreachable])
  }

  @Test("this node's own address is recognised and left alone until addresses change")
  func ownAddress() {
    var world = World()
    #expect(world.find("x", [1]) == [Self.address(1)])
    _ = world.handle(.identified(Self.address(1), Self.me))
    #expect(world.policy.entries.map(\.state) == [.thisNode])
    #expect(world.advance(3_000_000).isEmpty)
    #expect(world.find("x", [1]).isEmpty)
    _ = world.handle(.networkChanged)
    #expect(world.advance(1_001) == [Self.address(1)])
  }

  @Test("another fleet's node is tried again after a minute at the earliest, whatever discovery says (N15)")
  func refused() {
    var world = World()
    #expect(world.find("x", [1], matches: false) == [Self.address(1)])
    _ = world.handle(.identified(Self.address(1), Self.device(1)))
    _ = world.handle(.dialRefused(Self.address(1)))
    #expect(world.policy.entries.map(\.state) == [.refused])
    for _ in 0..<29 { #expect(world.find("x", [1], matches: false).isEmpty && world.advance(1_000).isEmpty) }
    var dials = 0
    let end = world.now + 3_600_000
    while let wake = world.policy.wake, wake < end {
      world.now = max(wake, world.now + 1)
      for dial in world.handle(.tick) {
        dials += 1
        _ = world.handle(.dialRefused(dial))
      }
    }
    #expect((6...16).contains(dials))
  }

  @Test(
    "who was refused is dialled again within a second once devices were let in, at all his addresses, and nobody else is"
  )
  func admitted() {
    var world = World()
    _ = world.find("x", [1, 2])
    _ = world.find("y", [3])
    func refuse(_ number: UInt32, _ device: UInt64) {
      _ = world.handle(.identified(Self.address(number), Self.device(device)))
      _ = world.handle(.dialRefused(Self.address(number)))
    }
    _ = world.handle(.identified(Self.address(2), Self.device(1)))
    refuse(1, 1)
    refuse(3, 2)
    #expect(world.advance(25_000).isEmpty)
    _ = world.handle(.admitted([Self.address(1)]))
    #expect(world.policy.entries.map(\.state) == [.idle, .idle, .refused])
    let dials = world.advance(1_000)
    #expect(dials == [Self.address(1)] || dials == [Self.address(2)], "\(dials)")
    // Refused again: the wait is the longer one, and comes to an end by who is let in twice a minute at the most.
    refuse(1, 1)
    var again = 0
    for _ in 0..<60 {
      for dial in world.handle(.admitted([Self.address(1)])) + world.advance(1_000) where dial != Self.address(3) {
        again += 1
        _ = world.handle(.dialRefused(dial))
      }
    }
    #expect((1...3).contains(again), "\(again) dials")
  }

  @Test("a tag that does not match comes last, but comes")
  func strangersLast() {
    var world = World()
    _ = world.handle(.configured((50...53).map(Self.address)))
    #expect(world.find("stranger", [1], matches: false).isEmpty)
    #expect(world.find("friend", [2]).isEmpty)
    #expect(world.handle(.dialFailed(Self.address(50))) == [Self.address(2)])
    #expect(world.handle(.dialFailed(Self.address(51))) == [Self.address(1)])
  }

  @Test("while one stranger is dialled nobody wakes for the next")
  func wakeForStrangers() {
    var world = World()
    let dials = world.find("one", [1], matches: false) + world.find("two", [2], matches: false)
    #expect(dials == [Self.address(1)])
    #expect((world.policy.wake ?? 0) > world.now)
  }

  @Test("a flood of made-up names takes 10 dials a minute, and keeps out neither friends nor the operator's peers (N6)")
  func flood() {
    var world = World()
    _ = world.handle(.remembered(Self.device(1), [Self.socket(900_001)]))
    var strangerDials = 0
    var pending: [PeerAddress] = []
    for index: UInt32 in 0..<3_000 {
      world.now += 1
      pending += world.find(Text("n\(index)"), [1_000 + index], matches: false)
      for dial in pending where dial != Self.address(900_001) { strangerDials += 1 }
      pending = pending.flatMap { world.handle(.dialFailed($0)) }
    }
    #expect(world.policy.entries.count <= Limits.candidates)
    #expect(strangerDials <= Limits.strangerDialBurst + 4)
    #expect(world.policy.entries.contains { $0.address == Self.address(900_001) })
    // Budget is left for others.
    #expect(world.find("friend", [900_002]).contains(Self.address(900_002)))
    #expect(world.handle(.configured([Self.address(900_003)])).contains(Self.address(900_003)))
    let counts = world.failEverything(for: 600_000)
    let strangers = counts.filter { $0.key < Self.address(900_000) }.values.reduce(0, +)
    #expect(strangers <= 10 * Limits.strangerDialsPerMinute + Limits.strangerDialBurst + 1)
    #expect(counts[Self.address(900_003), default: 0] > 20)
  }

  @Test("even with everything dead there are never more than sixty dials a minute")
  func budget() {
    var world = World()
    _ = world.handle(.configured((1...64).map(Self.address)))
    let counts = world.failEverything(for: 600_000)
    #expect(counts.values.reduce(0, +) <= 600 + Limits.dialBurst)
    #expect(counts.count == 64)
  }

  @Test("a peer that can reach us but not be reached is dialled no more often than its back-off (N3)")
  func asymmetric() {
    var world = World()
    _ = world.find("x", [1])
    let counts = world.failEverything(for: 3_600_000)
    #expect(counts[Self.address(1), default: 0] < 130)
  }

  @Test("a link that flaps every two seconds gets a contact at least every eight (N13)")
  func flapping() {
    var world = World()
    let device = Self.device(1)
    var dials = world.find("x", [1])
    let start = world.now
    var contacts = 0
    while world.now < start + 120_000 {
      for dial in dials {
        contacts += 1
        _ = world.handle(.identified(dial, device))
        _ = world.handle(.connected(device, outgoing: true))
        world.now += 2_000
        _ = world.handle(.disconnected(device))
      }
      world.now = max(world.now, world.policy.wake ?? world.now)
      dials = world.handle(.tick)
    }
    #expect(contacts >= 12)
  }

  @Test("an instance that is lost is dialled no more, but the address of a device that was met stays known")
  func lost() {
    var world = World()
    _ = world.find("x", [1])
    _ = world.find("y", [2])
    _ = world.handle(.dialFailed(Self.address(1)))
    _ = world.handle(.identified(Self.address(2), Self.device(2)))
    _ = world.handle(.connected(Self.device(2), outgoing: true))
    _ = world.handle(.lost(instance: "x"))
    _ = world.handle(.lost(instance: "y"))
    #expect(world.policy.entries.map(\.address) == [Self.address(2)])
    _ = world.handle(.disconnected(Self.device(2)))
    #expect(world.failEverything(for: 10_000)[Self.address(2), default: 0] > 0)
  }

  @Test("a stranger's instance cannot take a fleet node's address down to its own rank")
  func claimedAddress() {
    var world = World()
    _ = world.handle(.configured((50...53).map(Self.address)))
    _ = world.find("friend", [1])
    _ = world.find("stranger", [1], matches: false)
    #expect(world.policy.entries.first { $0.address == Self.address(1) }?.instance == "friend")
  }

  @Test("the same events and seed give the same dials")
  func deterministic() {
    func run() -> [[PeerAddress]] {
      var world = World()
      return (0..<500).map { index in
        world.now += 37
        let number = UInt32(index * 7_919 % 97)
        switch index % 5 {
        case 0: return world.find(Text("n\(number)"), [number, number + 100], matches: index % 2 == 0)
        case 1: return world.handle(.dialFailed(Self.address(number)))
        case 2: return world.handle(.identified(Self.address(number), Self.device(UInt64(number % 7))))
        case 3:
          return world.handle(
            index % 3 == 0 ? .connected(Self.device(UInt64(number % 7)), outgoing: true) : .networkChanged)
        default: return world.handle(.disconnected(Self.device(UInt64(number % 7))))
        }
      }
    }
    #expect(run() == run())
  }
}

extension DialPolicy {
  /// In milliseconds, as the clocks of these tests count.
  var wake: UInt64? { nextWake()?.milliseconds }
}
