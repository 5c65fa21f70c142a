import Replication
import Testing

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

  @Test("a partition's runs follow in order of arrival, those of others left out")
  func arrivals() throws {
    let order: [(partition: UInt64, replica: UInt64)] = [(1, 1), (2, 1), (1, 2), (1, 1), (2, 2), (1, 2)]
    var arrivals: [Int64] = []
    var counts: [UInt64: UInt64] = [:]
    for place in order {
      let sequence = (counts[place.partition * 10 + place.replica] ?? 0) + 1
      counts[place.partition * 10 + place.replica] = sequence
      arrivals.append(
        try store.write(.deferred) { transaction in
          let partition = try transaction.number(of: partitionID(place.partition))
          let chain = try transaction.number(of: replica(place.replica), in: partition, genesis: digest(0))
          return try transaction.appendRun(chain, first: sequence, last: sequence, context: vector([:]), body: [1])
        })
    }
    let partition = try #require(try store.partition(partitionID(1))).number
    let all = try store.runs(in: partition, afterArrival: 0, byteLimit: .max)
    #expect(all.map(\.arrival) == [arrivals[0], arrivals[2], arrivals[3], arrivals[5]])
    #expect(try store.runs(in: partition, afterArrival: arrivals[2], byteLimit: .max) == Array(all[2...]))
  }

  @Test("arrival numbers go up for ever, though the last runs are taken away")
  func removal() throws {
    for number in 1...6 as ClosedRange<UInt64> { try append(number, number, vector([2: number])) }
    let last = try #require(try store.lastRun(of: chain()))
    let removed = try store.write(.full) { transaction in
      try transaction.removeRuns(of: Place(transaction).chain, after: 2)
    }
    #expect(removed.map(\.first) == [3, 4, 5, 6] && removed.last == last)
    #expect(store.totals.changes == 2 && store.totals.logBytes == 20)
    try append(3, 3, vector([2: 1, 3: 1]))
    let next = try #require(try store.lastRun(of: chain()))
    #expect(next.arrival > last.arrival && next.context == vector([2: 1, 3: 1]))
    // Nothing that is written now may refer to a context that went with its run.
    _ = try store.write(.full) { try $0.removeRuns(of: Place($0).chain, after: 0) }
    for number in 1...3 as ClosedRange<UInt64> { try append(number, number, vector([2: 1, 3: number])) }
    #expect(
      try store.runs(of: chain(), after: 0, byteLimit: .max).map { $0.context.sequence(of: replica(3)) } == [1, 2, 3])
  }

  @Test("headers of a fork are kept once each, and only so many")
  func forkHeaders() throws {
    try store.write(.full) { transaction in
      let chain = try Place(transaction).chain
      for index in [3, 1, 3] as [UInt64] {
        try transaction.addForkHeader(
          StoredForkHeader(sequence: 9, hash: digest(index), header: [UInt8(index)]), of: chain)
      }
    }
    #expect(try store.forkHeaders(of: chain()).map(\.header) == [[1], [3]])
    let limit = StoredForkHeader.countLimit
    #expect(throws: StoreError.limitReached(what: "headers of forked chains", limit: limit)) {
      try store.write(.full) { transaction in
        let chain = try Place(transaction).chain
        for index in 0...UInt64(limit) {
          try transaction.addForkHeader(StoredForkHeader(sequence: index + 10, hash: digest(1), header: []), of: chain)
        }
      }
    }
    #expect(try store.forkHeaders(of: chain()).count == 2)
  }
}
