import Replication
import TestSupport
import Testing

@testable import Forwarding

@Suite("Whose position of documents is believed")
struct KeptPositionTests {
  private func resumed(_ kept: String, by process: String = "a", remembered: (String, String)? = nil) -> String {
    var progress = DocumentProgress()
    progress.begin(at: kept)
    progress.resume(as: process, remembered.map { LedgerMemory(ledger: "l", position: $0.0, writer: $0.1) })
    return progress.position
  }

  @Test("a process believes its own") func own() {
    #expect(resumed("0.7.2@a") == "0.7.2")
    #expect(resumed("0.7.2@a", remembered: ("0.5.2", "b")) == "0.7.2")
  }

  @Test("of an earlier process of its directory it believes as much as the directory remembers, and as is there")
  func earlier() {
    #expect(resumed("0.7.2@b", remembered: ("0.7.2", "b")) == "0.7.2")
    #expect(resumed("0.9.3@b", remembered: ("0.7.2", "b")) == "0.7.2", "a copy of the directory may have sent the rest")
    #expect(resumed("0.5.1@b", remembered: ("0.7.2", "b")) == "0.5.1", "the backend was put back")
    #expect(resumed("0.9.1@b", remembered: ("0.7.2", "b")).isEmpty)
    #expect(resumed("1.7.2@b", remembered: ("0.7.2", "b")).isEmpty)
  }

  @Test("it believes nobody else's", arguments: ["", "0.7.2", "@a", "0.7.2@", "0.7.2@b", "0.7.2@a@a"])
  func others(kept: String) {
    #expect(resumed(kept).isEmpty)
    #expect(resumed(kept, remembered: ("0.7.2", "c")).isEmpty)
  }

  @Test(
    "what is remembered names nobody whose position it did not go on from, or the next reading would believe that one")
  func vouching() {
    func keptBy(_ memory: LedgerMemory?) -> String {
      var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
      let now = MonotonicTime(milliseconds: 1)
      var start = DocumentStart()
      start.position = "0.7.2@b"
      var reading = Forwarder.LedgerReading(view: LedgerView(), runsAfter: 0, accepted: [:], held: LogAmount())
      reading.documents = DocumentProgress(start)
      reading.documents.resume(as: "a", memory)
      for event in [Forwarder.Event.start, .connected, .ledgerRead(reading)] {
        _ = forwarder.handle(event, now: now, random: &random)
      }
      return forwarder.keptBy
    }
    #expect(keptBy(nil) == "-")
    #expect(keptBy(LedgerMemory(ledger: "l", position: "0.9.2", writer: "c")) == "-")
    #expect(keptBy(LedgerMemory(ledger: "l", position: "0.9.2", writer: "b")) == "b")
  }

  @Test("what it writes down goes on from what is kept") func writes() {
    #expect(KeptPosition("0.7.2", by: "a").text == "0.7.2@a")
    #expect(KeptPosition(text: "0.7.2@a") == KeptPosition("0.7.2", by: "a"))
  }
}
