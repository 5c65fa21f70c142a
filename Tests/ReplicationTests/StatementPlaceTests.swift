import TestSupport
import Testing

@testable import Replication

@Suite("Statements that cannot come into a set")
struct StatementPlaceTests {
  private static let limit = 8

  /// Of a member, each going on from an earlier one or from none.
  private func flood(_ count: Int, in scope: Text, _ random: inout SplitMix64) -> [Statement] {
    var said: [Statement] = []
    for index in 0..<count {
      let previous = Int.random(in: 0..<100, using: &random) < 10 ? nil : said.randomElement(using: &random)
      let id = Digest(words: (.random(in: 0...9, using: &random), UInt64(index), 7, 7))
      let body = Statement.Body.grant(Statement.Grant(subject: .everyone, level: .read, pattern: "x"))
      said.append(
        Statement(
          body, by: Named.key("d0"), sequence: (previous?.sequence ?? 0) + 1, previous: previous?.id, id: id,
          scope: scope))
    }
    return said
  }

  private func fleet(role: Text = "officer") -> [Statement] {
    var book = AuthorityTests.Book()
    book.say(.genesis(Statement.Genesis(fleetName: "fleet")))
    book.member("d0", role: role)
    return book.statements
  }

  private func place(_ statement: Statement) -> StatementPlace {
    StatementPlace(
      issuer: statement.issuer, scope: statement.scope, sequence: statement.sequence, id: statement.id)
  }

  @Test(
    "what is left out does not come in whatever else comes, and of what is known all that was pushed out is",
    arguments: 0..<200 as Range<UInt64>)
  func flooded(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let said = flood(30, in: "", &random)
    let all = Authority(named: fleet() + said, limit: Self.limit)
    let pushedOut = said.filter { !all.holds($0.id) }
    #expect(all.leavesOut(pushedOut.map(place)) == Set(pushedOut.map(\.id)))

    let some = Authority(named: fleet() + said.filter { _ in Bool.random(using: &random) }, limit: Self.limit)
    let elsewhere = said.filter { !some.holds($0.id) }
    let leftOut = some.leavesOut(elsewhere.map(place))
    #expect(elsewhere.filter { all.holds($0.id) && leftOut.contains($0.id) }.isEmpty)
    for statement in said where leftOut.contains(statement.id) {
      #expect(!some.adding(elsewhere.filter { _ in Bool.random(using: &random) } + [statement]).holds(statement.id))
    }
  }

  @Test("of an admin, of another member and of a room nothing is left out")
  func others() {
    var random = SplitMix64(seed: 1)
    let said = flood(30, in: "", &random)
    let room = PartitionName.room(createdBy: .zero)
    let full = Authority(named: fleet() + said + flood(30, in: room, &random), limit: Self.limit)
    let late = Digest(words: (99, 0, 0, 0))
    func isLeftOut(_ issuer: String, in scope: Text, by authority: Authority) -> Bool {
      let place = StatementPlace(issuer: Named.key(issuer), scope: scope, sequence: 99, id: late)
      return authority.leavesOut([place]).contains(late)
    }
    #expect(isLeftOut("d0", in: "", by: full))
    #expect(!isLeftOut("d1", in: "", by: full) && !isLeftOut("d0", in: room, by: full))
    #expect(!isLeftOut("d0", in: "", by: Authority(named: fleet(role: "admin") + said, limit: Self.limit)))
  }

  @Test("what an admin's end names is not in the set without it, so that the end itself is lacking")
  func namedByAnEnd() throws {
    let body = Statement.Body.grant(Statement.Grant(subject: .everyone, level: .read, pattern: "x"))
    func line(_ count: Int, _ branch: UInt64, of issuer: String) -> [Statement] {
      (0..<count).reduce(into: []) { said, index in
        said.append(
          Statement(body, by: Named.key(issuer), after: said, id: Digest(words: (branch, UInt64(index), 7, 7))))
      }
    }
    let (early, late) = (line(10, 9, of: "d0"), line(12, 1, of: "d0"))
    let named = try #require(early.last)
    var book = AuthorityTests.Book()
    book.statements = fleet()
    let tip = Statement.Tip(issuer: Named.key("d0"), sequence: named.sequence, id: named.id)
    let listing = Statement.Listing(tips: [Statement.ScopeTips(scope: "", tips: [tip])])
    let end = book.grant(.none, to: .everyone, on: "x", listing: listing)
    let without = Authority(named: book.statements + late, limit: Self.limit)
    #expect(!without.holds(end) && without.leavesOut([place(named)]) == [named.id])
    let with = without.adding(book.statements + early)
    #expect(with.holds(end) && with.holds(named.id))
  }

  @Test("who used up bytes has no room behind them, and who used up some has")
  func bytes() throws {
    var said: [Statement] = []
    for index in 0..<3 {
      let body = Statement.Body.grant(Statement.Grant(subject: .everyone, level: .read, pattern: "x"))
      said.append(
        Statement(
          fleet: FleetID(.zero), issuer: Named.key("d0"), sequence: UInt64(index + 1), previous: said.last?.id,
          scope: "",
          body: body, signature: Signature(first: .zero, second: .zero),
          id: Digest(words: (UInt64(index + 1), 0, 7, 7)),
          encoded: Array(repeating: 0, count: 3 << 20)))
    }
    let last = try #require(said.last.map(place))
    #expect(Authority(named: fleet() + said.prefix(1)).leavesOut([last]).isEmpty)
    let full = Authority(named: fleet() + said.prefix(2))
    #expect(full.leavesOut([last]) == [last.id] && !Authority(named: fleet() + said).holds(last.id))
  }
}
