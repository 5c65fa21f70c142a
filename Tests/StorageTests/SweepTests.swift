import Replication
import SimulatedDisk
import Testing

@testable import Storage

/// Each operation of a store with a fault at each of its calls to the disk: afterwards the store holds what it held, or
/// all of what the operation brings; and the latter where it was acknowledged (I1–I8, as far as storage shows them).
@Suite struct SweepTests {
  /// After errors the process lives on, so that most of what a restart can show is the same for all of them.
  private static let restarts: [DiskFault: [Restart]] = [
    .crash: [.cached, .lost, .kept, .torn(seed: 1), .torn(seed: 2)], .inputOutput: [.cached, .lost, .torn(seed: 3)],
    .full: [.lost], .readOnly: [.torn(seed: 4)],
  ]
  private let history = SweepHistory()

  private struct Case {
    let operation: SweepOperation
    let base: SimulatedDisk
    let before: StorePicture?
    let after: StorePicture?
    let fault: DiskFault
    let place: Int
  }

  @Test("a fault at any call to the disk leaves all or nothing of an operation", arguments: SweepOperation.all)
  func everyCall(operation: SweepOperation) throws {
    let base = try prepare(operation.start)
    let untouched = base.copy()
    if operation.start == .running { try start(SweepSession(untouched)) }
    let before = try look(untouched, operation, isReference: true)
    let done = base.copy()
    try act(operation, done)
    let after = try look(done, operation, isReference: true)
    var cases = 0
    for fault in DiskFault.allCases {
      var place = 1
      while try run(
        Case(operation: operation, base: base, before: before, after: after, fault: fault, place: place), &cases)
      { place += 1 }
    }
    print("sweep: \(operation.name): \(cases) cases")
    #expect(cases > 8)
  }

  /// The disk before the operation; where the store is running, what an ended process leaves of it.
  private func prepare(_ start: SweepOperation.Start) throws -> SimulatedDisk {
    let disk = SimulatedDisk()
    guard start != .nothing else { return disk }
    let session = SweepSession(disk)
    try session.open()
    try session.write { transaction in
      try history.put(history.history.changes.prefix(SweepHistory.present), transaction)
      try transaction.subscribe("agency=*")
    }
    if start == .running { return disk.copy() }
    session.store = nil
    return disk.copy()
  }

  /// Opens the store, and leaves something in its log.
  private func start(_ session: SweepSession) throws {
    try session.open()
    try session.write { try $0.subscribe("agency=1") }
  }

  private func act(_ operation: SweepOperation, _ disk: SimulatedDisk) throws {
    let session = SweepSession(disk)
    if operation.start == .running { try start(session) }
    try operation.act(session, history)
  }

  /// Answers whether the fault was met.
  private func run(_ each: Case, _ cases: inout Int) throws -> Bool {
    let disk = each.base.copy()
    let session = SweepSession(disk)
    if each.operation.start == .running { try start(session) }
    disk.fail(each.fault, atOperation: disk.operations.changes + each.place)
    var acknowledged = false
    do {
      try each.operation.act(session, history)
      acknowledged = true
    } catch let error as StoreError {
      if [.full, .readOnly].contains(each.fault) {
        try goOn(session, each, error)
        acknowledged = true
      }
    }
    guard disk.faultsHit > 0 else { return false }
    for restart in SweepTests.restarts[each.fault] ?? [] {
      try examine(disk.afterRestart(restart), each, acknowledged, "\(restart)")
      cases += 1
    }
    return true
  }

  /// With room again the same process succeeds, whatever the failed attempt left in memory.
  private func goOn(_ session: SweepSession, _ each: Case, _ error: StoreError) throws {
    let label = "\(each.operation.name), \(each.fault) at \(each.place): \(error)"
    switch (each.fault, error) {
    case (.full, .diskFull), (.readOnly, .readOnly): break
    default: Issue.record("not named as what it is: \(label)")
    }
    session.disk.heal()
    do { try each.operation.act(session, history) } catch { Issue.record("\(error) when tried again: \(label)") }
  }

  private func examine(_ disk: SimulatedDisk, _ each: Case, _ acknowledged: Bool, _ restart: String) throws {
    let label = "\(each.operation.name), \(each.fault) at \(each.place), \(restart), acknowledged: \(acknowledged)"
    let found = try look(disk, each.operation, goesOn: restart == "\(Restart.cached)")
    let expected = acknowledged ? [each.after] : [each.before, each.after]
    #expect(expected.contains { $0 == found }, "\(label)")
    if each.operation.name == "back up", acknowledged || disk.fileNames.contains("copy") {
      #expect(throws: Never.self, "\(label)") { try verifyCopy(disk, "copy") }
    }
    if each.operation.name == "migrate", acknowledged {
      #expect(throws: Never.self, "\(label)") { try verifyCopy(disk, Store.fileName + ".format5") }
    }
  }

  private func verifyCopy(_ disk: SimulatedDisk, _ name: String) throws {
    let other = SimulatedDisk()
    other.setContents(of: Store.fileName, to: disk.contents(of: name))
    let session = SweepSession(other)
    try expectSound(try session.open(), history.history)
    #expect(try session.store?.meta(.restored) == [1])
  }

  /// What the next start finds; nil without a store. `isReference`: what others are held against is looked at closely,
  /// so that whatever equals it is sound as well. `goesOn`: a later write succeeds and outlives the power.
  private func look(
    _ disk: SimulatedDisk, _ operation: SweepOperation, isReference: Bool = false, goesOn: Bool = false
  ) throws -> StorePicture? {
    guard disk.fileNames.contains(Store.fileName) || operation.start == .nothing else { return nil }
    let session = SweepSession(disk)
    let store = try session.open(migrations: operation.migrations)
    let picture = try StorePicture(store)
    #expect(try store.database.string("PRAGMA integrity_check") == "ok")
    if isReference { try expectSound(store, history.history) }
    guard goesOn else { return picture }
    try session.write { try $0.subscribe("later") }
    let next = SweepSession(disk.afterRestart(.lost))
    #expect(try next.open(migrations: operation.migrations).subscriptions().contains("later"))
    return picture
  }
}
