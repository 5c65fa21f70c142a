import Links
import Replication
import TestSupport
import Testing

@Suite("An account of what links cost")
struct LinkBookTests {
  private let day = LinkBook.dayMilliseconds

  private func moment(_ wall: Int64, _ now: UInt64 = 0) -> LinkBook.Moment {
    LinkBook.Moment(wallMilliseconds: wall, now: MonotonicTime(milliseconds: now))
  }

  private func satellite(_ limit: UInt64?, carries: [Text]? = nil) -> LinkRule {
    var rule = LinkRule(.satellite)
    (rule.interfaces, rule.bytesPerDay, rule.carries) = (["ppp*"], limit, carries)
    return rule
  }

  private func path(_ interface: Text, _ host: UInt32 = 0x0a00_0001) -> LinkPath {
    LinkPath(interface: interface, remote: .ipv4(host))
  }

  @Test("a link is of the class of the first route that has its other end, then of its interface, and else a harbour's")
  func classes() throws {
    var mobile = LinkRule(.mobile)
    mobile.routes = [try #require(LinkRoute(.ipv4(0x0a01_0000), bitCount: 16))]
    var none = LinkRule(.closed)
    none.interfaces = ["tun0"]
    let book = LinkBook(rules: [satellite(nil), mobile, none])
    #expect(book.linkClass(of: path("ppp7")) == .satellite)
    #expect(book.linkClass(of: path("pp")) == .harbour)
    #expect(book.linkClass(of: path("ppp7", 0x0a01_ffff)) == .mobile)
    #expect(book.linkClass(of: path("ppp7", 0x0a02_0000)) == .satellite)
    #expect(book.linkClass(of: path("tun0")) == .closed && book.linkClass(of: path("tun00")) == .harbour)
    #expect(book.passage(.closed) == .nothing && book.passage(.harbour) == .everything)
  }

  @Test(
    "routes of every length hold what begins as they do",
    arguments: [
      (0, UInt64.max, UInt64.max, true), (1, 1 << 62, 0, true), (1, 1 << 63, 0, false), (64, 0, .max, true),
      (65, 0, 1 << 62, true), (65, 0, 1 << 63, false), (128, 0, 0, true), (128, 0, 1, false),
    ] as [(Int, UInt64, UInt64, Bool)])
  func routes(_ bits: Int, _ high: UInt64, _ low: UInt64, _ isWithin: Bool) throws {
    let route = try #require(LinkRoute(.ipv6(high: 0, low: 0, scope: 0), bitCount: bits))
    #expect(route.contains(.ipv6(high: high, low: low, scope: 0)) == isWithin)
    #expect(!route.contains(.ipv4(0)))
    #expect(LinkRoute(.ipv4(0), bitCount: 33) == nil && LinkRoute(.ipv4(0), bitCount: -1) == nil)
  }

  @Test("at its limit a class lets authority through alone, and everything it carries on the next day")
  func limit() {
    var book = LinkBook(rules: [satellite(1_000, carries: ["agency=G"])])
    #expect(book.charge(999, on: .satellite, moment(day * 5)).hasMovedPassage == false)
    #expect(book.passage(.satellite) == .partitions(["agency=G"]))
    #expect(book.charge(1, on: .satellite, moment(day * 6 - 1)).hasMovedPassage)
    #expect(book.passage(.satellite) == .authority)
    #expect(book.charge(50, on: .satellite, moment(day * 6 - 1)).hasMovedPassage == false)
    #expect(book.account(of: .satellite)?.charged == 1_050)
    #expect(book.look(moment(day * 6)).hasMovedPassage)
    #expect(book.passage(.satellite) == .partitions(["agency=G"]) && book.account(of: .satellite)?.charged == 0)
  }

  @Test("a restart never finds less than what was spent, and no more than one part in a hundred above it")
  func restart() {
    let limit: UInt64 = 10_000_000
    var random = SplitMix64(seed: 3)
    var book = LinkBook(rules: [satellite(limit)])
    var (disk, writes, spent) = (StoredLinks(), 0, UInt64(0))
    for _ in 0..<2_000 {
      let byteCount = UInt64.random(in: 0...3_000, using: &random)
      spent += byteCount
      if book.charge(byteCount, on: .satellite, moment(day)).mustSave { (disk, writes) = (book.stored, writes + 1) }
      let found = LinkBook(rules: [satellite(limit)], stored: disk).account(of: .satellite)?.charged ?? 0
      #expect(spent <= found && found <= spent + limit / 100 + 3_000)
    }
    #expect(writes < 70)
    book.settle()
    #expect(book.stored.accounts[.satellite] == StoredLinks.Account(day: 1, charged: spent))
  }

  @Test("a clock that is put back gives nothing anew, and one that was ahead holds no more than a day of running")
  func clocks() {
    var book = LinkBook(rules: [satellite(100)])
    #expect(book.charge(100, on: .satellite, moment(day * 9)).hasMovedPassage)
    #expect(book.look(moment(day * 8, 1_000)) == LinkBook.Outcome())
    #expect(book.passage(.satellite) == .authority)
    #expect(book.look(moment(day * 8, 1_000 + UInt64(day) - 1)) == LinkBook.Outcome())
    #expect(book.look(moment(day * 8, 1_000 + UInt64(day))).hasMovedPassage)
    #expect(book.passage(.satellite) == .everything)
  }

  @Test("a class that was chosen by command stands for every link but this host's own, through a restart")
  func command() {
    var book = LinkBook(rules: [satellite(100)])
    #expect(book.choose(.closed) == LinkBook.Outcome(hasMovedPassage: true, mustSave: true))
    #expect(book.choose(.closed) == LinkBook.Outcome())
    #expect(book.linkClass(of: path("eth0")) == .closed && book.linkClass(of: path("ppp0")) == .closed)
    #expect(book.linkClass(of: path("lo", 0x7f00_0001)) == .harbour)
    var again = LinkBook(rules: [], stored: book.stored)
    #expect(again.linkClass(of: path("eth0")) == .closed)
    #expect(again.choose(nil).hasMovedPassage && again.linkClass(of: path("eth0")) == .harbour)
    #expect(again.choose(.mobile).hasMovedPassage && again.isMetered(.mobile))
    #expect(LinkBook(rules: [], stored: again.stored).isMetered(.mobile))
  }

  @Test("numbers beyond all counting stop at the end")
  func overflow() {
    var book = LinkBook(rules: [satellite(.max)])
    _ = book.charge(.max, on: .satellite, moment(.max))
    #expect(book.charge(.max, on: .satellite, moment(.max)).hasMovedPassage == false)
    #expect(book.account(of: .satellite)?.charged == .max && book.passage(.satellite) == .authority)
    _ = book.look(moment(.min))
  }
}
