import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@testable import SeameshCommand

@Suite("The verb that says whether a device may be wiped", .enabled(if: isCommandBuilt), .serialized)
struct WipeVerbTests {
  private func report(isSafe: Bool) -> WipeReport {
    var report = WipeReport()
    (report.isSafe, report.changes, report.partitions) = (isSafe, 7, 2)
    var (boat, lost) = (WipeReport.Witness(), WipeReport.Witness())
    (boat.device, boat.label, boat.role, boat.partitions, boat.ageMilliseconds) = ("00ff", "boat", "relay", 2, 61_000)
    (lost.device, lost.label, lost.partitions, lost.flaw) = ("00aa", "old tablet", 1, "old")
    (report.evidence, report.uncounted) = ([boat], [lost])
    guard !isSafe else { return report }
    var loss = WipeReport.Loss()
    (loss.partition, loss.changes, loss.reachable) = ("agency=G", 3, ["boat"])
    loss.documents = [WipeReport.Document(collection: "reports", id: .string("r1"))]
    (loss.holders, loss.hindrances) = (["tablet"], ["office has to subscribe"])
    (report.losses, report.lostChanges, report.lostPartitions, report.nowhereChanges) = ([loss], 3, 2, 1)
    report.asideFiles = [WipeReport.AsideFile(path: "/d/import-aside-1.jsonl", records: 4)]
    return report
  }

  @Test("yes is status 0 with the evidence and its age")
  func yes() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    node.show(wipe: report(isSafe: true))
    let result = try server.run(["safe-to-wipe", "--ask"])
    #expect(result.status == 0 && result.output.hasPrefix("yes  7 changes here in 2 partitions"), "\(result)")
    #expect(result.output.contains("boat") && result.output.contains("1 min 1 s"))
    #expect(node.lastWipe?.asking == true && node.lastWipe?.rules == WipeRules())
  }

  @Test("no is status 1 with what would be lost, who could take it, and one sentence")
  func no() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    node.show(wipe: report(isSafe: false))
    let result = try server.run(["safe-to-wipe", "--holders=3", "--heard-within=24h"])
    #expect(result.status == 1 && result.output.hasPrefix("no"))
    for line in [
      "not safe: 3 changes of agency=G", "reports \"r1\"", "has it already: tablet", "in reach: boat",
      "office has to subscribe", "1 other partition",
      "records put aside: 4 in /d/import-aside-1.jsonl; mend them there, import that file", "too old: not counted",
    ] { #expect(result.output.contains(line), "\(line): \(result.output)") }
    #expect(
      result.error
        == "seamesh: this device is not safe to wipe: of its changes are 3 not known to be in the backend or on 2 other "
        + "devices, 1 not known to be anywhere else\n")
    #expect(node.lastWipe?.asking == false && node.lastWipe?.rules.devices == 3)
    #expect(node.lastWipe?.rules.milliseconds == 86_400_000)
    let machine = try server.run(["safe-to-wipe", "--json"])
    #expect(machine.status == 1 && machine.output.contains("\"safe\":false"))
    for wrong in ["--holders=0", "--holders=x", "--heard-within=7", "--timeout=5s"] {
      #expect(try server.run(["safe-to-wipe", wrong]).status == 2, "\(wrong)")
    }
  }

  @Test("--send has the forwarder try, and asks until the time is over")
  func send() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    node.show(wipe: report(isSafe: false))
    let result = try server.run(["safe-to-wipe", "--send", "--timeout=1s"])
    #expect(result.status == 1 && node.sendsAsked == 1 && node.lastWipe?.asking == true)
  }
}
