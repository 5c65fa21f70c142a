import Synchronization
import Testing

@testable import Replication
@testable import Simulation

/// Statements of rooms come one by one, in any order, behind those of the fleet.
@Suite("Rights: more statements of rooms") struct AuthorityRoomTests {
  /// How often the declarations of replicas were looked at.
  private final class Looks: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    func certificate(_ declaration: Statement.ReplicaDeclaration, _ issuer: PublicKey) -> Bool {
      count.add(1, ordering: .relaxed)
      return Named.certificate(declaration, issuer)
    }
  }

  @Test("each gives the set, levels, limits, floors and refusals that all of them at once give", arguments: 0..<4)
  func oneByOne(part: Int) throws {
    var taken = (apart: 0, anew: 0)
    for seed in UInt64(part) * 60..<UInt64(part) * 60 + 60 {
      let (history, looks) = (RightsHistory(seed: seed), Looks())
      var random = ChainsRandom(seed: seed ^ 0x700)
      let fleet = history.statements.filter(\.isOfFleet)
      var waiting = history.statements.filter { !$0.isOfFleet }.shuffled(using: &random)
      var authority = Authority(
        root: Named.root, statements: fleet, limit: history.limit, certificate: looks.certificate)
      let perBuild = looks.value
      // What nothing leads to yet is said again later.
      while let next = waiting.firstIndex(where: { authority.adding([$0]).holds($0.id) }) {
        let (statement, before) = (waiting.remove(at: next), looks.value)
        let held = Array(authority.allStatements) + [statement]
        authority = authority.adding([statement])
        if perBuild > 0, looks.value == before { taken.apart += 1 } else { taken.anew += 1 }
        let naive = NaiveRights(named: held, limit: history.limit)
        if let difference = try naive.difference(authority, history) {
          Issue.record("seed \(seed): \(difference)")
          return
        }
      }
    }
    // Both ways are gone.
    #expect(taken.apart > 50 && taken.anew > 20, "\(taken)")
  }

  /// Signs in one room, each statement behind the one before.
  private func line(_ bodies: [Statement.Body], by issuer: String) -> [Statement] {
    var said: [Statement] = []
    let scope = PartitionName.room(createdBy: Digest(words: (8, 0, 0, 1)))
    for body in bodies {
      let number = UInt64(said.count + 1)
      said.append(
        Statement(
          body, by: Named.key(issuer), sequence: number, previous: said.last?.id, id: Digest(words: (8, 0, 0, number)),
          scope: scope))
    }
    return said
  }

  @Test("what an end lists of a room stands with all that it goes on from, also where that comes after the end")
  func listedBefore() throws {
    var book = AuthorityTests.Book()
    book.say(.genesis(Statement.Genesis(fleetName: "fleet")))
    book.say(.rule(Statement.Rule(key: "conversation")))
    let membership = book.member("d0")
    let guest = book.member("d1")
    book.declare("d0.1", under: membership, by: "d0")
    let declared = try #require(book.statements.last)
    let invitations = ["u-d1", "u-d2"].map {
      Statement.Body.invitation(Statement.Invitation(by: membership, user: Text($0), seen: []))
    }
    let said = line([.room(Statement.Room(by: membership))] + invitations, by: "d0")
    let last = try #require(said.last)
    func tip(_ statement: Statement) -> Statement.Tip {
      Statement.Tip(issuer: statement.issuer, sequence: statement.sequence, id: statement.id)
    }
    let listing = Statement.Listing(tips: [
      Statement.ScopeTips(scope: "", tips: [tip(declared)]), Statement.ScopeTips(scope: last.scope, tips: [tip(last)]),
    ])
    book.say(.end(Statement.End(reason: .compromised, target: .membership(membership), listing: listing)))
    var authority = book.authority
    for statement in said { authority = authority.adding([statement]) }
    #expect(authority.level(of: guest, in: try PartitionName(last.scope)) == .write)
  }

  @Test("of a thousand rooms each costs what is in it: nothing of the fleet is read anew")
  func cost() {
    let looks = Looks()
    var book = AuthorityTests.Book()
    book.say(.genesis(Statement.Genesis(fleetName: "fleet")))
    book.say(.rule(Statement.Rule(key: "conversation")))
    let membership = book.member("d0")
    book.declare("d0.1", under: membership, by: "d0")
    var authority = Authority(root: Named.root, statements: book.statements, certificate: looks.certificate)
    let before = looks.value
    #expect(before > 0)
    for number in 0..<1_000 as Range<UInt64> {
      let id = Digest(words: (7, 0, 0, number))
      let room = Statement(
        .room(Statement.Room(by: membership)), by: Named.key("d0"), sequence: 1, previous: nil, id: id,
        scope: PartitionName.room(createdBy: id))
      authority = authority.adding([room])
      #expect(authority.rooms[room.scope]?.creator == "u-d0")
    }
    #expect(authority.count == book.statements.count + 1_000)
    #expect(looks.value == before)
  }
}
