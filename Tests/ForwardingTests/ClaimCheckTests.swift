import Replication
import Testing

@testable import Forwarding

@Suite("Whether claimed edits are still to be done") struct ClaimCheckTests {
  private let chain = ForwarderModel.chain(1)
  private let other = ForwarderModel.chain(2)

  private func edit(_ number: UInt64) -> OfficeEdit {
    OfficeEdit(
      id: UUIDValue(high: 1, low: number), partition: "p", collection: "c", documentID: "1", read: nil, body: "{}",
      user: "u", madeMilliseconds: 0)
  }

  private func known(_ reaches: [ChainKey: UInt64]) -> LedgerView {
    var view = LedgerView()
    view.highest = reaches
    return view
  }

  private func check(_ claims: SaidClaims, chains most: Int = 100) -> ClaimCheck {
    var limits = ForwarderLimits()
    limits.questionChains = most
    return ClaimCheck(claims, limits)
  }

  @Test("a ledger that has less of a chain than is known leaves a gap, and only where it is asked about")
  func gap() throws {
    let claims = SaidClaims(reaching: [chain: 2], standing: [[edit(1).id]])
    let elsewhere = PartitionID(Digest(words: (9, 9, 9, 9)))
    #expect(try check(claims).standing([edit(1)], known([chain: 2]), in: [chain.partition]) == [edit(1).id])
    #expect(try check(claims).standing([edit(1)], known([chain: 3]), in: [elsewhere]) == [edit(1).id])
    #expect(throws: BackendProblem(.gap, "the ledger lacks changes that it had")) {
      try check(claims).standing([edit(1)], known([chain: 3]), in: [chain.partition])
    }
  }

  @Test("an edit stands where each answer says so: between two of them the ledger may have been filled")
  func filledMeanwhile() throws {
    let (one, two) = (edit(1), edit(2))
    let claims = SaidClaims(reaching: [chain: 2, other: 5], standing: [[one.id, two.id], [two.id]])
    let standing = try check(claims, chains: 1).standing(
      [one, two], known([chain: 2, other: 5]), in: [chain.partition, other.partition])
    #expect(standing == [two.id])
    #expect(claims.asked == [[one.id, two.id], [one.id, two.id]], "all of them each time")
  }

  @Test("where nothing is known of the partition it is asked all the same") func empty() throws {
    let claims = SaidClaims(reaching: [:], standing: [[]])
    #expect(try check(claims).standing([edit(1)], known([:]), in: [chain.partition]).isEmpty)
    #expect(claims.asked.count == 1)
  }
}

/// A ledger that goes so far, and says of claims what it is told to say, question by question.
///
/// `@unchecked Sendable`: a test has one thread.
private final class SaidClaims: EditStore, @unchecked Sendable {
  private let reaches: [ChainKey: UInt64]
  private let answers: [Set<UUIDValue>]
  private(set) var asked: [[UUIDValue]] = []

  init(reaching reaches: [ChainKey: UInt64], standing answers: [Set<UUIDValue>]) {
    (self.reaches, self.answers) = (reaches, answers)
  }

  func confirm(_ edits: [UUIDValue], reaching chains: [ChainReach]) -> ClaimAnswer {
    asked.append(edits)
    return ClaimAnswer(
      hasChains: chains.allSatisfy { reaches[$0.chain, default: 0] >= $0.sequence },
      standing: answers[min(asked.count, answers.count) - 1])
  }

  func claimEdits(most: Int, of patterns: [Text]?) -> [OfficeEdit] { [] }
  func settle(_ outcomes: [(edit: UUIDValue, outcome: EditOutcome)]) {}
}
