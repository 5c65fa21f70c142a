import Engine
import Replication
import SimulatedDisk
import Storage

/// What a node has while no process runs: its store, and the mark beside it that vouches for the replica.
struct NodeDirectory {
  /// As the file beside the store has it.
  struct Mark {
    let store: UUIDValue
    let replica: Incarnation?
    let resting: [RestingReplica]
    let reached: UInt64
  }

  var medium: NodeMedium
  var mark: Mark?
  /// In a file beside the store: what a forwarder remembers of the ledger.
  var forwardingNote: String?
  /// What an onlooker knows to be in the store.
  var book = NodeBook()

  /// The same once more, as a cut of the power would leave it: a clone of the machine, or a state to come back to.
  func copy() -> NodeDirectory {
    NodeDirectory(medium: medium.copy(), mark: mark, forwardingNote: forwardingNote, book: book)
  }

  /// As restoring a backup leaves it.
  ///
  /// - Parameter copy: tells the log that goes on from there from all others.
  mutating func markRestored(_ fleet: FleetID, _ device: DeviceID, copy: UInt64) {
    switch medium {
    case .disk:
      let store = try? medium.open(fleet, device, storeID: .zero) as? Store
      try? store?.write(.full) { transaction in
        try transaction.setMeta([1], for: .restored)
        try transaction.setInteger(copy, for: .copy)
      }
    case .memory(let store):
      var image = store.committed
      image.own.isRestored = true
      medium = .memory(MemoryStore(image))
    }
  }
}

/// Where a store lies: the shipped one on a simulated disk, or its fast stand-in.
enum NodeMedium {
  case disk(SimulatedDisk)
  case memory(MemoryStore)

  func open(_ fleet: FleetID, _ device: DeviceID, storeID: UUIDValue) throws -> any LogStore & LogTransaction {
    switch self {
    case .memory(let store): return store
    case .disk(let disk):
      var options = StoreOptions()
      options.fileLayer = disk.name
      options.cacheBytes = 256 * 1024
      options.pageByteCount = 4_096
      options.logByteLimits = [.live: 256 * 1024, .catchUp: 1024 * 1024]
      options.makeStoreID = { storeID }
      return try Store.open(directory: "/node", fleet: fleet, device: device, options: options)
    }
  }

  func copy() -> NodeMedium { afterRestart(.lost) }

  /// As the next start finds it.
  func afterRestart(_ restart: Restart) -> NodeMedium {
    switch self {
    case .disk(let disk): .disk(disk.afterRestart(restart))
    case .memory(let store): .memory(MemoryStore(store.committed))
    }
  }

  // MARK: Faults

  func cutPower() { if case .disk(let disk) = self { disk.cutPower() } }

  func heal() {
    switch self {
    case .disk(let disk): disk.heal()
    case .memory(let store): store.beforeCommit = nil
    }
  }

  /// The disk fails for good after so many operations; where there is no disk, with the next commit.
  func failSoon(operations: Int) {
    switch self {
    case .disk(let disk): disk.fail(.inputOutput, atOperation: disk.operations.changes + operations)
    case .memory(let store):
      store.keepsFailedCommit = operations % 2 == 0
      store.beforeCommit = { throw StoreError.inputOutput("simulated") }
    }
  }

  /// The power goes after so many operations. False where there is no disk.
  func losePowerSoon(operations: Int) -> Bool {
    guard case .disk(let disk) = self else { return false }
    disk.fail(.crash, atOperation: disk.operations.changes + operations)
    return true
  }

  /// What is written now takes so long; after so many operations, if any, there is no room any more.
  func prepareWrite(refusedAfter operations: Int?, millisecondsPerSync: UInt64) throws {
    switch self {
    case .disk(let disk):
      disk.millisecondsPerSync = millisecondsPerSync
      disk.makeRoom()
      if let operations, disk.plannedFault == nil {
        disk.fail(.full, atOperation: disk.operations.changes + operations)
      }
    case .memory(let store):
      guard let operations, store.beforeCommit == nil else { return }
      if operations % 2 == 0 { throw StoreError.diskFull("simulated") }
      store.beforeCommit = { [unowned store] in
        store.beforeCommit = nil
        throw StoreError.diskFull("simulated")
      }
    }
  }

  func takeDelay() -> UInt64 {
    if case .disk(let disk) = self { disk.takeDelay() } else { 0 }
  }
}
