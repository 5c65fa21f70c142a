import Replication
import Testing

@testable import Engine
@testable import Storage

/// Where a follower of the log goes on.
@Suite struct LogPositionTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private struct Refused: Error {}

  private func append(_ sequence: UInt64, to partition: UInt64 = 1, _ store: Store, bytes: Int = 10) throws {
    let id = partitionID(partition)
    try store.transact(isBacklog: false) { transaction in
      try transaction.addPartition(id, PartitionName("room=1"))
      _ = try transaction.append(
        AppendedRun(
          first: sequence, last: sequence, context: vector([:]), body: [UInt8](repeating: 1, count: bytes)[...]),
        to: ChainIdentity(fleet: testFleet, partition: id, replica: replica(1)), genesis: digest(0))
    }
  }

  private func rebuild(_ partition: UInt64, _ store: Store) throws {
    try store.transact(isBacklog: false) { transaction in
      let rebuilding = Rebuilding(
        partition: partitionID(partition), fleet: testFleet, hash: { _ in digest(9) }, accepted: VersionVector()
      ) { _, _, _, _ in nil }
      _ = try transaction.rebuild([], by: rebuilding)
    }
  }

  private func number(_ partition: UInt64, _ store: Store) throws -> PartitionNumber {
    try #require(try store.partitionNumber(partitionID(partition)))
  }

  @Test("it is the same for the writer, for a reader, and after a restart, and survives as text")
  func same() throws {
    var store: Store? = try directory.open()
    for sequence in 1...3 as ClosedRange<UInt64> { try append(sequence, store!) }
    try rebuild(1, store!)
    let end = store!.end
    #expect(end == LogPosition(arrival: 3, rebuilds: 1))
    #expect(try store!.readers.read { try $0.logEnd() } == end)
    store = nil
    store = try directory.open()
    #expect(store!.end == end)
    #expect(LogPosition(text: LogPosition(copy: 7, arrival: 3, rebuilds: 1).text)?.text == "7.3.1")
    for text in ["", "1.2", "1.2.3.4", "1.-2.3", "a.2.3", "1..3"] { #expect(LogPosition(text: text) == nil, "\(text)") }
  }

  @Test("a transaction that fails takes nothing of the order of arrival: the next run comes at the place it had")
  func failed() throws {
    let store = try directory.open()
    try append(1, store)
    #expect(throws: Refused.self) {
      try store.write(.full) { transaction in
        let place = try Place(transaction)
        try transaction.appendRun(place.chain, first: 2, last: 2, context: vector([:]), body: [1])
        try transaction.noteRebuild(of: place.partition)
        throw Refused()
      }
    }
    #expect(store.end == LogPosition(arrival: 1))
    try append(2, store)
    #expect(try store.logEnd() == store.end)
    #expect(store.end.arrival == 2)
  }

  @Test("runs tell all of a partition until it is rebuilt; a rebuild elsewhere does not matter")
  func rebuilt() throws {
    let store = try directory.open()
    try append(1, store)
    try append(1, to: 2, store)
    let before = store.end
    try append(2, store)
    #expect(try store.runsTellAll(of: number(1, store), since: before))
    try rebuild(2, store)
    #expect(try store.runsTellAll(of: number(1, store), since: before))
    #expect(try !store.runsTellAll(of: number(2, store), since: before))
    #expect(try store.runsTellAll(of: number(2, store), since: store.end))
  }

  @Test("a position of another copy of the store, or from beyond its end, tells nothing")
  func otherCopy() throws {
    let store = try directory.open()
    for sequence in 1...4 as ClosedRange<UInt64> { try append(sequence, store) }
    let target = try TemporaryDirectory()
    try StoreBackup.write(store: store.database.path, to: target.path + "/" + Store.fileName)
    let copy = try target.open()
    for sequence in 5...6 as ClosedRange<UInt64> { try append(sequence, store) }
    #expect(copy.end.arrival == 4 && copy.end.copy != 0)
    for sequence in 5...9 as ClosedRange<UInt64> { try append(sequence, copy) }
    #expect(try !copy.runsTellAll(of: number(1, copy), since: store.end))
    #expect(try copy.runsTellAll(of: number(1, copy), since: copy.end))
    for beyond in [LogPosition(arrival: 7), LogPosition(arrival: 1, rebuilds: 1)] {
      #expect(try !store.runsTellAll(of: number(1, store), since: beyond))
    }
  }

  @Test("runs of one partition are read on from an arrival, in order, within the byte limit, at least one")
  func runs() throws {
    let store = try directory.open()
    for sequence in 1...4 as ClosedRange<UInt64> {
      for partition in [1, 2] as [UInt64] { try append(sequence, to: partition, store, bytes: 100) }
    }
    func arrivals(after arrival: Int64, _ byteLimit: Int) throws -> [Int64] {
      try store.runs(of: number(2, store), cameAfter: arrival, byteLimit: byteLimit).map(\.arrival)
    }
    #expect(try arrivals(after: 0, .max) == [2, 4, 6, 8])
    #expect(try arrivals(after: 4, .max) == [6, 8])
    #expect(try arrivals(after: 0, 250) == [2, 4])
    #expect(try arrivals(after: 2, 1) == [4])
    #expect(try arrivals(after: 8, .max).isEmpty)
  }
}
