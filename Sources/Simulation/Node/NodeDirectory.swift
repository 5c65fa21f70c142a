import Engine
import Replication
import SimulatedDisk
import Storage

/// What a node has while no process runs: its store, and the mark beside it that vouches for the replica.
struct NodeDirectory {
  /// As the file beside the store has it.
  struct Mark {
    let store: UUIDValue
    let reached: UInt64
  }

  var disk: SimulatedDisk
  var mark: Mark?
  /// What an onlooker knows to be in the store.
  var book = NodeBook()

  /// The same once more: a clone of the machine, or a state to come back to.
  func copy() -> NodeDirectory { NodeDirectory(disk: disk.copy(), mark: mark, book: book) }

  /// As restoring a backup leaves it.
  func markRestored(_ fleet: FleetID, _ device: DeviceID) {
    let store = try? open(fleet, device, storeID: .zero)
    try? store?.write(.full) { try $0.setMeta([1], for: .restored) }
  }

  /// The shipped store, on this disk.
  func open(_ fleet: FleetID, _ device: DeviceID, storeID: UUIDValue) throws -> Store {
    var options = StoreOptions()
    options.fileLayer = disk.name
    options.cacheBytes = 256 * 1024
    options.pageByteCount = 4_096
    options.logByteLimits = [.live: 256 * 1024, .catchUp: 1024 * 1024]
    options.makeStoreID = { storeID }
    return try Store.open(directory: "/node", fleet: fleet, device: device, options: options)
  }
}
