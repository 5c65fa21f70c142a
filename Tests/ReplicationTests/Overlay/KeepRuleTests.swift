import Testing

@testable import Replication

@Suite struct KeepRuleTests {
  private static let low = DeviceID(Digest(words: (1, 0, 0, 0)))
  private static let high = DeviceID(Digest(words: (2, 0, 0, 0)))

  private func link(
    _ dialled: Bool, isLive: Bool = false, exporter: UInt64 = 1, openedAt: UInt64, lastHeardAt: UInt64? = nil
  ) -> KeepRule.Link {
    KeepRule.Link(
      dialledByThisEnd: dialled, isLive: isLive, exporter: Digest(words: (exporter, 0, 0, 0)),
      openedAt: MonotonicTime(milliseconds: openedAt),
      lastHeardAt: MonotonicTime(milliseconds: lastHeardAt ?? openedAt))
  }

  private func choose(_ existing: KeepRule.Link, _ new: KeepRule.Link, isLow: Bool = true, now: UInt64)
    -> KeepRule.Choice
  {
    KeepRule.choose(
      existing: existing, new: new, thisDevice: isLow ? Self.low : Self.high, peer: isLow ? Self.high : Self.low,
      now: MonotonicTime(milliseconds: now))
  }

  @Test("of crossing dials the one of the lower device id stays, at either end and in either order")
  func crossing() {
    // At the lower device: its own dial stays.
    #expect(choose(link(true, openedAt: 0), link(false, openedAt: 50), now: 50) == .keepExisting)
    #expect(choose(link(false, openedAt: 0), link(true, openedAt: 50), now: 50) == .keepNew)
    // At the higher one: the other's.
    #expect(choose(link(true, openedAt: 0), link(false, openedAt: 50), isLow: false, now: 50) == .keepNew)
    #expect(choose(link(false, openedAt: 0), link(true, openedAt: 50), isLow: false, now: 50) == .keepExisting)
  }

  @Test("who dials beside a connection that is live already keeps that, and a listener goes by the dialler's word")
  func live() {
    for isLow in [true, false] {
      for dialled in [true, false] {
        let existing = link(dialled, isLive: true, exporter: 2, openedAt: 0)
        #expect(choose(existing, link(true, openedAt: 2_000), isLow: isLow, now: 2_000) == .keepExisting)
      }
      let existing = link(!isLow, isLive: true, exporter: 2, openedAt: 0)
      #expect(
        choose(existing, link(isLow ? false : true, openedAt: 50), isLow: isLow, now: 50)
          == (isLow ? .keepNew : .keepExisting))
    }
  }

  @Test("of two dials of one end at the same time the one with the lower exporter value stays, at either end")
  func sameDirection() {
    for dialled in [true, false] {
      let (a, b) = (link(dialled, exporter: 1, openedAt: 0), link(dialled, exporter: 2, openedAt: 50))
      #expect(choose(a, b, now: 50) == .keepExisting)
      #expect(choose(b, a, now: 50) == .keepNew)
    }
  }

  @Test("a connection that was silent for too long gives way to any new one")
  func silent() {
    for dialled in [true, false] {
      let existing = link(true, openedAt: 0, lastHeardAt: 1_000)
      #expect(choose(existing, link(dialled, openedAt: 16_001), now: 16_001) == .keepNew)
    }
    let heard = link(true, openedAt: 0, lastHeardAt: 15_900)
    #expect(choose(heard, link(true, openedAt: 16_001), now: 16_001) == .keepExisting)
  }

  @Test("beside a living older connection a dialler drops its new one, a listener follows the dialler")
  func older() {
    let existing = link(true, openedAt: 0, lastHeardAt: 99_000)
    #expect(choose(existing, link(true, openedAt: 100_000), now: 100_000) == .keepExisting)
    #expect(choose(existing, link(false, openedAt: 100_000), now: 100_000) == .keepNew)
  }

  @Test("the race is judged by when both were opened, however late the decision", arguments: [10_000, 10_001])
  func lateDecision(difference: UInt64) {
    let existing = link(true, openedAt: 0, lastHeardAt: 10_000)
    let new = link(false, openedAt: difference)
    let isRace = difference <= KeepRule.raceWindowMilliseconds
    #expect(choose(existing, new, now: 20_000) == (isRace ? .keepExisting : .keepNew))
    let earlier = link(false, openedAt: difference - 100)
    #expect(choose(existing, earlier, now: 10_400) == .keepExisting)
  }

  @Test("a connection is silent after fifteen seconds, not at fifteen", arguments: [(15_000, false), (15_001, true)])
  func silenceLimit(silence: UInt64, isDead: Bool) {
    let existing = link(true, openedAt: 0, lastHeardAt: 50_000)
    let now = 50_000 + silence
    #expect(choose(existing, link(true, openedAt: now), now: now) == (isDead ? .keepNew : .keepExisting))
  }

  @Test("a clock that stands still or an opening time from the future decides without trapping")
  func oddTimes() {
    #expect(choose(link(true, openedAt: .max), link(false, openedAt: 0), now: 0) == .keepExisting)
    #expect(choose(link(true, openedAt: 0), link(false, openedAt: .max), now: .max) == .keepNew)
  }

  @Test(
    "in every interleaving of crossing and repeated dials both ends keep one and the same connection",
    arguments: [
      [true, false], [false, true], [true, true], [true, false, true], [false, false], [true, true, false],
    ])
  func everyInterleaving(dialledByLow: [Bool]) {
    var explorer = DialExplorer(dialledByLow: dialledByLow)
    explorer.explore()
    #expect(explorer.outcomes > dialledByLow.count)
    #expect(explorer.failures == [])
  }

  @Test("a device that lost its end without a word is taken back at once, whoever dialled before")
  func restarted() {
    for oldDialledByLow in [true, false] {
      for newDialledByLow in [true, false] {
        // The end that restarted knows nothing and dials; the other still holds the old connection, heard a second ago.
        let existing = link(oldDialledByLow != newDialledByLow, openedAt: 0, lastHeardAt: 59_000)
        #expect(choose(existing, link(false, openedAt: 60_000), isLow: !newDialledByLow, now: 60_000) == .keepNew)
      }
    }
  }
}

/// Two ends, several dials, every order of what can happen next. A link opens at the dialler, who decides and, if it
/// keeps it, says Hello; the Hello arrives at the listener, who decides and answers; a close arrives at the other end in order.
private struct DialExplorer {
  private enum Message { case hello, answer, close }

  private struct LinkState {
    let dialledByLow: Bool
    let exporter: UInt64
    var isDialled = false
    /// In flight, by direction.
    var toListener: [Message] = []
    var toDialler: [Message] = []
    /// Whether each end holds it as its session's connection.
    var heldByLow = false
    var heldByHigh = false
    /// Closed at an end: whatever arrives there later is nothing.
    var closedAtLow = false
    var closedAtHigh = false
    /// The other end's Hello was there.
    var isLiveAtLow = false
    var isLiveAtHigh = false
  }

  private struct World { var links: [LinkState] }

  private let start: World
  private(set) var outcomes = 0
  private(set) var failures: [String] = []

  init(dialledByLow: [Bool]) {
    // Exporter values are random: the order of opening says nothing about theirs.
    start = World(
      links: dialledByLow.enumerated().map { LinkState(dialledByLow: $1, exporter: UInt64([5, 3, 9][$0])) })
  }

  mutating func explore() { explore(start, trace: "") }

  private mutating func explore(_ world: World, trace: String) {
    var moved = false
    for index in world.links.indices {
      let link = world.links[index]
      if !link.isDialled {
        var next = world
        next.links[index].isDialled = true
        decide(&next, index, atLow: link.dialledByLow)
        explore(next, trace: trace + " open\(index)")
        moved = true
      }
      for towardsListener in [true, false] where !(towardsListener ? link.toListener : link.toDialler).isEmpty {
        var next = world
        let message =
          towardsListener ? next.links[index].toListener.removeFirst() : next.links[index].toDialler.removeFirst()
        arrive(&next, index, message, atLow: towardsListener != link.dialledByLow)
        explore(next, trace: trace + " \(message)\(index)\(towardsListener ? ">" : "<")")
        moved = true
      }
    }
    if !moved { check(world, trace) }
  }

  private func arrive(_ world: inout World, _ index: Int, _ message: Message, atLow: Bool) {
    guard !(atLow ? world.links[index].closedAtLow : world.links[index].closedAtHigh) else { return }
    switch message {
    case .hello: decide(&world, index, atLow: atLow)
    case .answer: if atLow { world.links[index].isLiveAtLow = true } else { world.links[index].isLiveAtHigh = true }
    case .close:
      if atLow { (world.links[index].heldByLow, world.links[index].closedAtLow) = (false, true) }
      if !atLow { (world.links[index].heldByHigh, world.links[index].closedAtHigh) = (false, true) }
    }
  }

  /// One end has a new connection to judge, beside the one it may hold.
  private func decide(_ world: inout World, _ index: Int, atLow: Bool) {
    let held = world.links.indices.first { atLow ? world.links[$0].heldByLow : world.links[$0].heldByHigh }
    var keepsNew = true
    if let held {
      let choice = KeepRule.choose(
        existing: view(world.links[held], atLow), new: view(world.links[index], atLow),
        thisDevice: DeviceID(Digest(words: (atLow ? 1 : 2, 0, 0, 0))),
        peer: DeviceID(Digest(words: (atLow ? 2 : 1, 0, 0, 0))), now: Self.now)
      keepsNew = choice == .keepNew
      close(&world, keepsNew ? held : index, atLow)
    }
    guard keepsNew else { return }
    if atLow { world.links[index].heldByLow = true } else { world.links[index].heldByHigh = true }
    guard world.links[index].dialledByLow != atLow else { return world.links[index].toListener.append(.hello) }
    if atLow { world.links[index].isLiveAtLow = true } else { world.links[index].isLiveAtHigh = true }
    world.links[index].toDialler.append(.answer)
  }

  private func close(_ world: inout World, _ index: Int, _ atLow: Bool) {
    if atLow { (world.links[index].heldByLow, world.links[index].closedAtLow) = (false, true) }
    if !atLow { (world.links[index].heldByHigh, world.links[index].closedAtHigh) = (false, true) }
    if world.links[index].dialledByLow == atLow {
      world.links[index].toListener.append(.close)
    } else {
      world.links[index].toDialler.append(.close)
    }
  }

  /// All within one second: a race.
  private static let now = MonotonicTime(milliseconds: 1_000)

  private func view(_ link: LinkState, _ atLow: Bool) -> KeepRule.Link {
    KeepRule.Link(
      dialledByThisEnd: link.dialledByLow == atLow, isLive: atLow ? link.isLiveAtLow : link.isLiveAtHigh,
      exporter: Digest(words: (link.exporter, 0, 0, 0)), openedAt: Self.now, lastHeardAt: Self.now)
  }

  private mutating func check(_ world: World, _ trace: String) {
    outcomes += 1
    let low = world.links.indices.filter { world.links[$0].heldByLow }
    let high = world.links.indices.filter { world.links[$0].heldByHigh }
    if low.count != 1 || low != high { failures.append("\(low) \(high) after\(trace)") }
  }
}
