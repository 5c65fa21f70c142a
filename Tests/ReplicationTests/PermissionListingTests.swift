import TestSupport
import Testing

@testable import Replication

@Suite("Rights as people are told of them")
struct PermissionListingTests {
  typealias Book = AuthorityTests.Book

  /// A fleet in which a dozen hands grant, end and raise without much sense.
  private struct RandomFleet {
    var book = Book()
    private var random: SplitMix64
    private var grants: [Digest] = []
    private var rules: [Digest] = []
    private var memberships: [Digest] = []
    static let devices = ["dA", "dB", "d0", "d1", "d2"]
    static let patterns: [Text] = ["*", "/*", "/t", "agency=*", "agency=A", "user=*", "user=u-d0", "all-users=*"]
    static let partitions: [Text] = ["/t", "agency=A", "agency=B", "user=u-d0", "all-users=x", "u", "conversation=x"]

    init(seed: UInt64) {
      random = SplitMix64(seed: seed)
      memberships = [book.member("dA", role: "admin"), book.member("dB", role: "admin")]
      for device in ["d0", "d1", "d2"] {
        memberships.append(book.member(device, agency: pick(["A", "B"]), by: hand()))
      }
      for key: Text in ["agency", "user", "all-users", "conversation"] where chance(80) {
        rules.append(book.say(.rule(Statement.Rule(key: key)), by: hand()))
      }
      for _ in 0..<Int.random(in: 4...24, using: &random) { speak() }
    }

    private mutating func pick<Element>(_ list: [Element]) -> Element { list[Int(random.next() % UInt64(list.count))] }
    private mutating func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }
    private mutating func hand() -> String { pick(["root", "root", "dA", "dA", "dB", "d0"]) }

    private mutating func subject() -> Statement.Subject {
      switch random.next() % 4 {
      case 0: .everyone
      case 1: .role(pick(["officer", "admin"]))
      case 2: .user(Text("u-" + pick(Self.devices)))
      default: .device(Named.key(pick(Self.devices)))
      }
    }

    private mutating func speak() {
      switch random.next() % 10 {
      case 0..<6:
        let level = pick(AccessLevel.allCases)
        let (subject, pattern, issuer) = (self.subject(), pick(Self.patterns), hand())
        grants.append(book.grant(level, to: subject, on: pattern, by: issuer))
      case 6..<8: end(.grant(pick(grants + rules + [Named.digest("none")])), tips: [])
      case 8:
        let index = Int(random.next() % UInt64(memberships.count))
        let device = Named.key(Self.devices[index])
        end(.membership(memberships[index]), tips: chance(80) ? book.authority.tips(of: device) : [])
      default: memberships[2] = book.member("d0", role: pick(["officer", "cook"]), by: "dA")
      }
    }

    private mutating func end(_ target: Statement.End.Target, tips: [Statement.ScopeTips]) {
      book.say(
        .end(
          Statement.End(
            reason: pick([.retire, .compromised]), target: target, listing: Statement.Listing(tips: tips))),
        by: hand())
    }
  }

  @Test("what is listed gives the level that is evaluated, in 1,000 random fleets")
  func agreesWithEvaluation() throws {
    var seen: [AccessLevel: Int] = [:]
    var endedMembers = 0
    for seed in 0..<1_000 as Range<UInt64> {
      let authority = RandomFleet(seed: seed).book.authority
      for member in authority.allMemberships {
        for name in RandomFleet.partitions {
          let partition = try PartitionName(name)
          let listing = try #require(authority.permissions(of: member.id, in: partition))
          let level = authority.level(of: member.id, in: partition)
          #expect(listing.level == level, "seed \(seed), \(name): \(listing)")
          #expect((level == .none) == listing.reasons.isEmpty, "seed \(seed), \(name)")
          // Who is told that something ended is told what ended it.
          #expect(listing.permissions.allSatisfy { $0.isInForce == $0.endedBy.isEmpty }, "seed \(seed), \(name)")
          seen[level, default: 0] += 1
          if !listing.endedBy.isEmpty { endedMembers += 1 }
        }
      }
    }
    for level in AccessLevel.allCases { #expect(seen[level, default: 0] > 500, "\(level)") }
    #expect(endedMembers > 500)
  }

  @Test("what gives nothing any more is listed with what ended it: an end, the next of its register")
  func endings() throws {
    var book = Book()
    let officer = book.member("d0")
    book.member("dA", role: "admin")
    let first = book.grant(.write, to: .role("officer"), on: "/*", by: "dA")
    let second = book.grant(.read, to: .role("officer"), on: "/*", by: "dA")
    let other = book.grant(.carry, to: .everyone, on: "*")
    let end = book.say(
      .end(Statement.End(reason: .retire, target: .grant(other), listing: Statement.Listing(keep: ["*"]))), by: "dA")
    let listing = try #require(book.authority.permissions(of: officer, in: try Named.partition("/t")))
    #expect(listing.level == .read && listing.reasons.map(\.id) == [second])
    #expect(
      listing.permissions == [
        Permission(source: .grant, id: first, level: .write, isInForce: false, endedBy: [second]),
        Permission(source: .grant, id: second, level: .read, isInForce: true),
        Permission(source: .grant, id: other, level: .carry, isInForce: false, endedBy: [end]),
      ])
  }

  @Test("open grants are those that still give more, in every register, whichever of them is the newest")
  func openGrants() throws {
    var book = Book()
    book.member("dA", role: "admin")
    let early = book.grant(.write, to: .everyone, on: "*")
    let managing = book.grant(.manage, to: .everyone, on: "*")
    let byAdmin = book.grant(.read, to: .everyone, on: "*", by: "dA")
    func open(above level: AccessLevel) -> Set<Digest> {
      Set(book.authority.openGrants(to: .everyone, on: "*", above: level).map(\.id))
    }
    #expect(open(above: .write) == [managing])
    // The earlier one goes on allowing what is written, though it is not the newest.
    #expect(open(above: .read) == [early, managing])
    #expect(open(above: .none) == [early, managing, byAdmin])
    let lowered = book.grant(.carry, to: .everyone, on: "*")
    #expect(open(above: .read) == [] && open(above: .none) == [byAdmin, lowered])
  }

  @Test("open grants are told in order of their ids: what an admin then signs hangs on nothing else")
  func openGrantsInOrder() throws {
    var book = Book()
    for issuer in 0..<12 {
      book.member("d\(issuer)", role: "admin")
      book.grant(.read, to: .everyone, on: "*", by: "d\(issuer)")
    }
    let ids = book.authority.openGrants(to: .everyone, on: "*", above: .none).map(\.id)
    #expect(ids.count == 12 && ids == ids.sorted())
  }

  @Test("the tips of a device are the ends of all its branches; of who signed nothing it is said that there is nothing")
  func tips() throws {
    var book = Book()
    book.member("dA", role: "admin")
    #expect(
      book.authority.tips(of: Named.key("dA"))
        == [Statement.ScopeTips(scope: "", tips: [Statement.Tip(issuer: Named.key("dA"), sequence: 0, id: .zero)])])
    let first = book.grant(.read, to: .everyone, on: "*", by: "dA")
    let second = book.grant(.write, to: .everyone, on: "*", by: "dA")
    // From a restored directory.
    let branch = Statement(
      .grant(Statement.Grant(subject: .everyone, level: .none, pattern: "/t")), by: Named.key("dA"), sequence: 2,
      previous: first, id: Named.digest("branch"))
    book.statements.append(branch)
    let tips = book.authority.tips(of: Named.key("dA"))
    #expect(Set(tips.flatMap(\.tips).map(\.id)) == [second, branch.id])
    let before = book.authority.tips(of: Named.key("dA")) { $0 == first }
    #expect(before.flatMap(\.tips).map(\.id) == [first])
  }
}
