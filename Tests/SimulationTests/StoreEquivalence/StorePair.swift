import Engine
import Replication
import SimulatedDisk
import Storage
import Testing

@testable import Simulation

/// The real store on a simulated disk and the one in memory, which get the same calls.
final class StorePair {
  private(set) var disk = SimulatedDisk()
  private(set) var real: Store
  private(set) var memory: MemoryStore
  let seed: UInt64
  /// Calls made on each of both.
  private(set) var callCount = 0
  /// How often transactions ended in which way.
  private(set) var ends: [String: Int] = [:]

  init(seed: UInt64) throws {
    self.seed = seed
    real = try StorePair.open(disk)
    memory = MemoryStore(MemoryImage(storeID: real.id))
  }

  private static func open(_ disk: SimulatedDisk) throws -> Store {
    var options = StoreOptions()
    options.fileLayer = disk.name
    options.pageByteCount = 4_096
    options.makeStoreID = { UUIDValue(high: 1, low: 2) }
    return try Store.open(
      directory: "/simulated", fleet: EquivalenceWorld.fleet, device: DeviceID(EquivalenceWorld.digest(2)),
      options: options)
  }

  enum Trouble { case none, full, failedSync }

  /// What a transaction, or one call, came to.
  struct Outcome: Equatable {
    var answers: [AnyHashable] = []
    /// The case of the error, without its text.
    var error: String?
    var isFatal = false
  }

  /// Answers whether it was committed.
  @discardableResult
  func transact(_ steps: [EquivalenceStep], trouble: Trouble = .none) -> Bool {
    let expected = prepared(trouble) { perform(steps, on: real) }
    let outcome = perform(steps, on: memory)
    memory.beforeCommit = nil
    if outcome != expected {
      let names = steps.map(\.name)
      Issue.record("seed \(seed): \(difference(outcome, expected, names)) of \(names)")
    }
    ends[expected.error ?? "committed", default: 0] += 1
    return expected.error == nil
  }

  private func prepared(_ trouble: Trouble, _ body: () -> Outcome) -> Outcome {
    switch trouble {
    case .none: break
    case .full:
      disk.fail(.full, atOperation: disk.operations.changes + 1)
      memory.beforeCommit = { throw StoreError.diskFull("simulated") }
    case .failedSync:
      disk.failSyncs()
      memory.beforeCommit = { throw StoreError.inputOutput("simulated") }
    }
    defer { disk.heal() }
    return body()
  }

  private func perform(_ steps: [EquivalenceStep], on store: any LogStore) -> Outcome {
    var outcome = Outcome()
    do {
      try store.transact(isBacklog: false) { transaction in
        for step in steps {
          callCount += 1
          outcome.answers.append(try step.run(transaction))
        }
      }
    } catch {
      outcome.error = StorePair.kind(of: error)
      outcome.isFatal = (error as? any StoreFailure)?.isFatal ?? false
    }
    return outcome
  }

  private static func kind(of error: any Error) -> String {
    guard error is StoreError else { return "\(type(of: error))" }
    return Mirror(reflecting: error).children.first?.label ?? "\(error)"
  }

  private func difference(_ a: Outcome, _ b: Outcome, _ names: [String]) -> String {
    guard a.error == b.error else { return "in memory \(a.error ?? "committed"), on disk \(b.error ?? "committed")" }
    guard let index = zip(a.answers, b.answers).enumerated().first(where: { $0.element.0 != $0.element.1 })?.offset
    else { return "other number of answers" }
    return "at \(index) \(names[index]): in memory \(a.answers[index]), on disk \(b.answers[index])"
  }

  /// Everything that can be asked is answered alike.
  func compareAll(_ world: EquivalenceWorld) throws {
    for (name, ask) in world.questionsAboutAll() {
      callCount += 1
      let (found, expected) = (try ask(memory), try ask(real))
      if found != expected { Issue.record("seed \(seed), \(name): in memory \(found), on disk \(expected)") }
    }
    #expect(memory.totals == real.totals, "seed \(seed)")
    #expect(memory.hasFailed == real.hasFailed, "seed \(seed)")
    #expect(memory.storeID == real.storeID)
    let contacts = try real.peers().map { peer in
      let addresses = Dictionary(uniqueKeysWithValues: peer.addresses.map { (Text($0.text), $0.lastUsed) })
      return (peer.device, MemoryContact(lastContact: peer.lastContact, addresses: addresses))
    }
    #expect(memory.image.contacts == Dictionary(uniqueKeysWithValues: contacts), "seed \(seed)")
  }

  /// The next start, of a process that ended or of a machine that lost its power.
  func restart(_ restart: Restart) throws {
    disk = disk.afterRestart(restart)
    real = try StorePair.open(disk)
    memory = MemoryStore(memory.committed)
  }
}
