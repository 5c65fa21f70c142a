import Foundation
import Testing

@testable import Storage

@Suite struct BenchmarkTests {
  @Test("the figures of the bench verb are measured and leave nothing behind")
  func figures() throws {
    let directory = try TemporaryDirectory()
    let rows = ProcessInfo.processInfo.environment["SEAMESH_BENCH_ROWS"].flatMap(Int.init) ?? 20_000
    let raw = try StorageBenchmark.rawLimit(directory: directory.path, rows: rows)
    let own = try StorageBenchmark.ownInserts(directory: directory.path, rows: rows)
    let probe = try SyncProbe.measure(directory: directory.path, count: 20)
    #expect(raw > 0 && own > 0 && probe.medianMicroseconds <= probe.p99Microseconds)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    print("raw \(Int(raw)) rows/s, own \(Int(own)) rows/s, sync \(probe)")
  }
}
