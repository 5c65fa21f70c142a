import Testing
import Wire

/// What is told of who breaks rules.
@Suite struct RuleBreachTests {
  /// The same rule, broken by whatever numbers a sender chooses.
  private static func breaches(_ number: Int) -> [any RuleBreach] {
    let change = UInt64(number)
    let payload = PayloadError(.documentCount(number, limit: 7), at: number)
    return [
      CBORError(.truncated, at: number), RunError.encoding(CBORError(.tooDeep, at: number)),
      RunError.tooLong(byteCount: number, limit: 7), RunError.changeCount(number, limit: 7),
      RunError.payloadByteCount(number, limit: 7), RunError.payloadPlace(change: change),
      RunError.options(offset: number), RunError.malformed(change: change, reason: payload),
      RunError.payloadMismatch(change: change), RunError.sequence, RunError.contextDigest, RunError.signature,
    ]
  }

  @Test("one rule has one sentence, whatever numbers it is broken by, and each has its own")
  func oneSentence() {
    let rules = RuleBreachTests.breaches(1_001).map(\.rule)
    #expect(rules == RuleBreachTests.breaches(2_002).map(\.rule))
    #expect(Set(rules).count == rules.count)
  }
}
