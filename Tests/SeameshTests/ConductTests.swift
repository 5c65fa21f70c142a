import Identity
import Replication
import Testing

@testable import Engine
@testable import Seamesh

/// What `doctor` says of members who take too much or break rules.
@Suite struct ConductTests {
  private final class Clock: EngineClock {
    var now = MonotonicTime(milliseconds: 5)
    var wallMilliseconds: Int64 { 7 }
  }

  @Test("the same again from the same device is told once a minute, with how often it was; anything else is told apart")
  func onceAMinute() {
    let (clock, device) = (Clock(), DeviceID(SigningKey().publicKey))
    var (book, told) = (ConductBook(), [Int]())
    // Ten times a second for five minutes.
    for _ in 0..<3_000 {
      if let times = book.note(.device(device, user: "ann"), "a run that nobody may send", clock) { told.append(times) }
      clock.now = clock.now.advanced(byMilliseconds: 100)
    }
    #expect(told == [1, 600, 600, 600, 600])
    #expect(book.entries.map(\.count) == [3_000])
    #expect(book.note(.device(device, user: "ann"), "no message", clock) == 1)
    #expect(book.note(.address("10.0.0.9"), "a run that nobody may send", clock) == 1)
  }

  @Test("a device that broke a rule is named with its user, the place and how often; a stranger is not")
  func rules() throws {
    let device = DeviceID(SigningKey().publicKey)
    let place = BrokenRule.Place(
      partition: try PartitionName("agency=x"), replica: ReplicaID(high: 1, low: 2), sequence: 9)
    var book = ConductBook()
    for _ in 0..<3 { _ = book.note(.device(device, user: "ann"), "a run that nobody may send", at: place, Clock()) }
    _ = book.note(.address("10.0.0.9"), "no message", Clock())
    let findings = book.entries.compactMap(Doctor.finding)
    let message = try #require(findings.first?.message)
    #expect(findings.map(\.code) == ["rule-broken"])
    for part in [device.shortText, "ann", "3 times", "agency=x", "change 9", ReplicaID(high: 1, low: 2).text] {
      #expect(message.contains(part), "\(message)")
    }
  }

  @Test("who has used up half of what a device may say is named with the figures")
  func spender() throws {
    let spender = Spender(
      name: "tablet", device: "0123abcd", statements: 700, statementBytes: 3 << 20, replicas: 650,
      take: DeviceTake(partitions: 12, chains: 31, heldChanges: 77, leftOutRuns: 5))
    let finding = try #require(Doctor.findings([spender]).first)
    #expect(finding.level == .problem && finding.code == "allowance-spent")
    for part in [
      "tablet", "0123abcd", "700 of 1024", "3072 of 4096 KiB", "650", "12 of 4096 partitions", "31 of 16384",
      "77 of 65536", "5 runs",
    ] {
      #expect(finding.message.contains(part), "\(finding.message)")
    }
  }
}
