import Foundation
import Testing

@testable import Storage

@Suite struct BenchmarkTests {
  @Test("the figures of the bench verb are measured and leave nothing behind")
  func figures() throws {
    let directory = try TemporaryDirectory()
    let rows = ProcessInfo.processInfo.environment["SEAMESH_BENCH_ROWS"].flatMap(Int.init) ?? 20_000
    let raw = try StorageBenchmark.rawLimit(directory: directory.path, rows: rows)
    let ascending = try StorageBenchmark.ownInserts(directory: directory.path, order: .ascending, rows: rows)
    let random = try StorageBenchmark.ownInserts(directory: directory.path, order: .random, rows: rows)
    let probe = try SyncProbe.measure(directory: directory.path, count: 20)
    #expect(raw > 0 && ascending > 0 && random > 0 && probe.medianMicroseconds <= probe.p99Microseconds)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    print("rows/s: raw \(Int(raw)), ascending \(Int(ascending)), random \(Int(random)), sync \(probe)")
  }
}
