import Foundation
import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import TestSupport
import Testing

@testable import SeameshCommand

@Suite("The verb of receipts", .enabled(if: isCommandBuilt), .serialized)
struct ReceiptVerbTests {
  private func word(_ label: String, lacking: UInt64 = 0, role: String = "officer") -> ReceiptReport.Word {
    var word = ReceiptReport.Word()
    (word.device, word.label, word.user, word.role) = ("00ff", label, "u", role)
    (word.lacking, word.standing, word.ageMilliseconds) = (lacking, .member, 61_000)
    return word
  }

  @Test("each rung is shown with who reached it and how old the word is")
  func rungs() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    let partition = try PartitionName("p")
    _ = try node.write(partition, [DocumentRequest(collection: "c", id: .string("a"), action: .put(body: ValueMap()))])
    let empty = try server.run(["receipts", "p", "c", "a"])
    #expect(
      empty.output.contains("0 other devices\n") && empty.output.contains("--ask asks those in reach"), "\(empty)")
    var report = ReceiptReport()
    var (ended, backend) = (word("old"), word("office"))
    (ended.standing, backend.isOfBackend) = (.ended, true)
    report.words = [word("bridge"), word("harbour", role: "relay"), word("tablet", lacking: 1), ended, backend]
    node.show(receipts: report)
    for arguments in [["p", "c", "a"], ["p"]] {
      let result = try server.run(["receipts"] + arguments)
      for line in [
        "peers    2 other devices, newest word 1 min 1 s ago", "relay    1 relay, newest word 1 min 1 s ago",
        "backend  yes, newest word 1 min 1 s ago", "photos   not yet built", "lacks 1 change", "ended: not counted",
        "backend: all of it",
      ] { #expect(result.output.contains(line), "\(line): \(result.output)") }
      #expect(!node.hasAskedForReceipts)
    }
    _ = try server.run(["receipts", "p", "--ask", "--json"])
    #expect(node.hasAskedForReceipts)
  }

  @Test("--watch shows each receipt as the node tells it, with --json each on a line, until the node stops")
  func watching() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    for isJSON in [false, true] {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: commandPath)
      process.arguments = ["receipts", "p", "--watch", "--data=\(server.directory)"] + (isJSON ? ["--json"] : [])
      let output = server.directory + "/receipts.out"
      #expect(FileManager.default.createFile(atPath: output, contents: nil))
      process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
      process.standardError = FileHandle.nullDevice
      try process.run()
      func shows(_ text: String, times: Int) -> Bool {
        let shown = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
        return shown.components(separatedBy: text).count == times + 1
      }
      #expect(waitUntil { shows(isJSON ? "\"peers\":0" : "0 other devices", times: 1) })
      var report = ReceiptReport()
      report.words = [word("bridge")]
      node.receiptWatches.last?.push(report)
      #expect(waitUntil { shows(isJSON ? "\"peers\":1" : "1 other device, newest word", times: 1) })
      if isJSON {
        server.server.stop()
      } else {
        node.receiptWatches.last?.fail(NodeError(.notPermitted, "not any more"))
      }
      process.waitUntilExit()
      #expect(process.terminationStatus == (isJSON ? 5 : 4))
    }
  }

  @Test("a collection without an id is a mistake of usage, a document that is not there is not found")
  func mistakes() throws {
    let server = try TestedServer(FakeNode())
    let half = try server.run(["receipts", "p", "c"])
    #expect(half.status == 2 && half.error.contains("COLLECTION and ID"))
    #expect(try server.run(["receipts", "p", "c", "none"]).status == 3)
  }
}
