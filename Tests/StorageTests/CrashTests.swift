import Replication
import SimulatedDisk
import Testing

@testable import Storage

/// A crash or a failing disk at any operation leaves every acknowledged write, and no half one (K1, K2, K3, S1).
@Suite struct CrashTests {
  /// Transactions of the workload: each appends a run and puts in documents; some are deferred, some checkpoint.
  private static let transactions = 9
  private static let documentsEach = 3

  private struct Progress {
    /// Transactions that must be there after any crash.
    var durable = 0
    /// Transactions that may be there.
    var attempted = 0
  }

  @Test("every acknowledged write outlives a power cut at any operation, and none is there by half")
  func powerCuts() throws {
    let unsynced: [Restart] = [.cached, .lost, .kept, .torn(seed: 1), .torn(seed: 2), .torn(seed: 3)]
    let directory = try TemporaryDirectory()
    var operation = 1
    while try run(
      .crash, at: operation, in: directory,
      { disk, progress in
        for rest in unsynced { try check(disk.afterRestart(rest), progress, directory) }
      })
    { operation += 1 }
    #expect(operation > 40)
  }

  @Test("every acknowledged write is there after an input/output error at any operation and a new start")
  func inputOutputErrors() throws {
    let directory = try TemporaryDirectory()
    var operation = 1
    while try run(
      .inputOutput, at: operation, in: directory,
      { disk, progress in
        for rest in [Restart.cached, .lost, .kept, .torn(seed: 4)] {
          try check(disk.afterRestart(rest), progress, directory)
        }
      })
    { operation += 1 }
    #expect(operation > 40)
  }

  @Test(
    "a disk that fills up at any operation refuses writes and says why; once there is room the same store goes on",
    arguments: [DiskFault.full, .readOnly])
  func fullDisks(fault: DiskFault) throws {
    let directory = try TemporaryDirectory()
    var operation = 1
    while try run(
      fault, at: operation, in: directory, retries: true,
      { disk, progress in
        #expect(progress.durable >= CrashTests.transactions - 1)
        try check(disk.afterRestart(.lost), progress, directory)
        try check(disk.afterRestart(.kept), progress, directory)
      })
    { operation += 1 }
    #expect(operation > 40)
  }

  /// Answers whether the fault was met.
  private func run(
    _ fault: DiskFault, at operation: Int, in directory: TemporaryDirectory, retries: Bool = false,
    _ examine: (SimulatedDisk, Progress) throws -> Void
  ) throws -> Bool {
    let disk = SimulatedDisk()
    disk.fail(fault, atOperation: operation)
    var progress = Progress()
    do {
      try work(directory, disk, &progress) { attempt in try retrying(retries ? fault : nil, disk, attempt) }
    } catch let error as StoreError {
      #expect(!retries, "\(error) at operation \(operation)")
      #expect(error.isFatal, "\(error) at operation \(operation)")
    }
    try examine(disk, progress)
    return disk.faultsHit > 0
  }

  /// A second try once there is room again, after an error of the right kind.
  private func retrying(_ fault: DiskFault?, _ disk: SimulatedDisk, _ attempt: () throws -> Void) throws {
    do { try attempt() } catch let error as StoreError {
      switch (fault, error) {
      case (.full, .diskFull), (.readOnly, .readOnly): disk.heal()
      default: throw error
      }
      try attempt()
    }
  }

  private func work(
    _ directory: TemporaryDirectory, _ disk: SimulatedDisk, _ progress: inout Progress,
    _ attempt: (() throws -> Void) throws -> Void
  ) throws {
    var opened: Store?
    try attempt { opened = try directory.open { $0.fileLayer = disk.name } }
    let store = try #require(opened)
    for number in 1...CrashTests.transactions {
      let durability: Durability = number % 3 == 2 ? .deferred : .full
      progress.attempted = number
      try attempt { try store.write(durability) { try put(number, $0) } }
      if durability == .full { progress.durable = number }
      if number == 5 {
        try attempt { try store.makeDurable() }
        progress.durable = number
      }
      if number % 4 == 0 { try attempt { try store.checkpoint() } }
    }
  }

  private func put(_ number: Int, _ transaction: borrowing Transaction) throws {
    let place = try Place(transaction)
    let mark = ChainMark(sequence: UInt64(number), hash: digest(UInt64(number)))
    try transaction.appendRun(
      place.chain, first: UInt64(number), last: UInt64(number), context: vector([2: UInt64(number)]),
      body: [UInt8](repeating: UInt8(number), count: 3_000)[...])
    try transaction.setMarks(of: place.chain, received: mark, accepted: mark)
    for index in 0..<CrashTests.documentsEach {
      let isNew = try transaction.insertNew(
        place.partition, place.collection, key: key(number, index), state: [UInt8](repeating: 7, count: 900))
      #expect(isNew)
    }
  }

  private func key(_ number: Int, _ index: Int) -> [UInt8] { [6, UInt8(number), UInt8(index), 0] }

  /// Opens what is left and holds it against what was acknowledged.
  private func check(_ disk: SimulatedDisk, _ progress: Progress, _ directory: TemporaryDirectory) throws {
    let store = try directory.open { $0.fileLayer = disk.name }
    let chain = try store.chains().first
    let count = Int(chain?.accepted.sequence ?? 0)
    #expect(count >= progress.durable && count <= progress.attempted)
    #expect(try store.database.string("PRAGMA integrity_check") == "ok")
    guard let chain else { return }
    let runs = try store.runs(of: chain.number, after: 0, byteLimit: .max)
    #expect(runs.map(\.last) == (0..<count).map { UInt64($0 + 1) })
    for run in runs { #expect(run.context == vector([2: run.last])) }
    let partition = try #require(try store.partitions().first)
    let collection = try #require(try store.collections(of: partition.number).first)
    let documents = try store.documents(partition.number, collection.number, limit: 1_000)
    let expected = (0..<count).flatMap { number in
      (0..<CrashTests.documentsEach).map { key(number + 1, $0) }
    }
    #expect(documents.map(\.key) == expected)
    #expect(partition.counters.documents == Int64(expected.count))
    #expect(partition.counters.changes == Int64(count))
  }
}
