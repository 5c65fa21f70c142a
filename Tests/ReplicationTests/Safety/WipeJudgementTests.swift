import Testing

@testable import Replication

@Suite("Whether a store may be destroyed")
struct WipeJudgementTests {
  private let chain = ReplicaID(high: 0, low: 1)
  private let second = ReplicaID(high: 0, low: 2)
  private let name: PartitionName
  private let partition = PartitionID(.zero)

  init() throws { name = try PartitionName("agency=G") }

  private func device(_ number: UInt64) -> PublicKey { PublicKey(Digest(words: (number, 0, 0, 0))) }

  private func word(
    _ number: UInt64, _ reach: UInt64 = 10, standing: Receipt.Standing = .member, kind: Holdings.Kind = .received,
    age: Int64? = 1_000
  ) -> WipeWord {
    WipeWord(speaker: .other(device(number), standing), kind: kind, age: age, reaches: [chain: reach])
  }

  private func judge(
    _ words: [WipeWord], received: [ReplicaID: UInt64]? = nil, apart: UInt64 = 0,
    _ rules: WipeRules = WipeRules()
  ) -> WipeJudgement {
    WipeJudgement(
      WipeHolding(
        partition: partition, name: name, received: received ?? [chain: 10], apart: apart, words: words),
      rules)
  }

  @Test("two other devices that hold all of it, or the backend alone, let it go; one device does not")
  func enough() {
    #expect(judge([]).lost == 10)
    #expect(judge([word(1)]).lost == 10)
    #expect(judge([word(1), word(2)]).isSafe)
    #expect(judge([word(1, kind: .backend)]).isSafe)
    #expect(judge([word(1), word(2)]).evidence == [0, 1])
  }

  @Test("as many devices have to hold a change as the rules say")
  func holders() {
    var rules = WipeRules()
    rules.devices = 3
    #expect(judge([word(1), word(2)], rules).lost == 10)
    #expect(judge([word(1), word(2), word(3)], rules).isSafe)
    rules.devices = 1
    #expect(judge([word(1)], rules).isSafe)
    rules.devices = 0
    #expect(judge([], rules).lost == 10, "nobody is never enough")
  }

  @Test("two words of one device are one device")
  func oneDevice() {
    #expect(judge([word(1), word(1)]).lost == 10)
  }

  @Test("only what as many as needed hold is safe: what lies above the second lowest word would be lost")
  func parts() {
    let judgement = judge([word(1, 10), word(2, 7), word(3, 4)])
    #expect(judgement.lost == 3 && judgement.safeThrough == [chain: 7])
    let above = judge([word(1, 3), word(2, 3), word(4, 9, kind: .backend)])
    #expect(above.lost == 1 && above.safeThrough == [chain: 9])
  }

  @Test("each chain is judged by itself, and one of which nobody speaks would be lost")
  func chains() {
    let judgement = judge([word(1), word(2)], received: [chain: 10, second: 4])
    #expect(judgement.lost == 4 && judgement.safeThrough == [second: 0] && judgement.changes == 14)
  }

  @Test(
    "a word of an ended, forked or unentitled device, and this device's own, do not count",
    arguments: [
      (Receipt.Standing.ended, WipeWord.Flaw.ended), (.forked, .forked), (.unentitled, .unentitled),
      (.barred, .barred),
    ])
  func standings(standing: Receipt.Standing, flaw: WipeWord.Flaw) {
    let kind: Holdings.Kind = standing == .unentitled ? .backend : .received
    #expect(judge([word(1), word(2, standing: standing, kind: kind)]).lost == 10)
    #expect(word(2, standing: standing, kind: kind).flaw(WipeRules()) == flaw)
  }

  @Test("this device's own word does not count, whatever it says; what it has read in the ledger itself does")
  func own() {
    for kind in [Holdings.Kind.received, .backend] {
      let own = WipeWord(speaker: .own, kind: kind, age: 0, reaches: [chain: 10])
      #expect(judge([word(1), own]).lost == 10 && own.flaw(WipeRules()) == .own)
    }
    #expect(judge([WipeWord(speaker: .ownReading, kind: .backend, age: 0, reaches: [chain: 10])]).isSafe)
  }

  @Test(
    "what this device has read in the ledger itself goes before what another said of it earlier, and not before a later word"
  )
  func ownReadingFirst() {
    let day: Int64 = 86_400_000
    func own(_ reaches: [ReplicaID: UInt64], age: Int64, _ speaker: WipeWord.Speaker = .ownReading) -> WipeWord {
      WipeWord(speaker: speaker, kind: .backend, age: age, reaches: reaches)
    }
    #expect(judge([word(1, kind: .backend, age: 2 * day), own([chain: 7], age: 60_000)]).lost == 3)
    #expect(judge([word(1, kind: .backend), own([second: 7], age: 0)]).lost == 10, "of this chain nothing was there")
    #expect(
      judge([word(1, kind: .backend, age: 1_000), own([chain: 7], age: 600_000)]).lost == 3,
      "the other may have read it before his word, and by another clock")
    // What this device signed outlives its reading.
    #expect(judge([word(1, kind: .backend, age: 2 * day), own([chain: 7], age: day, .own)]).lost == 3)
    #expect(judge([word(1, kind: .backend, age: day), own([chain: 7], age: 2 * day, .own)]).isSafe)
    #expect(judge([word(1), word(2), own([:], age: 0)]).isSafe, "what devices hold they hold")
    #expect(judge([word(1, kind: .backend), own([:], age: 0)]).evidence.isEmpty)
  }

  @Test("a word older than seven days, or of an age that cannot be told, does not count")
  func ages() {
    let week: Int64 = 7 * 24 * 3_600 * 1_000
    #expect(judge([word(1, age: week), word(2, age: week)]).isSafe)
    #expect(judge([word(1, age: week), word(2, age: week + 1)]).lost == 10)
    #expect(judge([word(1, age: week), word(2, age: nil)]).lost == 10)
    #expect(judge([word(1, kind: .backend, age: week + 1)]).lost == 10)
    #expect(word(1, age: nil).flaw(WipeRules()) == .clock && word(1, age: week + 1).flaw(WipeRules()) == .old)
    var rules = WipeRules()
    rules.milliseconds = 1_000
    #expect(judge([word(1), word(2, age: 1_001)], rules).lost == 10)
  }

  @Test("what lies on a branch that was not chosen would be lost, whoever holds the rest")
  func apart() {
    let judgement = judge([word(1), word(2), word(3, kind: .backend)], apart: 2)
    #expect(judgement.lost == 2 && judgement.lostApart == 2 && judgement.changes == 12)
  }

  @Test("a word of what counts alone says nothing of bytes that are held")
  func kinds() {
    #expect(judge([word(1), word(2, kind: .accepted)]).lost == 10)
  }
}
