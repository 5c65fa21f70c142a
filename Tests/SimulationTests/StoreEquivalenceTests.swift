import Engine
import Replication
import SimulatedDisk
import Storage
import TestSupport
import Testing

@testable import Simulation

/// What the simulator finds over the store in memory holds for the real one as far as both answer alike.
@Suite("The store in memory answers as the real one") struct StoreEquivalenceTests {
  static let seeds = UInt64(1)...300

  @Test("random calls get the same answers and errors, over failed transactions, forks, rebuilds and restarts")
  func randomCalls() throws {
    var calls = 0
    var ends: [String: Int] = [:]
    for seed in Self.seeds {
      let pair = try run(seed)
      calls += pair.callCount
      ends.merge(pair.ends, uniquingKeysWith: +)
    }
    #expect(calls > 40_000)
    for end in ["committed", "Interruption", "outOfRange", "damaged", "diskFull", "inputOutput"] {
      #expect(ends[end, default: 0] > 10, "\(end): \(ends)")
    }
  }

  private func run(_ seed: UInt64) throws -> StorePair {
    let pair = try StorePair(seed: seed)
    var world = try EquivalenceWorld(seed: seed)
    for _ in 0..<16 {
      try transaction(pair, &world)
      if world.chance(3) || pair.real.hasFailed { try pair.compareAll(world) }
      if pair.real.hasFailed || world.chance(12) { try pair.restart(pair.real.hasFailed ? .lost : .cached) }
    }
    try pair.compareAll(world)
    try pair.restart(.lost)
    try pair.compareAll(world)
    return pair
  }

  /// Where it fails, what was drawn for it has not happened.
  private func transaction(_ pair: StorePair, _ world: inout EquivalenceWorld) throws {
    let before = world
    var steps = try world.plan(writes: world.number(1..<8))
    let refused = world.chance(5) ? world.refusedStep() : nil
    if let refused {
      steps = steps.prefix(world.number(0..<steps.count + 1)) + [refused]
    }
    let trouble: StorePair.Trouble = world.chance(15) ? (world.chance(2) ? .full : .failedSync) : .none
    // A transaction that changes nothing needs no disk.
    if trouble != .none, refused == nil { steps.append(EquivalenceWorld.timestampStep(world.random.next())) }
    if !pair.transact(steps, trouble: refused == nil ? trouble : .none) {
      let random = world.random
      world = before
      world.random = random
    }
  }

  // MARK: Limits

  @Test("statements end at their limit, with an error that is not fatal")
  func statementLimit() throws {
    let pair = try StorePair(seed: 0)
    let all = (0..<UInt64(Statement.countLimit)).map { number in
      EquivalenceStep(writing: "statement") { try $0.add(EquivalenceWorld.statement(number)) }
    }
    #expect(pair.transact(all))
    #expect(!pair.transact([all[0]]))
    #expect(pair.ends["limitReached"] == 1 && !pair.memory.hasFailed)
    try pair.compareAll(try EquivalenceWorld(seed: 0))
  }

  @Test("of too many contacts those longest unseen are forgotten")
  func contactLimit() throws {
    let pair = try StorePair(seed: 0)
    let steps = (0..<UInt64(StoredPeer.countLimit + 50)).map { number in
      EquivalenceStep(writing: "contact") {
        try $0.noteContact(DeviceID(EquivalenceWorld.digest(number)), address: "a", time: Int64(number % 7))
      }
    }
    #expect(pair.transact(steps))
    #expect(pair.memory.image.contacts.count == StoredPeer.countLimit)
    try pair.compareAll(try EquivalenceWorld(seed: 0))
  }

  @Test("a commit that failed fatally may have reached the disk: the next start shows it")
  func unknownCommit() throws {
    for isKept in [true, false] {
      let store = MemoryStore(MemoryImage(storeID: UUIDValue(high: 1, low: 1)))
      store.keepsFailedCommit = isKept
      store.beforeCommit = { throw StoreError.inputOutput("simulated") }
      #expect(throws: StoreError.inputOutput("simulated")) {
        try store.transact(isBacklog: false) { try $0.subscribe("a") }
      }
      #expect(try store.hasFailed && store.subscriptions() == [])
      #expect(throws: StoreError.inputOutput("simulated")) { try store.transact(isBacklog: false) { _ in } }
      #expect(try MemoryStore(store.committed).subscriptions() == (isKept ? ["a"] : []))
    }
  }

  @Test("a crash within a transaction leaves what was committed before, and copies do not show in one another")
  func crashWithin() throws {
    let store = MemoryStore(MemoryImage(storeID: UUIDValue(high: 1, low: 1)))
    try store.transact(isBacklog: false) { try $0.subscribe("a") }
    let copy = MemoryStore(store.image)
    try store.transact(isBacklog: false) { transaction in
      try transaction.subscribe("b")
      #expect(try MemoryStore(store.committed).subscriptions() == ["a"])
      #expect(try transaction.subscriptions() == ["a", "b"])
    }
    #expect(try store.subscriptions() == ["a", "b"] && copy.subscriptions() == ["a"])
  }
}

extension EquivalenceWorld {
  fileprivate static func timestampStep(_ value: UInt64) -> EquivalenceStep {
    EquivalenceStep(writing: "timestamp") {
      try $0.setProgress(commits: value, timestamp: HybridTimestamp(rawValue: value))
    }
  }
}
