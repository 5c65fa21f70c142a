import Replication
import Testing

@testable import Engine
@testable import Storage

/// When runs and statements came here.
@Suite struct ArrivalTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func append(
    _ first: UInt64, _ last: UInt64, of author: UInt64, in partition: UInt64, at arrived: Int64, _ store: Store
  ) throws {
    try store.transact(isBacklog: false) { transaction in
      try transaction.addPartition(partitionID(partition), PartitionName("room=1"))
      _ = try transaction.append(
        AppendedRun(first: first, last: last, context: vector([:]), body: [1], arrived: arrived),
        to: ChainIdentity(fleet: testFleet, partition: partitionID(partition), replica: replica(author)),
        genesis: digest(0))
    }
  }

  @Test("of a chain of which something came later it is known how far it had come")
  func changes() throws {
    do {
      let store = try directory.open()
      try append(1, 3, of: 1, in: 1, at: 100, store)
      try append(4, 4, of: 1, in: 1, at: 200, store)
      try append(5, 9, of: 1, in: 1, at: 300, store)
      try append(1, 1, of: 2, in: 1, at: 250, store)
      try append(1, 7, of: 1, in: 2, at: 100, store)
    }
    let store = try directory.open()
    func cuts(_ moment: Int64) throws -> [String] {
      try store.changes(before: moment)
        .map { "\($0.partition == partitionID(1) ? 1 : 2) \($0.replica.high) \($0.last)" }.sorted()
    }
    #expect(try cuts(50) == ["1 1 0", "1 2 0", "2 1 0"])
    #expect(try cuts(100) == ["1 1 3", "1 2 0"])
    #expect(try cuts(249) == ["1 1 4", "1 2 0"])
    #expect(try cuts(299) == ["1 1 4"])
    #expect(try cuts(300).isEmpty)
  }

  @Test("a clock that went back does not hide that something came later")
  func clockBack() throws {
    let store = try directory.open()
    try append(1, 1, of: 1, in: 1, at: 500, store)
    try append(2, 2, of: 1, in: 1, at: 400, store)
    #expect(try store.changes(before: 450).map(\.last) == [0])
  }

  @Test("of a forked chain it is known which runs came later, and of all what came behind the reading")
  func branches() throws {
    let store = try directory.open()
    for (author, forked) in [(1, true), (2, false)] as [(UInt64, Bool)] {
      try append(1, 4, of: author, in: 1, at: 100, store)
      try append(5, 9, of: author, in: 1, at: 100, store)
      try append(5, 5, of: author, in: 1, at: 300, store)
      guard forked else { continue }
      let mark = Engine.ChainMark(sequence: 0, hash: digest(0))
      let chain = ChainIdentity(fleet: testFleet, partition: partitionID(1), replica: replica(author))
      try store.transact(isBacklog: false) {
        try $0.setMarks(ChainMarks(received: mark, accepted: mark, isForked: true), of: chain)
      }
    }
    let before = try store.arrived(before: 200)
    #expect(before.changes == [partitionID(1): [replica(1): 4, replica(2): 4]])
    #expect(before.branched == [partitionID(1): [replica(1): [3]]] && before.end == 6)
    #expect(try store.ends(beforeRunsBehind: before.end).isEmpty)
    try append(6, 7, of: 1, in: 1, at: 150, store)
    try append(1, 1, of: 3, in: 1, at: 150, store)
    #expect(try store.ends(beforeRunsBehind: before.end) == [partitionID(1): [replica(1): 5, replica(3): 0]])
    #expect(try store.ends(beforeRunsBehind: 5)[partitionID(1)]?[replica(2)] == 4)
  }

  @Test("statements keep the time of their arrival, and none where nobody told it")
  func statements() throws {
    let store = try directory.open()
    try store.write(.full) { transaction in
      try transaction.addStatement(id: digest(1), encoded: [1], arrived: 77)
      try transaction.addStatement(id: digest(1), encoded: [1], arrived: 99)
      try transaction.addStatement(id: digest(2), encoded: [2])
    }
    #expect(try store.statements().map(\.arrived) == [77, nil])
  }

  @Test("a statement that comes when the last ones were removed has a number that none had before")
  func removedStatements() throws {
    let store = try directory.open()
    try store.write(.full) { transaction in
      for number in 1...3 as ClosedRange<UInt64> { try transaction.addStatement(id: digest(number), encoded: [1]) }
    }
    try store.write(.full) { transaction in
      for number in [3, 1] as [UInt64] { try transaction.removeStatement(digest(number)) }
      try transaction.addStatement(id: digest(4), encoded: [1])
    }
    #expect(try store.statements(cameAfter: 3, byteLimit: .max).map(\.id) == [digest(4)])
    try store.write(.full) { transaction in
      for number in [4, 2] as [UInt64] { try transaction.removeStatement(digest(number)) }
    }
    _ = try store.write(.full) { try $0.addStatement(id: digest(5), encoded: [1]) }
    #expect(try store.statements().map(\.arrival) == [5])
  }
}
