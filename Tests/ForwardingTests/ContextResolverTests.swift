import Foundation
import Replication
import Storage
import Testing
import Wire

@testable import Forwarding

@Suite("Contexts of a ledger's runs")
struct ContextResolverTests {
  @Test("the way back to a whole context, however long, takes no memory for the runs that it passes")
  func wayBack() throws {
    let chain = try LongChain(runs: 256, bodyBytes: 1024 * 1024)
    var resolver = ContextResolver(chain)
    let last = try LedgerRun(chain.row(256))
    let before = LongChain.residentBytes()
    let context = try resolver.context(of: last)
    #expect(context.sequence(of: chain.other) == 256)
    #expect(chain.asked == 255 && chain.most - before < 64 * 1024 * 1024, "\((chain.most - before) / 1024 / 1024) MiB")
  }

  @Test("contexts are remembered up to so many entries, of them the older half is forgotten at once")
  func bound() throws {
    let others = 4_000
    // Each counts one more than its entries, of which one is of the chain that grows.
    let most = ContextResolver.entryLimit / (others + 2)
    let chain = try LongChain(runs: most + 1, bodyBytes: 1, others: others)
    var resolver = ContextResolver(chain)
    func asked(_ number: Int) throws -> Int {
      let before = chain.asked
      _ = try resolver.context(of: LedgerRun(chain.row(number)))
      return chain.asked - before
    }
    for number in 1...most { #expect(try asked(number) == 0) }
    #expect(try asked(2) == 0, "what it goes on from is remembered yet")
    #expect(try asked(most + 1) == 0)
    let forgotten = (most + 1) / 2
    #expect(try asked(forgotten + 2) == 0)
    #expect(try asked(4) == 3, "back to the whole one")
  }
}

/// Runs of one change with large bodies, each with a context that stands on that of the run before it.
private final class LongChain: LedgerTables {
  let name = "a long chain"
  let other: ReplicaID
  private let count: Int
  private let body: Int
  private let others: Int
  private(set) var asked = 0
  /// Memory of the process at its highest while rows were asked for.
  private(set) var most = 0

  init(runs: Int, bodyBytes: Int, others: Int = 6) throws {
    (count, body, self.others) = (runs, bodyBytes, others)
    other = try #require(ReplicaID([UInt8](repeating: 2, count: 16)))
  }

  var hasDocumentSums: Bool { false }
  var hasDocumentNotes: Bool { false }
  func page(of table: LedgerTable, after key: [RowValue]?, rows: Int) throws -> [LedgerRow] { [] }
  func count(of table: LedgerTable) throws -> Int64 { Int64(count) }

  func row(of table: LedgerTable, _ key: [RowValue]) throws -> LedgerRow? {
    guard case .integer(let last) = key[2] else { return nil }
    asked += 1
    most = max(most, LongChain.residentBytes())
    return try row(Int(last))
  }

  func row(_ number: Int) throws -> LedgerRow {
    var writer = CBORWriter(reserving: 64)
    writer.context(ContextForm.shorter(context(number), base: number > 1 ? context(number - 1) : nil))
    let place: [RowValue] = [.bytes([UInt8](repeating: 1, count: 32)), .bytes([UInt8](repeating: 1, count: 16))]
    return LedgerRow(
      .runs,
      place + [
        .integer(Int64(number)), .bytes(hash(number)), .integer(Int64(number)), .bytes(hash(number - 1)),
        .bytes(writer.bytes), .bytes([UInt8](repeating: 7, count: body)), .integer(0),
      ])
  }

  /// Of enough chains that what changed is shorter than the whole.
  private func context(_ number: Int) -> VersionVector {
    var context = VersionVector()
    context[other] = ChainPosition(sequence: UInt64(number), tip: .zero)
    for index in 0..<UInt64(others) {
      context[ReplicaID(high: 3, low: index)] = ChainPosition(sequence: 1, tip: .zero)
    }
    return context
  }

  private func hash(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32) }

  static func residentBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4_096 } ?? 0
  }
}
