import Foundation
import Replication
import Storage
import TestSupport
import Testing
import Wire

@testable import Engine

/// What words about what is held take beside the changes that they speak of, on a clock that the test moves.
@Suite("Holdings' share of bytes")
struct HoldingsShareTests {
  private static let file = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../../shared/data/ofish/docs/dutychange.json").standardized
  private static var isThere: Bool { FileManager.default.fileExists(atPath: file.path) }

  private struct Entry: DocumentEdit {
    let id: Value
    let content: ValueMap
    let partition: PartitionName
    var collection: Text { "DutyChange" }
    func outcome(on present: PresentDocument) -> DocumentOutcome { .body(content, hints: .none) }
  }

  private static func entries() throws -> [Entry] {
    guard case .array(let items) = try ExtendedJSON.parse([UInt8](Data(contentsOf: file))) else { return [] }
    return try items.compactMap { item in
      guard case .map(var content) = item, let id = content["_id"] else { return nil }
      content["_id"] = nil
      var agency: Text = "none"
      if case .string(let name)? = content["agency"], name.string != "" { agency = name }
      return Entry(id: id, content: content, partition: try PartitionName(Text("agency=" + agency.string)))
    }
  }

  private struct Bytes {
    var changes = 0
    var words = 0
    var records = 0
  }

  @Test(
    "over a day of duty entries on four devices words take no more than a fiftieth of the bytes of changes",
    .enabled(if: isThere, "not run: ../shared/data is not here"), arguments: [true, false])
  func day(isConnected: Bool) throws {
    let entries = try Self.entries()
    #expect(entries.count == 569)
    let bench = try EngineBench(4, seed: 12)
    var bytes = Bytes()
    for node in bench.nodes {
      try node.subscribe("*")
      let deliver = node.links.deliver
      node.links.deliver = { frame, session in
        switch BenchLinks.kind(frame) {
        case "holdings":
          bytes.words += frame.count
          bytes.records += 1
        case "runs", "payloadPiece": bytes.changes += frame.count
        default: break
        }
        deliver?(frame, session)
      }
    }
    let pairs = (0..<4).flatMap { a in (a + 1..<4).map { (a, $0) } }
    if isConnected { for (a, b) in pairs { bench.meet(a, b) } }
    var random = SplitMix64(seed: 12)
    var next = 0
    let (day, step): (UInt64, UInt64) = (86_400_000, 15_000)
    for time in stride(from: 0, to: day, by: UInt64.Stride(step)) {
      while next < entries.count, UInt64(next) * day <= time * UInt64(entries.count) {
        let entry = entries[next]
        _ = try bench.nodes[next % 4].write(entry.partition, entry)
        next += 1
      }
      if !isConnected, time % 300_000 == 0 {
        let (a, b) = pairs[Int(random.next() % UInt64(pairs.count))]
        bench.cut(bench.meet(a, b))
      }
      bench.advance(step)
    }
    if !isConnected { for (a, b) in pairs + pairs { bench.cut(bench.meet(a, b)) } }
    let share = Double(bytes.words) / Double(bytes.changes)
    print("holdings over a day, connected \(isConnected): \(bytes.words) of \(bytes.changes) bytes, \(share)")
    #expect(share <= 0.02, "\(bytes)")
    #expect(bench.nodes.allSatisfy { $0.store.store.totals.changes == 569 })
  }
}
