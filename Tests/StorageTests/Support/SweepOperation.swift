import Identity
import Replication
import SimulatedDisk
import Testing
import Wire

@testable import Storage

/// A disk with a store on it, as one process uses it.
final class SweepSession {
  let disk: SimulatedDisk
  var store: Store?

  init(_ disk: SimulatedDisk) { self.disk = disk }

  static let directory = "/simulated"
  static let copyPath = directory + "/copy"
  static let second = Migration(version: 6, sql: "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT")

  @discardableResult
  func open(migrations: [Migration] = Migration.all) throws -> Store {
    var options = StoreOptions()
    options.fileLayer = disk.name
    options.pageByteCount = 4_096
    options.migrations = migrations
    options.makeStoreID = { UUIDValue(high: 7, low: 8) }
    let opened = try Store.open(
      directory: SweepSession.directory, fleet: testFleet, device: testDevice, options: options)
    store = opened
    return opened
  }

  func write(_ body: (borrowing Transaction) throws -> Void) throws {
    guard let store else { throw StoreError.missing(path: SweepSession.directory) }
    try store.write(.full, body)
  }
}

/// Something that a node does with its store.
struct SweepOperation: Sendable, CustomTestStringConvertible {
  var testDescription: String { name }

  enum Start { case nothing, closed, running }

  let name: String
  var start = Start.running
  /// The format that the next start knows.
  var migrations: [Migration] = Migration.all
  let act: @Sendable (SweepSession, SweepHistory) throws -> Void
}

/// What the swept store holds before an operation, and what comes next.
struct SweepHistory: Sendable {
  /// Changes that are there from the start.
  static let present = 24
  let history = History(seed: 5, changes: 40)

  func put(_ changes: ArraySlice<HistoryChange>, _ transaction: borrowing Transaction) throws {
    let partition = try transaction.number(of: history.partition, name: PartitionName("agency=Test"))
    for change in changes {
      try change.append(to: transaction, partition, history)
      let number = try transaction.number(of: change.dot.replica, in: partition, genesis: .zero)
      let mark = ChainMark(sequence: change.dot.sequence, hash: digest(change.dot.sequence))
      try transaction.setMarks(of: number, received: mark, accepted: mark)
    }
    _ = try DocumentFold.fold(AcceptedBatch(try changes.map { try $0.accepted(in: partition) }), in: transaction)
  }

  /// The `number`-th write of an own replica, to one document of a collection that is new with it.
  func own(_ number: UInt64, _ kind: DocumentWrite.Kind, _ transaction: borrowing Transaction) throws {
    let operations = kind == .delete ? [] : [Operation(.set, [.key("name")], value: .int(Int64(number)))]
    let write = DocumentWrite(
      collection: "own", id: .int(1), kind: kind, generation: kind == .delete ? 2 : 1, operations: operations)
    let context = WriteContext(
      dot: Dot(replica: replica(8), sequence: number), timestamp: HybridTimestamp(rawValue: 1 << 40 + number),
      context: vector([:]))
    try put([HistoryChange(context: context, writes: [write])], transaction)
    try transaction.setInteger(number, for: .ownCommits)
  }

  /// Chain 2 counts only half as far as before, and its documents are made anew.
  func fall(_ transaction: borrowing Transaction) throws {
    let partition = try transaction.number(of: history.partition)
    var accepted = VersionVector()
    for chain in try transaction.chains(of: partition) {
      let falls = chain.replica == history.replicas[1]
      let sequence = falls ? chain.received.sequence / 2 : chain.accepted.sequence
      accepted[chain.replica] = ChainPosition(sequence: sequence, tip: .zero)
      let mark = ChainMark(sequence: sequence, hash: digest(sequence))
      try transaction.setMarks(of: chain.number, received: chain.received, accepted: mark)
    }
    let keys = Set(
      history.changes.prefix(SweepHistory.present).flatMap(\.writes).map {
        DocumentKey(collection: $0.collection, id: $0.id)
      })
    _ = try DocumentFold.rebuild(keys, of: history.log(partition), in: transaction, accepted: accepted) {
      replica, header, _, context in
      WriteContext(dot: Dot(replica: replica, sequence: header.sequence), timestamp: header.timestamp, context: context)
    }
  }
}

extension SweepOperation {
  static let all: [SweepOperation] = [
    SweepOperation(name: "open a new store", start: .nothing) { session, _ in try session.open() },
    SweepOperation(name: "open an existing store", start: .closed) { session, _ in try session.open() },
    SweepOperation(name: "migrate", start: .closed, migrations: Migration.all + [SweepSession.second]) { session, _ in
      try session.open(migrations: Migration.all + [SweepSession.second])
    },
    SweepOperation(name: "write a new document") { session, history in
      try session.write { try history.own(1, .create, $0) }
    },
    SweepOperation(name: "edit") { session, history in
      try session.write { transaction in
        try history.own(1, .create, transaction)
        try history.own(2, .edit, transaction)
      }
    },
    SweepOperation(name: "delete") { session, history in
      try session.write { transaction in
        try history.own(1, .create, transaction)
        try history.own(2, .delete, transaction)
      }
    },
    SweepOperation(name: "take in a batch of runs") { session, history in
      try session.write { try history.put(history.history.changes[SweepHistory.present...], $0) }
    },
    SweepOperation(name: "make documents anew") { session, history in try session.write { try history.fall($0) } },
    SweepOperation(name: "statements") { session, _ in
      try session.write { transaction in
        for number in 0..<5 as Range<UInt64> {
          try transaction.addStatement(id: digest(number), encoded: [UInt8](repeating: 3, count: 900))
        }
      }
    },
    SweepOperation(name: "subscriptions") { session, _ in
      try session.write { transaction in
        try transaction.subscribe("agency=A")
        try transaction.subscribe("agency=B")
        try transaction.unsubscribe("agency=*")
      }
    },
    SweepOperation(name: "pieces of a large payload, then the whole") { session, _ in
      let bytes = [UInt8](repeating: 4, count: 12_000)
      try session.write { transaction in
        let keys = [3, 4].map { StagedKey(device: testDevice, partition: partitionID(1), hash: digest($0)) }
        for key in keys {
          try transaction.addPiece(bytes[...], to: StagedShare(key, total: 20_000, byteCount: 12_000))
        }
        try transaction.removePieces(keys[1])
        try transaction.addLargePayload(digest(4), bytes: bytes[...])
      }
    },
    SweepOperation(name: "renew the replica") { session, _ in
      try session.write { transaction in
        try transaction.setMeta([9], for: .replica)
        try transaction.setMeta([8], for: .replicaNonce)
        try transaction.addStatement(id: digest(9), encoded: [1, 2, 3])
      }
    },
    SweepOperation(name: "checkpoint") { session, _ in try session.store?.checkpoint() },
    SweepOperation(name: "back up") { session, _ in
      try StoreBackup.write(
        store: SweepSession.directory + "/" + Store.fileName, to: SweepSession.copyPath, fileLayer: session.disk.name)
    },
    SweepOperation(name: "close") { session, _ in
      if let store = session.store, try store.carryOverAll() { try store.closeLog() }
      session.store = nil
    },
  ]
}
