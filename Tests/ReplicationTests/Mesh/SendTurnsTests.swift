import Testing

@testable import Replication

@Suite("Whose turn it is to send") struct SendTurnsTests {
  private func partition(_ number: UInt64) -> PartitionID { PartitionID(Digest(words: (number, 0, 0, 0))) }

  @Test("a partition that waits for a payload's place has its turn though those before it need none any more")
  func crowded() {
    var turns = SendTurns()
    for number in [UInt64(1), 2] { turns.putPayload(partition(number)) }
    for number in [UInt64(3), 4, 5] { turns.putCrowded(partition(number)) }
    var taken: [SendTurns.Turn] = []
    while let turn = turns.take() {
      taken.append(turn)
      // A payload is through with one piece; what is read has nothing to say.
      if case .piece = turn { turns.endPayload() }
    }
    #expect(turns.isEmpty)
    #expect([UInt64(3), 4, 5].allSatisfy { taken.contains(.read(partition($0))) })
  }
}
