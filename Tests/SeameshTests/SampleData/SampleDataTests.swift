import Foundation
import Replication
import SampleData
import Testing
import Wire

@testable import Seamesh

@Suite("Sample data")
struct SampleDataTests {
  private func text(_ documents: some Sequence<SampleDocument>) -> [UInt8] {
    var out: [UInt8] = []
    for document in documents {
      ExtendedJSON.write(.map(document.withID), into: &out)
      out.append(UInt8(ascii: "\n"))
    }
    return out
  }

  /// Bytes in MongoDB's binary form, in which the size of the real collection is known.
  private func bsonSize(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .bool: 1
    case .int, .double, .date: 8
    case .objectID: 12
    case .string(let text): 5 + text.utf8.count
    case .map(let map): 5 + map.entries.reduce(0) { $0 + 2 + $1.key.utf8.count + bsonSize($1.value) }
    case .array(let items): 5 + items.enumerated().reduce(0) { $0 + 2 + String($1.offset).count + bsonSize($1.element) }
    case .bytes, .uuid, .blob: 0
    }
  }

  @Test("one seed gives the same bytes, another seed others, and a longer run begins like a shorter one")
  func determinism() {
    let reports = text(SampleReports(seed: 7).prefix(300))
    #expect(text(SampleReports(seed: 7).prefix(300)) == reports)
    #expect(text(SampleReports(seed: 8).prefix(300)) != reports)
    #expect(text(SampleReports(seed: 7).prefix(400)).starts(with: reports))
    #expect(text(SampleDuty(seed: 7).prefix(100)) == text(SampleDuty(seed: 7).prefix(100)))
  }

  @Test("the bytes of a seed stay what they were in earlier versions")
  func pinned() {
    // FNV-1a: only to notice a change.
    let hash = text(SampleReports(seed: 1).prefix(200)).reduce(0xcbf2_9ce4_8422_2325 as UInt64) { hash, byte in
      (hash ^ UInt64(byte)) &* 0x100_0000_01b3
    }
    #expect(hash == 16_917_043_853_505_715_477)
  }

  @Test("reports have the size and the shares of the real collection")
  func shares() {
    let reports = Array(SampleReports(seed: 1).prefix(3001))
    let size = reports.reduce(0) { $0 + 5 + 17 + bsonSize(.map($1.body)) } / reports.count
    #expect((2_700...3_020).contains(size), "mean size \(size)")
    let violations = reports.reduce(0) { sum, report in
      guard case .map(let inspection)? = report.body["inspection"], case .map(let summary)? = inspection["summary"],
        case .array(let violations)? = summary["violations"]
      else { return sum }
      return sum + violations.count
    }
    #expect((1.4...1.6).contains(Double(violations) / 3001), "\(violations) violations")
    let drafts = reports.count { $0.body["draft"] == .bool(true) }
    #expect((180...300).contains(drafts), "\(drafts) drafts")
    #expect(reports.contains { $0.body["draft"] == nil } && reports.contains { $0.body["draft"] == .null })
    #expect(Set(reports.map(\.agency)).count == 4)
  }

  @Test("ids and times ascend, ids are unique and begin with the time in seconds")
  func order() {
    var previous: (id: ObjectID, time: Int64)?
    for report in SampleReports(seed: 3).prefix(2000) {
      guard case .objectID(let id) = report.id, case .date(let time)? = report.body["timestamp"] else {
        Issue.record("no id or no timestamp")
        return
      }
      #expect(id.high >> 32 == UInt64(time / 1000))
      if let previous { #expect(previous.id < id && previous.time < time) }
      previous = (id, time)
      #expect(report.body["agency"] == .string(report.agency))
    }
  }

  @Test("most reports lie within a shift of their officer")
  func duty() throws {
    let reports = Array(SampleReports(seed: 5).prefix(500))
    let duty = Array(SampleDuty(seed: 5).prefix(2000)).filter { $0.body["status"] == .string("On Duty") }
    let onDuty = reports.count { report in
      guard case .date(let time)? = report.body["timestamp"] else { return false }
      return duty.contains { entry in
        guard case .date(let start)? = entry.body["date"] else { return false }
        return entry.agency == report.agency && entry.body["user"] == report.body["reportingOfficer"]
          && (start..<start + 240 * 60_000).contains(time)
      }
    }
    #expect((390...500).contains(onDuty), "\(onDuty) of 500")
    #expect(Set(duty.map(\.id)).count == duty.count)
  }

  @Test(
    "benchmark documents have eight fields of 25 bytes, ids as asked", arguments: BenchmarkDocuments.IDOrder.allCases)
  func benchmark(_ order: BenchmarkDocuments.IDOrder) {
    let documents = Array(BenchmarkDocuments(seed: 1, order: order).prefix(1000))
    let ids = documents.map(\.id)
    #expect(ids == Array(BenchmarkDocuments(seed: 1, order: order).prefix(1000)).map(\.id))
    #expect(Set(ids).count == 1000)
    let sorted = ids.sorted { $0.canonicalBytes.lexicographicallyPrecedes($1.canonicalBytes) }
    #expect((ids == sorted) == (order == .ascending))
    for document in documents {
      #expect(document.body.count == 8)
      for entry in document.body.entries {
        guard case .string(let text) = entry.value else {
          Issue.record("no text")
          return
        }
        #expect(text.utf8.count == 25)
      }
    }
    #expect(Set(documents.map(\.body)).count == 1000)
  }
}
