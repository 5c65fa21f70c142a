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

    /// Dials, which take longer than finding the others does.
    private var underWay: [(node: Int, dial: PeerAddress)] = []
    private var isDiscovering = false

    init(_ count: Int, seed: UInt64 = 5) {
      policies = (0..<count).map { DialPolicy(thisDevice: Fleet.device($0)) }
      random = SplitMix64(seed: seed)
    }

    static func device(_ number: Int) -> DeviceID { DeviceID(Digest(words: (UInt64(100 + number), 0, 0, 0))) }
    static func socket(_ number: Int) -> SocketAddress {
      SocketAddress(.ipv4(0x0a00_0000 + UInt32(number)), port: 7_000)
    }

    func peers(of node: Int) -> Set<Int> { Set(links.filter { $0.contains(node) }.flatMap { $0 }).subtracting([node]) }

    func outgoing(of node: Int) -> Int { links.count { $0[0] == node } }

    mutating func handle(_ node: Int, _ event: DialPolicy.Event) {
      for dial in policies[node].handle(event, now: MonotonicTime(milliseconds: now), using: &random) {
        underWay.append((node, dial))
      }
      if !isDiscovering { finishDials() }
      while let dropped = policies[node].takeDrop()?.device {
        guard let other = policies.indices.first(where: { Fleet.device($0) == dropped }) else { continue }
        links.subtract([[node, other], [other, node]])
        for (end, peer) in [(node, other), (other, node)] { handle(end, .disconnected(Fleet.device(peer))) }
        for end in [node, other] { tellCount(of: end) }
      }
    }

    private mutating func finishDials() {
      while !underWay.isEmpty {
        let (node, dial) = underWay.removeFirst()
        guard case .socket(let address) = dial,
          let other = policies.indices.first(where: { Fleet.socket($0) == address })
        else { continue }
        connect(node, other)
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
      for end in [node, other] { tellCount(of: end) }
    }

    private mutating func tellCount(of node: Int) {
      let peers = peers(of: node)
      for peer in peers.sorted() { handle(peer, .counted(Fleet.device(node), links: peers.count)) }
    }

    /// `finders`: who sees the others, or those of them that are named.
    mutating func discover(_ finders: Range<Int>? = nil, of found: Range<Int>? = nil) {
      isDiscovering = true
      defer {
        isDiscovering = false
        finishDials()
      }
      for node in finders ?? policies.indices {
        for other in found ?? policies.indices where other != node {
          handle(node, .found(instance: Text("n\(other)"), addresses: [Fleet.socket(other)], tagMatches: true))
        }
      }
    }

    /// It and those before it find one another within a second, in no order.
    mutating func join(_ newest: Int) {
      var sightings = (0..<newest).flatMap { [[newest, $0], [$0, newest]] }
      sightings.shuffle(using: &random)
      for pair in sightings {
        discover(pair[0]..<pair[0] + 1, of: pair[1]..<pair[1] + 1)
        pass(1_000 / UInt64(sightings.count))
      }
    }

    mutating func pass(_ milliseconds: UInt64) {
      let end = now + milliseconds
      while let wake = policies.compactMap({ $0.wake }).min(), wake <= end {
        now = max(now + 1, wake)
        for node in policies.indices { handle(node, .tick) }
      }
      now = end
    }
  }

  @Test("up to eleven nodes everyone is linked with everyone, and no link is ever given up", arguments: 2...11)
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

  @Test("above eleven nodes nobody dials more than five, and the fleet hangs together", arguments: [12, 16, 30])
  func largeFleet(count: Int) {
    var fleet = Fleet(count)
    fleet.discover()
    fleet.pass(600_000)
    #expect(fleet.policies.indices.allSatisfy { fleet.outgoing(of: $0) <= 5 })
    var reached: Set<Int> = [0]
    while case let next = reached.union(reached.flatMap(fleet.peers)), next != reached { reached = next }
    #expect(reached.count == count)
  }

  @Test(
    "who came first does not end up with twice the links of who came last", arguments: 1...12 as ClosedRange<UInt64>)
  func evenly(seed: UInt64) {
    var fleet = Fleet(20, seed: seed)
    for newest in 1..<20 { fleet.join(newest) }
    fleet.pass(60_000)
    func counts() -> [Int] { fleet.policies.indices.map { fleet.peers(of: $0).count } }
    let soon = counts()
    #expect(soon.allSatisfy { 7...12 ~= $0 }, "\(soon)")
    for _ in 0..<300 {
      fleet.pass(1_000)
      let later = counts()
      #expect(later.allSatisfy { 5...14 ~= $0 }, "\(later)")
      #expect(fleet.policies.indices.allSatisfy { fleet.outgoing(of: $0) >= 2 })
    }
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

  @Test("whom nobody else finds keeps the one link that it has, however old that becomes", arguments: [1, 3])
  func onlyLink(count: Int) {
    var fleet = Fleet(20)
    let leaves = 20 - count..<20
    fleet.discover(0..<1, of: leaves)
    for newest in 1..<leaves.lowerBound { fleet.join(newest) }
    var alone = 0
    for _ in 0..<3_600 {
      fleet.pass(1_000)
      alone += leaves.count { fleet.peers(of: $0).isEmpty }
    }
    #expect(alone == 0)
    let met = fleet.everLinked.count { $0.contains(0) }
    #expect(met == 19 && fleet.everLinked.count > 130, "all go on to swap")
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

  /// A node with as many outgoing links as it may have, or fewer, which others have dialled, too, so that it knows more devices
  /// than it would be linked with all of; and what it is told from then on.
  private struct Full {
    var policy = DialPolicy(thisDevice: Fleet.device(0))
    var random = SplitMix64(seed: 8)
    var now: UInt64 = 1_000_000

    init(links: Int = 5, dialledBy others: Int = 6) {
      for number in 1...links { link(number, outgoing: true) }
      for number in 51..<51 + others { link(number, outgoing: false) }
    }

    @discardableResult mutating func handle(_ event: DialPolicy.Event) -> [PeerAddress] {
      policy.handle(event, now: MonotonicTime(milliseconds: now), using: &random)
    }

    mutating func find(_ number: Int) {
      handle(.found(instance: Text("n\(number)"), addresses: [Fleet.socket(number)], tagMatches: true))
    }

    mutating func link(_ number: Int, outgoing: Bool) {
      find(number)
      handle(.identified(.socket(Fleet.socket(number)), Fleet.device(number)))
      handle(.connected(Fleet.device(number), outgoing: outgoing))
    }
  }

  @Test("no link is given up to dial oneself")
  func ownAddress() {
    var full = Full()
    full.find(0)
    full.handle(.identified(.socket(Fleet.socket(0)), Fleet.device(0)))
    for _ in 0..<300 {
      full.now += 60_000
      #expect(full.handle(.tick) == [] && full.policy.takeDrop() == nil)
    }
  }

  @Test("no link is given up for who dialled this node and is found where it listens", arguments: [false, true])
  func linkedAlready(isFoundFirst: Bool) {
    var full = Full(dialledBy: 5)
    if isFoundFirst { full.find(20) }
    full.handle(.connected(Fleet.device(20), outgoing: false, listening: .socket(Fleet.socket(20))))
    full.handle(.counted(Fleet.device(20), links: 1))
    if !isFoundFirst { full.find(20) }
    for _ in 0..<300 {
      full.now += 60_000
      #expect(full.handle(.tick) == [])
      #expect(full.policy.takeDrop() == nil)
    }
    full.handle(.disconnected(Fleet.device(20)))
    var turns = 0
    for _ in 0..<300 {
      full.now += 60_000
      full.handle(.tick)
      if full.policy.takeDrop()?.reason == .turn { turns += 1 }
    }
    #expect(turns > 0, "once it is gone it waits as others do")
  }

  @Test("what the operator named is dialled also where another device says that it listens there")
  func namedByTheOperator() {
    var full = Full(links: 1, dialledBy: 1)
    let named = PeerAddress.socket(Fleet.socket(20))
    let first = full.handle(.configured([named]))
    full.handle(.dialFailed(named))
    full.handle(.connected(Fleet.device(21), outgoing: false, listening: named))
    full.now += 60_000
    let later = full.handle(.tick)
    #expect(first == [named] && later == [named])
  }

  @Test("a link is given up when who waits for room may be dialled, and no sooner; the oldest goes")
  func notBeforeItMayBeDialled() throws {
    var full = Full(dialledBy: 5)
    full.now += 1_000
    full.link(6, outgoing: false)
    full.now += 60_000
    full.find(7)
    let due = try #require(full.policy.wake)
    // Whoever waits has gone when the time is there; another may be dialled in half a second at the earliest.
    full.now = due - 400
    full.handle(.disconnected(Fleet.device(6)))
    full.handle(.lost(instance: "n7"))
    full.now = due
    full.handle(.tick)
    #expect(full.policy.takeDrop() == nil)
    full.now = due + 1_000
    full.handle(.tick)
    #expect(full.policy.takeDrop()?.device == Fleet.device(1))
  }

  @Test("a link is given up for another whose peer has enough; where all have few, the one with the most")
  func swapSparesFew() throws {
    for (counts, given) in [([2, 9, 9, 9, 9], 2), ([1, 2, 4, 4, 3], 3)] {
      var full = Full()
      for (number, count) in zip(1..., counts) { full.handle(.counted(Fleet.device(number), links: count)) }
      full.find(7)
      full.now += 120_000
      full.handle(.tick)
      #expect(full.policy.takeDrop()?.device == Fleet.device(given))
    }
  }

  @Test("a place beyond the usual ones is for who has links to those with few, and not for who has none yet")
  func noPlaceBeforeAnyLink() {
    var full = Full(links: 1, dialledBy: 10)
    full.handle(.disconnected(Fleet.device(1)))
    full.handle(.lost(instance: "n1"))
    var dials: Set<PeerAddress> = []
    for number in 71...76 {
      let found = DialPolicy.Event.found(
        instance: Text("n\(number)"), addresses: [Fleet.socket(number)], tagMatches: true)
      dials.formUnion(full.handle(found))
    }
    for _ in 0..<20 {
      full.now += 1_000
      dials.formUnion(full.handle(.tick))
    }
    #expect(dials.count == DialPolicy.Limits.leastOutgoingLinks)
  }

  @Test("a link on the place beyond the usual ones has its turn as others have, and is not too much at once")
  func placeBeyond() {
    var full = Full(links: 3, dialledBy: 8)
    for number in 1...3 { full.handle(.counted(Fleet.device(number), links: 1)) }
    for number in 51...58 { full.handle(.counted(Fleet.device(number), links: 9)) }
    let others = Array(71...76)
    var dials = others.flatMap { number in
      full.handle(.found(instance: Text("n\(number)"), addresses: [Fleet.socket(number)], tagMatches: true))
    }
    var dropped = 0
    for _ in 0..<1_200 {
      full.now += 500
      dials += full.handle(.tick)
      while let dial = dials.popLast() {
        guard let number = others.first(where: { dial == .socket(Fleet.socket($0)) }) else { continue }
        dials += full.handle(.identified(dial, Fleet.device(number)))
        dials += full.handle(.connected(Fleet.device(number), outgoing: true))
        dials += full.handle(.counted(Fleet.device(number), links: 12))
      }
      while let device = full.policy.takeDrop()?.device {
        dropped += 1
        dials += full.handle(.disconnected(device))
      }
    }
    #expect((5...20).contains(dropped), "\(dropped) in ten minutes")
  }

  @Test("while a link that was given up is being closed no other is given up for who waits")
  func leaving() throws {
    var full = Full(links: 4, dialledBy: 7)
    full.find(7)
    let swap = try #require(full.policy.nextSwap).milliseconds
    full.now = swap - 100
    full.link(62, outgoing: false)
    full.policy.nextGivingUp = MonotonicTime(milliseconds: swap)
    full.now = swap
    full.handle(.tick)
    #expect(full.policy.takeDrop()?.device == Fleet.device(1))
    for _ in 0..<3 {
      full.now += 5
      full.handle(.tick)
      #expect(full.policy.takeDrop() == nil)
    }
    #expect(try #require(full.policy.wake) >= swap + 500, "nothing is looked at over and over meanwhile")
    full.handle(.disconnected(Fleet.device(1)))
    full.link(63, outgoing: false)
    full.now += 120_000
    full.handle(.tick)
    #expect(full.policy.takeDrop()?.device == Fleet.device(2))
  }

  /// What is given up within two minutes, each of whom dials again at once and has as many links as before.
  private func drops(of full: inout Full) -> [DeviceID] {
    var drops: [DeviceID] = []
    for _ in 0..<60 {
      full.now += 2_000
      full.handle(.tick)
      while let dropped = full.policy.takeDrop()?.device {
        drops.append(dropped)
        full.handle(.disconnected(dropped))
        full.handle(.connected(dropped, outgoing: false))
        full.handle(.counted(dropped, links: 12))
      }
    }
    return drops
  }

  @Test(
    "of too many links one goes whose other end is well linked, and who dials again is not given up again",
    arguments: [1, 3])
  func insists(links: Int) {
    var full = Full(links: links, dialledBy: 12 - links)
    full.handle(.counted(Fleet.device(51), links: 9))
    #expect(drops(of: &full) == [])
    full.handle(.counted(Fleet.device(52), links: 10))
    full.handle(.counted(Fleet.device(53), links: 11))
    #expect(drops(of: &full) == [53, 52].map { Fleet.device($0) })
  }

  @Test("where there are too many links once more, one goes after a wait, as the first time")
  func crowdedAgain() {
    var full = Full(links: 4, dialledBy: 8)
    full.now += 40_000
    full.handle(.tick)
    #expect(full.policy.takeDrop()?.device == Fleet.device(1))
    full.handle(.disconnected(Fleet.device(1)))
    full.now += 10_000
    full.handle(.tick)
    full.handle(.counted(Fleet.device(51), links: 12))
    full.link(62, outgoing: false)
    #expect(full.policy.takeDrop() == nil)
    full.now += 2_400
    full.handle(.tick)
    #expect(full.policy.takeDrop() == nil)
    full.now += 60_000
    full.handle(.tick)
    #expect(full.policy.takeDrop()?.device == Fleet.device(51))
  }

  @Test("a link that began just now is not too much yet")
  func young() {
    var full = Full(links: 3, dialledBy: 9)
    full.handle(.counted(Fleet.device(53), links: 11))
    for _ in 0..<14 {
      full.now += 2_000
      full.handle(.tick)
      #expect(full.policy.takeDrop() == nil)
    }
    full.now += 10_000
    full.handle(.tick)
    #expect(full.policy.takeDrop()?.device == Fleet.device(53))
  }

  @Test("of links that were dialled here the oldest goes, unless its peer has few, or was named by the operator")
  func ownSurplus() {
    var full = Full(links: 4, dialledBy: 8)
    full.handle(.counted(Fleet.device(1), links: 4))
    full.handle(.configured([.socket(Fleet.socket(2)), .socket(Fleet.socket(51))]))
    full.handle(.counted(Fleet.device(51), links: 14))
    #expect(drops(of: &full) == [Fleet.device(3)])
  }

  @Test("a link is not given up for who may be of another fleet, or was not there when last looked for")
  func notForStrangers() {
    for isStranger in [true, false] {
      var full = Full(links: 2, dialledBy: 8)
      let name: Text = "n8"
      full.handle(.found(instance: name, addresses: [Fleet.socket(8)], tagMatches: !isStranger))
      full.handle(.dialFailed(.socket(Fleet.socket(8))))
      full.link(5, outgoing: true)
      if isStranger { full.handle(.found(instance: "n9", addresses: [Fleet.socket(9)], tagMatches: false)) }
      for _ in 0..<60 {
        full.now += 30_000
        full.handle(.tick)
        #expect(full.policy.takeDrop() == nil)
      }
    }
  }
}
