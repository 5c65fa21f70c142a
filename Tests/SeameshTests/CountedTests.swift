import Testing

@testable import Engine
@testable import Seamesh

@Suite("Numbers in sentences")
struct CountedTests {
  @Test("what is counted stands in the number that goes with it")
  func counting() {
    #expect(
      counted(0, "change") == "0 changes" && counted(1, "change") == "1 change" && counted(2, "change") == "2 changes")
    #expect(
      counted(1, "entry is", "entries are") == "1 entry is" && counted(3, "entry is", "entries are") == "3 entries are")
  }

  @Test("doctor says of an ended device what is held, one change as one, and nothing of what is not there")
  func endedDevice() throws {
    func finding(_ own: Int64) throws -> DoctorFinding {
      var work = HeldWork()
      (work.ownEnd, work.own) = ("the end of bridge", own)
      return try #require(Doctor.findings(work).first)
    }
    #expect(try finding(2).message.hasSuffix("by the end of bridge; 2 changes of its own are held."))
    #expect(try finding(1).message.hasSuffix("by the end of bridge; 1 change of its own is held."))
    let none = try finding(0)
    #expect(none.message.hasSuffix("any more, by the end of bridge.") && !none.remedy.contains("raise"), "\(none)")
  }

  @Test("doctor says of one run, one change and one document at the backend what it says of several, as of one")
  func oneOfEach() {
    #expect(
      Doctor.findings(damagedRuns: 1, mended: 0).first?.message.contains("1 run of this device's log is not as it was")
        == true)
    #expect(
      Doctor.findings(damagedRuns: 0, mended: 1).first?.message.contains("1 run of the log was not as it was") == true)
    var status = ForwardingStatus()
    (status.state, status.lagChanges, status.lostChanges, status.deadLetters) = (.lagging, 1, 1, 1)
    let messages = Doctor.findings(status).map(\.message).joined(separator: "\n")
    for words in ["lacks 1 change.", "lacked 1 change that", "holds 1 document without its content"] {
      #expect(messages.contains(words), "\(messages)")
    }
    #expect(LevelSentences.list((1...11).map { "n\($0)" }).hasSuffix("n10 and 1 other"))
  }
}
