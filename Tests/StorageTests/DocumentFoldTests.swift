import Identity
import Replication
import Testing
import Wire
import TestSupport

@testable import Storage

/// What a fold leaves in the store is what the merge says of the same changes, whatever the batches.
@Suite struct DocumentFoldTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  @Test("any history in any batches leaves the states that merging all its changes gives", arguments: 1...20)
  func randomHistories(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let history = History(seed: seed, changes: 120)
    var rest = history.changes[...]
    var aliveDelta = 0
    while !rest.isEmpty {
      let batch = rest.prefix(Int.random(in: 1...40, using: &random))
      rest = rest.dropFirst(batch.count)
      let report = try store.write(.deferred) { transaction in
        let partition = try transaction.number(of: history.partition)
        return try DocumentFold.fold(AcceptedBatch(batch.map { try $0.accepted(in: partition) }), in: transaction)
      }
      aliveDelta += report.aliveDelta
      let touched = Set(batch.flatMap(\.writes).map { DocumentKey(collection: $0.collection, id: $0.id) })
      #expect(try Set(changedKeys(report)) == touched)
      #expect(report.count == touched.count)
    }
    try expectMerged(history)
    #expect(store.counters.documents == Int64(aliveDelta))
  }

  @Test("a document whose row does not read is named by the fold and stays as it is; the others are merged")
  func damagedRow() throws {
    let history = History(seed: 3, changes: 60)
    let (first, rest) = (history.changes.prefix(30), history.changes.dropFirst(30))
    func fold(_ changes: some Sequence<HistoryChange>) throws -> FoldReport {
      try store.write(.deferred) { transaction in
        let partition = try transaction.number(of: history.partition)
        return try DocumentFold.fold(AcceptedBatch(changes.map { try $0.accepted(in: partition) }), in: transaction)
      }
    }
    _ = try fold(first)
    try store.database.execute("UPDATE documents SET state=x'ff' WHERE id=1")
    let report = try fold(rest)
    #expect(store.failure == nil)
    #expect(report.damaged.count == 1)
    #expect(try store.database.integer("SELECT count(*) FROM documents WHERE state=x'ff'") == 1)
  }

  @Test("a document made from bytes, without decoding, has the state that a merge gives")
  func createdFromBytes() throws {
    let operations = [
      Operation(.set, [.key("name")], value: .string("Orca")), Operation(.increment, [.key("count")], value: .int(-4)),
      Operation(.listInsert, [.key("list")], value: .map(ValueMap()), position: [0x40]),
      Operation(.setAdd, [.key("tags")], value: .int(3)), Operation(.remove, [.key("gone")]),
    ]
    let bare = try created(operations, sequence: 1)
    #expect(bare.row.state == bare.state.storedBytes)
    let withDrop = try created(operations + [Operation(.setRemove, [.key("tags")], value: .int(1))], sequence: 2)
    #expect(try DocumentState(stored: withDrop.row) == withDrop.state)
  }

  /// A write of the first replica and its re-issue by the second, which has effect here: both insert a list's element.
  private static let kin = Kin(
    original: Dot(replica: replica(1), sequence: 1), reissues: [Dot(replica: replica(2), sequence: 1)],
    effective: Dot(replica: replica(2), sequence: 1))

  private func change(
    _ replica: ReplicaID, sees: VersionVector, kind: DocumentWrite.Kind = .edit, id: Int64 = 1, _ operation: Operation
  ) -> HistoryChange {
    let context = WriteContext(
      dot: Dot(replica: replica, sequence: 1), timestamp: HybridTimestamp(rawValue: 9), context: sees,
      sight: Sight(kin: KinTable([Self.kin])))
    return HistoryChange(
      context: context,
      writes: [
        DocumentWrite(collection: "boats", id: .int(id), kind: kind, generation: 1, operations: [operation])
      ])
  }

  @Test("what names a write or its re-issue means the one of them that counts, folded in and made from the log alike")
  func kin() throws {
    let original = ListElement(position: [0x40], dot: Self.kin.original)
    let path: [PathSegment] = [.key("list"), .element(original)]
    let history = History(changes: [
      change(
        replica(2), sees: vector([:]), kind: .create,
        Operation(.listInsert, [.key("list")], value: .int(1), position: [0x40])),
      change(replica(3), sees: vector([1: 1]), Operation(.set, path, value: .int(2))),
      // A document of its own, which is made without a look at what is there.
      change(replica(4), sees: vector([1: 1]), kind: .create, id: 2, Operation(.set, path, value: .int(3))),
    ])
    for change in history.changes {
      try store.write(.full) { transaction in
        let partition = try transaction.number(of: history.partition)
        try change.append(to: transaction, partition, history)
        _ = try DocumentFold.fold(AcceptedBatch([try change.accepted(in: partition)]), in: transaction)
      }
    }
    for _ in 0..<2 {
      try expectMerged(history)
      let states = try [1, 2].map { try state(.int($0), history) }
      #expect(states.map { $0.shown()?["list"] } == [.array([.int(2)]), .array([.int(3)])])
      for element in states.flatMap(\.entries).flatMap(\.path) where !element.isKey {
        #expect(element == .element(ListElement(position: [0x40], dot: Self.kin.effective)))
      }
      let keys = Set([1, 2].map { DocumentKey(collection: "boats", id: .int($0)) })
      try rebuildAll(keys, history)
    }
  }

  private func state(_ id: Value, _ history: History) throws -> DocumentState {
    let partition = try #require(try store.partition(history.partition)).number
    let collection = try #require(try store.collectionNumber("boats"))
    return try DocumentState(stored: #require(try store.document(partition, collection, key: id.canonicalBytes)))
  }

  private func created(_ operations: [Operation], sequence: UInt64) throws -> (row: DocumentRow, state: DocumentState) {
    let id = Value.int(Int64(sequence))
    let write = DocumentWrite(collection: "boats", id: id, kind: .create, generation: 1, operations: operations)
    let context = WriteContext(
      dot: Dot(replica: replica(1), sequence: sequence), timestamp: HybridTimestamp(rawValue: 9),
      context: vector([2: 4]))
    let row = try store.write(.full) { transaction in
      let place = try Place(transaction)
      let change = try HistoryChange(context: context, writes: [write]).accepted(in: place.partition)
      _ = try DocumentFold.fold(AcceptedBatch([change]), in: transaction)
      return try transaction.document(
        place.partition, try transaction.number(ofCollection: "boats"), key: id.canonicalBytes)
    }
    return (try #require(row), DocumentState.merged(of: [AcceptedWrite(context, write)]))
  }

  @Test("documents are rebuilt from the log when a chain's accepted prefix falls, as if the rest had never come")
  func rebuildsAfterFall() throws {
    let history = History(seed: 11, changes: 90)
    try fold(history)
    let chain = history.replicas[1]
    let last = try #require(history.changes.last { $0.dot.replica == chain }).dot.sequence
    let remaining = history.without(chain, above: last / 2)
    var accepted = VersionVector()
    for change in remaining.changes {
      accepted[change.dot.replica] = ChainPosition(sequence: change.dot.sequence, tip: .zero)
    }
    let fallen = history.changes.filter { change in !remaining.changes.contains { $0.dot == change.dot } }
    let touched = Set(fallen.flatMap(\.writes).map { DocumentKey(collection: $0.collection, id: $0.id) })
    #expect(!touched.isEmpty)
    let report = try store.write(.full) { transaction in
      try DocumentFold.rebuild(
        touched, of: history.log(try transaction.number(of: history.partition)), in: transaction, accepted: accepted
      ) { replica, header, _, context in
        WriteContext(
          dot: Dot(replica: replica, sequence: header.sequence), timestamp: header.timestamp, context: context)
      }
    }
    #expect(report.count == touched.count)
    try expectMerged(remaining)
  }

  @Test("what counts of a run that ends above it is found for a rebuild, behind however much of other branches")
  func endsAboveWhatCounts() throws {
    let partition = partitionID(77)
    let chain = ChainIdentity(fleet: testFleet, partition: partition, replica: replica(1))
    func key(_ id: Int64) -> DocumentKey { DocumentKey(collection: "boats", id: .int(id)) }
    func run(_ ids: ClosedRange<Int64>, byteCount: Int) -> Run {
      var builder = RunBuilder(
        chain: chain, after: 0, hashBefore: chain.genesis(SHA256.hash), context: vector([:]), hash: SHA256.hash)
      for id in ids {
        let content = Value.bytes([UInt8](repeating: 1, count: byteCount))
        let write = DocumentWrite(
          collection: "boats", id: .int(id), kind: .create, generation: 1,
          operations: [Operation(.set, [.key("n")], value: content)])
        builder.append(
          payload: PayloadEncoder.encode([write], dot: builder.nextDot),
          keyHashes: [key(id).hash(in: partition, SHA256.hash)], timestamp: HybridTimestamp(rawValue: 9),
          wall: WallTime(milliseconds: 1))
      }
      return builder.close { _ in Signature(first: .zero, second: .zero) }
    }
    // More than is looked at between two visits to SQLite.
    let beside = (0..<300).map { run(100 + $0...100 + $0, byteCount: 16_000) }
    let counting = run(1...2, byteCount: 10)
    try store.write(.full) { transaction in
      let number = try transaction.number(of: partition)
      let row = try transaction.number(of: chain.replica, in: number, genesis: chain.genesis(SHA256.hash))
      for run in beside + [counting] {
        try transaction.appendRun(
          row, first: 1, last: run.record.last, context: vector([:]), body: RunCodec.encode(run)[...])
      }
      let log = DocumentFold.Log(fleet: testFleet, partition: partition, number: number, hash: SHA256.hash)
      _ = try DocumentFold.rebuild([key(1), key(100)], of: log, in: transaction, accepted: vector([1: 1])) {
        replica, header, hash, context in
        guard hash == counting.hashes.first else { return nil }
        return WriteContext(
          dot: Dot(replica: replica, sequence: header.sequence), timestamp: header.timestamp, context: context)
      }
    }
    #expect(try store.database.integer("SELECT count(*) FROM documents WHERE alive") == 1)
  }

  @Test("a payload that is not in its run is found for a rebuild, and its absence is a damage")
  func largePayloads() throws {
    let history = History(seed: 3, changes: 4, padding: 20_000)
    try fold(history)
    let touched = Set(history.changes.flatMap(\.writes).map { DocumentKey(collection: $0.collection, id: $0.id) })
    try rebuildAll(touched, history)
    try expectMerged(history)
    try store.write(.full) { _ in try store.database.execute("DELETE FROM large_payloads") }
    #expect(throws: StoreError.self) { try rebuildAll(touched, history) }
  }

  private func rebuildAll(_ touched: Set<DocumentKey>, _ history: History) throws {
    try store.write(.full) { transaction in
      var accepted = VersionVector()
      for change in history.changes {
        accepted[change.dot.replica] = ChainPosition(sequence: change.dot.sequence, tip: .zero)
      }
      _ = try DocumentFold.rebuild(
        touched, of: history.log(try transaction.number(of: history.partition)), in: transaction, accepted: accepted
      ) { replica, header, _, context in
        WriteContext(
          dot: Dot(replica: replica, sequence: header.sequence), timestamp: header.timestamp, context: context,
          sight: history.changes[0].context.sight)
      }
    }
  }

  private func fold(_ history: History) throws {
    try store.write(.full) { transaction in
      let partition = try transaction.number(of: history.partition)
      for change in history.changes { try change.append(to: transaction, partition, history) }
      let accepted = try history.changes.map { try $0.accepted(in: partition) }
      _ = try DocumentFold.fold(AcceptedBatch(accepted), in: transaction)
    }
  }

  private func changedKeys(_ report: FoldReport) throws -> [DocumentKey] {
    try (0..<report.count).map { index in
      DocumentKey(collection: try store.collectionName(report[index].collection), id: report[index].key)
    }
  }

  private func expectMerged(_ history: History) throws {
    let partition = try #require(try store.partition(history.partition)).number
    var expected: [DocumentKey: [AcceptedWrite]] = [:]
    for change in history.changes {
      for write in change.writes {
        expected[DocumentKey(collection: write.collection, id: write.id), default: []]
          .append(AcceptedWrite(change.context, write))
      }
    }
    #expect(try store.database.integer("SELECT count(*) FROM documents") == Int64(expected.count))
    for (key, writes) in expected {
      let collection = try #require(try store.collectionNumber(key.collection))
      let row = try #require(try store.document(partition, collection, key: key.id))
      let state = DocumentState.merged(of: writes)
      #expect(try DocumentState(stored: row) == state)
      #expect(row.isAlive == state.isAlive)
    }
  }
}
