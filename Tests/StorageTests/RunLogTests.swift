import Replication
import Testing
import TestSupport

@testable import Storage

@Suite struct RunLogTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  private func append(_ first: UInt64, _ last: UInt64, _ context: VersionVector, bytes: Int = 10) throws {
    try store.write(.deferred) { transaction in
      let place = try Place(transaction)
      try transaction.appendRun(
        place.chain, first: first, last: last, context: context,
        body: [UInt8](repeating: UInt8(truncatingIfNeeded: first), count: bytes)[...])
    }
  }

  private func chain() throws -> ChainNumber { try #require(try store.chains().first).number }

  @Test("contexts come back whole, however they were written down")
  func contexts() throws {
    var random = SplitMix64(seed: 42)
    var context = vector([2: 1])
    var written: [VersionVector] = []
    for number in 1...200 as ClosedRange<UInt64> {
      let other = UInt64.random(in: 2...30, using: &random)
      let next = ChainPosition(
        sequence: context.sequence(of: replica(other)) + 1, tip: TipHash(high: random.next(), low: number))
      context[replica(other)] = Int.random(in: 0..<12, using: &random) == 0 ? nil : next
      try append(number, number, context)
      written.append(context)
    }
    #expect(try store.runs(of: chain(), after: 0, byteLimit: .max).map(\.context) == written)
    #expect(try store.runs(of: chain(), after: 150, byteLimit: .max).map(\.context) == Array(written[150...]))
    let full = try #require(try store.database.integer("SELECT count(*) FROM runs WHERE context_base IS NULL"))
    #expect(full >= 200 / 32 && full < 100)
  }

  @Test("a chain's runs are read from any sequence on, within the byte limit, at least one")
  func bounded() throws {
    for number in 0..<10 as Range<UInt64> { try append(number * 4 + 1, number * 4 + 4, vector([:]), bytes: 100) }
    let chain = try chain()
    #expect(try store.runs(of: chain, after: 6, byteLimit: .max).map(\.first) == [5, 9, 13, 17, 21, 25, 29, 33, 37])
    #expect(try store.runs(of: chain, after: 0, byteLimit: 250).map(\.last) == [4, 8])
    #expect(try store.runs(of: chain, after: 0, byteLimit: 1).map(\.last) == [4])
    #expect(try store.runs(of: chain, after: 40, byteLimit: .max).isEmpty)
    #expect(try store.lastRun(of: chain)?.first == 37)
  }

  @Test("runs of several branches that end at one sequence are read together, whatever the byte limit")
  func branches() throws {
    try append(1, 4, vector([:]), bytes: 100)
    for first in [5, 6, 5, 7] as [UInt64] { try append(first, 8, vector([:]), bytes: 100) }
    try append(9, 9, vector([:]), bytes: 100)
    let chain = try chain()
    #expect(try store.runs(of: chain, after: 0, byteLimit: 150).map(\.last) == [4])
    #expect(try store.runs(of: chain, after: 4, byteLimit: 150).map(\.first) == [5, 6, 5, 7])
    #expect(try store.runs(of: chain, after: 8, byteLimit: 150).map(\.first) == [9])
  }
}
