import Replication
import Testing

@testable import Forwarding

@Suite("When edits are brought home") struct HomeBoundCoreTests {
  private func edit(_ number: UInt64) -> OfficeEdit {
    OfficeEdit(
      id: UUIDValue(high: 1, low: number), partition: "p", collection: "c", documentID: "1", read: nil, body: "{}",
      user: "u",
      madeMilliseconds: 0)
  }

  private func at(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(milliseconds: milliseconds) }

  private func settlement(_ number: UInt64, _ outcome: EditOutcome) -> HomeBound.Settlement {
    HomeBound.Settlement(edit: UUIDValue(high: 1, low: number), outcome: outcome)
  }

  /// What is done where the ledger has what it had.
  private func written(_ home: inout HomeBound, _ edits: [OfficeEdit]) -> [HomeBound.Directive] {
    home.claimed(edits).isEmpty ? [] : home.confirmed(Set(edits.map(\.id)))
  }

  @Test("what is written and not yet in the ledger is not written again") func once() {
    var home = HomeBound()
    #expect(home.look(at(0)) == [.claim(most: HomeBound.claimLimit)])
    #expect(home.claimed([edit(1), edit(2)]) == [.confirm([edit(1), edit(2)])])
    let latest = at(HomeBound.writeMilliseconds)
    #expect(home.confirmed([edit(1).id, edit(2).id]) == [.write([edit(1), edit(2)], by: latest)])
    #expect(
      home.wrote([settlement(1, .written), settlement(2, .unchanged)], at(2)) == [.settle([settlement(2, .unchanged)])])
    #expect(home.look(at(2)) == [.claim(most: HomeBound.claimLimit)], "there may be more")
    #expect(
      written(&home, [edit(1), edit(3)]) == [
        .write([edit(3)], by: at(2).advanced(byMilliseconds: HomeBound.writeMilliseconds))
      ])
    #expect(home.counts.written == 1)
  }

  @Test("what the ledger had and lost is not written again: its change is here") func again() {
    var home = HomeBound()
    _ = written(&home, [edit(1)])
    _ = home.wrote([settlement(1, .written)], at(0))
    #expect(home.claimed([]).isEmpty)
    #expect(home.claimed([edit(1)]).isEmpty)
  }

  @Test("nothing is written where the ledger is not known to have what it had") func unchecked() {
    var home = HomeBound()
    #expect(home.claimed([edit(1), edit(2)]) == [.confirm([edit(1), edit(2)])])
    #expect(home.claimed([edit(2)]) == [.confirm([edit(2)])], "the ledger is filled, and tells anew")
    #expect(home.confirmed([edit(1).id, edit(2).id]) == [.write([edit(2)], by: at(0))])
    #expect(home.confirmed([edit(2).id]).isEmpty)
  }

  @Test("what the ledger does not confirm is not written: somebody filled it meanwhile") func filledMeanwhile() {
    var home = HomeBound()
    #expect(home.claimed([edit(1), edit(2)]) == [.confirm([edit(1), edit(2)])])
    #expect(home.confirmed([edit(2).id]) == [.write([edit(2)], by: at(0))])
    #expect(home.claimed([edit(1)]) == [.confirm([edit(1)])])
    #expect(home.confirmed([]).isEmpty)
  }

  @Test("the latest that were written are remembered, and no more than a limit") func limit() {
    var home = HomeBound()
    for number in 0..<UInt64(HomeBound.writtenLimit) { _ = home.wrote([settlement(number, .written)], at(0)) }
    #expect(home.claimed([edit(0)]).isEmpty)
    for number in 0..<UInt64(HomeBound.writtenLimit) / 2 {
      _ = home.wrote([settlement(number + 100_000, .written)], at(2))
    }
    #expect(home.claimed([edit(100_000)]).isEmpty)
    #expect(!home.claimed([edit(0)]).isEmpty)
  }

  @Test("it is looked no more often than every two seconds, and every minute where it may not") func pace() {
    var home = HomeBound()
    _ = home.look(at(0))
    #expect(home.look(at(HomeBound.lookMilliseconds - 1)).isEmpty)
    #expect(!home.look(at(HomeBound.lookMilliseconds)).isEmpty)
    home.refused(BackendProblem(.schema, "no"), at(5_000))
    #expect(home.nextLook == at(5_000 + HomeBound.refusedMilliseconds) && home.problem?.sentence == "no")
    #expect(home.claimed([]).isEmpty && home.problem == nil)
  }

  @Test("what cannot be done now is left to others, and looked at later") func left() {
    var home = HomeBound()
    _ = home.look(at(0))
    _ = home.claimed([edit(1)])
    #expect(home.wrote([settlement(1, .left("later"))], at(2)) == [.settle([settlement(1, .left("later"))])])
    #expect(home.look(at(3)).isEmpty)
  }
}
