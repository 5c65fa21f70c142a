import Foundation
import Testing

@testable import SeameshCommand

struct StoreBenchTests {
  @Test("figures of the store are measured and leave nothing behind")
  func figures() throws {
    let scratch = try BenchScratch(in: NSTemporaryDirectory())
    let rows = 2_000
    let raw = try RawInsert.rate(scratch, rows: rows)
    let ascending = try StorageBenchmark.ownInserts(scratch, order: .ascending, rows: rows)
    let random = try StorageBenchmark.ownInserts(scratch, order: .random, rows: rows)
    #expect(raw > 0 && ascending > 0 && random > 0)
    #expect(try SyncProbe.microseconds(directory: scratch.path, count: 20).count == 20)
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).isEmpty)
  }
}
