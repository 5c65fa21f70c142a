import Foundation
import Replication
import Testing
import Wire

@testable import SeameshCommand

@Suite("Figures of this build")
struct BenchTests {
  @Test(
    "a part of bench prints each of its figures with unit and bar, and a total; a reconnect stays within 4 KiB",
    .enabled(if: FileManager.default.isExecutableFile(atPath: commandPath)))
  func reconnect() throws {
    let results = NSTemporaryDirectory() + "/seamesh-bench-\(UUID().uuidString.prefix(8)).json"
    defer { try? FileManager.default.removeItem(atPath: results) }
    let run = try run(
      commandPath, ["bench", "--quick", "--only=reconnect", "--results=\(results)", "--data=/nonexistent"],
      environment: ["PATH": "/usr/bin:/bin", "TMPDIR": NSTemporaryDirectory()])
    #expect(run.status == 0, "\(run.error)")
    let lines = run.output.split(separator: "\n").map(String.init)
    for partitions in ["1 partition", "100 partitions"] {
      let own = lines.filter { $0.hasPrefix("reconnect, \(partitions) ") || $0.hasPrefix("reconnect, \(partitions),") }
      #expect(own.count == 3)
      #expect(own.count { $0.contains(" B  [<= 4,096: holds]") } == 1)
      #expect(own.count { $0.contains(" B  [<= 1,100: holds]") } == 1)
      #expect(own.count { $0.contains(" round trips  [<= 1.5: holds]") } == 1)
    }
    #expect(lines.last?.hasPrefix("6 figures in ") == true && lines.last?.contains("all 6 bars hold") == true)
    let report = try ExtendedJSON.parseMap(Array(try Data(contentsOf: URL(fileURLWithPath: results))))
    let keys = report.list("figures").map { $0.text("key") }
    #expect(keys == [1, 100].flatMap { n in ["bytes", "message-bytes", "trips"].map { "reconnect-\($0)-\(n)" } })
    #expect(report["allHold"] == .bool(true))
  }

  @Test(
    "what long chains cost is shown beside its bars",
    .enabled(if: FileManager.default.isExecutableFile(atPath: commandPath)))
  func scaleOfChains() throws {
    let run = try run(
      commandPath, ["bench", "--quick", "--only=scale-chains", "--data=/nonexistent"],
      environment: ["PATH": "/usr/bin:/bin", "TMPDIR": NSTemporaryDirectory()])
    #expect(run.status == 0, "\(run.error)")
    let lines = run.output.split(separator: "\n").map(String.init)
    for name in ["a remote run after a narrowing", "a new session beside a long", "a run of one on a long held chain"] {
      #expect(lines.count { $0.hasPrefix(name) && $0.contains("[<= 1.5:") } == 1)
    }
    #expect(lines.last?.hasPrefix("3 figures in ") == true)
  }

  @Test("without a word all parts are measured but those of scale, which stand under one name")
  func parts() {
    let scale: [BenchPart] = [.scalePartitions, .scaleReplicas, .scaleDocuments, .scaleChains]
    #expect(BenchPart.wanted([]) == [.storage, .catchUp, .latency, .load, .wire, .reconnect, .find])
    #expect(BenchPart.wanted(["scale", "load"]) == [.load, .scale] + scale)
    #expect(BenchPart.wanted(["scale-chains"]) == [.scaleChains])
  }

  @Test("the total names the figures that fall short of their bars")
  func total() {
    var shown: [String] = []
    let report = BenchReport(machine: Machine(measuring: "/")) { shown.append($0) }
    report.add(
      Figure("a", "first", 2, "ms", floor: .atMost(1)), Figure("b", "second", 0.5, "of it", floor: .atLeast(0.5)),
      Figure("c", "third", 3, "B"))
    report.finish(isQuick: false)
    #expect(shown.contains { $0.hasPrefix("first ") && $0.hasSuffix(" 2 ms  [<= 1: FALLS SHORT]") })
    #expect(shown.contains { $0.hasPrefix("second ") && $0.hasSuffix(" 0.5 of it  [>= 0.5: holds]") })
    #expect(shown.last?.hasPrefix("3 figures in ") == true)
    #expect(shown.last?.hasSuffix(", 1 of 2 bars hold; short: first") == true)
  }
}
