import Foundation
import Testing

@testable import SeameshCommand

struct StoreBenchTests {
  @Test("figures of the store are measured and leave nothing behind")
  func figures() throws {
    let scratch = try BenchScratch(in: NSTemporaryDirectory())
    let rows = 2_000
    let raw = try RawInsert.rate(scratch, rows: rows)
    let ascending = try StorageBenchmark.ownInserts(scratch, order: .ascending, rows: rows, rounds: 1)
    let random = try StorageBenchmark.ownInserts(scratch, order: .random, rows: rows, rounds: 1)
    #expect(raw > 0 && ascending.rate > 0 && random.rate > 0)
    // A document of one change is kept once, in its run: 315 bytes of payload.
    #expect((400.0..<800).contains(ascending.bytesPerDocument) && (400.0..<800).contains(random.bytesPerDocument))
    #expect(try SyncProbe.microseconds(directory: scratch.path, count: 20).count == 20)
    #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).isEmpty)
  }

  @Test(
    "a store of another size is measured once where that takes minutes, and of no size beyond",
    arguments: [true, false])
  func documents(isQuick: Bool) throws {
    var sizes = isQuick ? BenchSizes.quick : .full
    try sizes.take(documents: 5_000_000)
    #expect((sizes.documents, sizes.storageRounds, sizes.catchUpRounds) == (5_000_000, 1, 1))
    sizes = .full
    try sizes.take(documents: 1_000_000)
    #expect((sizes.documents, sizes.storageRounds) == (1_000_000, 3))
    for count in [0, 999, 10_000_001, .max] {
      let before = sizes.documents
      #expect(throws: Failure.usage("--documents takes 1000 to 10000000, not \(count)")) {
        try sizes.take(documents: count)
      }
      #expect(sizes.documents == before)
    }
  }
}
