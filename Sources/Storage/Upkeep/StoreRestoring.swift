import CSQLite
import Replication

/// Puts a backup in place of a directory's store, in steps of which any may be the last before a power cut: the store that
/// was there is whole at each of them, under its own name or under the one that it is set aside by.
package struct StoreRestoring {
  package let directory: String
  /// The owner that the backup must have (S15).
  package let fleet: FleetID
  package let device: DeviceID
  /// What the present store is called from then on; must be free.
  package let asideName: String
  /// Held throughout, so that no node runs on the store.
  package let lock: DirectoryLock
  var migrations = Migration.all
  /// Called after each step.
  package var reached: (Step) throws -> Void = { _ in }

  package enum Step: String, CaseIterable, Sendable {
    case copied, folded, named, setAside, logSetAside, placed
  }

  /// The backup's copy, whole, until it gets the store's name.
  package static let fileName = Store.fileName + ".restoring"

  package init(directory: String, fleet: FleetID, device: DeviceID, asideName: String, lock: DirectoryLock) {
    (self.directory, self.fleet, self.device) = (directory, fleet, device)
    (self.asideName, self.lock) = (asideName, lock)
  }

  private var present: String { directory + "/" + Store.fileName }
  private var log: String { present + "-wal" }
  private var copy: String { directory + "/" + StoreRestoring.fileName }
  private var aside: String { directory + "/" + asideName }

  /// Answers where the present store, or a log that stood there without one, is now; nil where there was neither.
  package func run(from backup: String, progress: (Int, Int) -> Void = { _, _ in }) throws -> String? {
    try makeCopy(of: backup, progress)
    try reached(.copied)
    if !FileSystem.isEmpty(present) { foldLog() }
    try reached(.folded)
    // It could not be folded, or has no database.
    let isLogLeft = !FileSystem.isEmpty(log)
    let isStoreLeft = !FileSystem.isEmpty(present)
    if isStoreLeft { try setStoreAside(isLogLeft: isLogLeft) }
    try reached(.setAside)
    try setLogAside()
    try reached(.logSetAside)
    try FileSystem.rename(copy, to: present)
    try FileSystem.sync(directory)
    try reached(.placed)
    return isStoreLeft ? aside : isLogLeft ? aside + "-wal" : nil
  }

  /// Checked before anything else is touched.
  private func makeCopy(of backup: String, _ progress: (Int, Int) -> Void) throws(StoreError) {
    guard FileSystem.exists(backup) else { throw .missing(path: backup) }
    for path in [aside, aside + "-wal"] where FileSystem.exists(path) { throw .alreadyExists(path: path) }
    let source = try Database(path: backup, access: .readOnly)
    try StoreBackup.verify(source, migrations)
    guard try source.store(of: fleet, device) != nil else { throw .notAStore(path: backup) }
    // Of an attempt that was cut off: it has its content from a backup, and nothing was written to it.
    try FileSystem.remove(copy)
    try StoreBackup.copy(source, to: copy, in: StoreFiles(layer: nil), progress: progress)
  }

  /// One file to set aside instead of two. A store that does not take it, being damaged or the disk full, keeps its log.
  private func foldLog() {
    guard let database = try? Database(path: present, access: .readWrite) else { return }
    _ = seamesh_sqlite_checkpoint_on_close(database.handle, 0)
    _ = try? database.string("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  /// A store without a log keeps its name until the copy takes that; one with a log must not be seen without it.
  private func setStoreAside(isLogLeft: Bool) throws {
    if isLogLeft {
      _ = try FileSystem.addName(aside + "-wal", to: log)
      try reached(.named)
    } else if try FileSystem.addName(aside, to: present) {
      return try FileSystem.sync(directory)
    }
    try FileSystem.move(present, to: aside)
    try FileSystem.sync(directory)
  }

  /// A log that is left would be taken for the copy's. Its index is made anew from it.
  private func setLogAside() throws(StoreError) {
    if FileSystem.isEmpty(log) || FileSystem.exists(aside + "-wal") {
      try FileSystem.remove(log)
    } else {
      try FileSystem.move(log, to: aside + "-wal")
    }
    try FileSystem.remove(present + "-shm")
    try FileSystem.sync(directory)
  }
}
