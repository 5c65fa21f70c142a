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

  @Test("what is written and not yet in the ledger is not written again") func once() {
    var home = HomeBound()
    #expect(home.look(at(0)) == [.claim(most: HomeBound.claimLimit)])
    #expect(home.claimed([edit(1), edit(2)], at(1)) == [.write([edit(1), edit(2)])])
    #expect(
      home.wrote([settlement(1, .written), settlement(2, .unchanged)], at(2)) == [.settle([settlement(2, .unchanged)])])
    #expect(home.look(at(2)) == [.claim(most: HomeBound.claimLimit)], "there may be more")
    #expect(home.claimed([edit(1), edit(3)], at(3)) == [.write([edit(3)])])
    #expect(home.counts.written == 1)
  }

  @Test("what the ledger had and lost is written again") func again() {
    var home = HomeBound()
    _ = home.claimed([edit(1)], at(0))
    _ = home.wrote([settlement(1, .written)], at(0))
    #expect(home.claimed([], at(1)).isEmpty)
    #expect(home.claimed([edit(1)], at(2)) == [.write([edit(1)])])
  }

  @Test("what is written is not forgotten where a claim is full of others, and is where it tells of all there are")
  func full() {
    var home = HomeBound()
    let first = (0..<UInt64(HomeBound.claimLimit)).map(edit)
    let others = (0..<UInt64(HomeBound.claimLimit)).map { edit($0 + 1_000) }
    #expect(home.claimed(first, at(0)) == [.write(first)])
    _ = home.wrote(first.map { HomeBound.Settlement(edit: $0.id, outcome: .written) }, at(0))
    #expect(home.claimed(others, at(1)) == [.write(others)])
    #expect(home.claimed(first, at(2)).isEmpty)
    #expect(home.claimed([edit(5)], at(3)).isEmpty)
    #expect(home.claimed([edit(5), edit(6)], at(4)) == [.write([edit(6)])], "a whole claim had lost it")
  }

  @Test("it is looked no more often than every two seconds, and every minute where it may not") func pace() {
    var home = HomeBound()
    _ = home.look(at(0))
    #expect(home.look(at(HomeBound.lookMilliseconds - 1)).isEmpty)
    #expect(!home.look(at(HomeBound.lookMilliseconds)).isEmpty)
    home.refused(BackendProblem(.schema, "no"), at(5_000))
    #expect(home.nextLook == at(5_000 + HomeBound.refusedMilliseconds) && home.problem?.sentence == "no")
    #expect(home.claimed([], at(70_000)).isEmpty && home.problem == nil)
  }

  @Test("what cannot be done now is left to others, and looked at later") func left() {
    var home = HomeBound()
    _ = home.look(at(0))
    _ = home.claimed([edit(1)], at(1))
    #expect(home.wrote([settlement(1, .left("later"))], at(2)) == [.settle([settlement(1, .left("later"))])])
    #expect(home.look(at(3)).isEmpty)
  }
}
