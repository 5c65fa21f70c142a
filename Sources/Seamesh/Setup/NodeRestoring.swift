import Glibc
import Identity
import Replication
import Storage

extension NodeSetup {
  /// Puts a backup of this device's store in place of the present one, which is set aside beside it. The node then goes on
  /// under a new replica id: what was written after the backup comes back from its peers (S6).
  ///
  /// Answers where the present store was put, if there was one. `progress` gets pages done and pages in all.
  package static func restore(
    _ path: String, from backup: String, progress: (Int, Int) -> Void
  ) throws(NodeError) -> String? {
    do {
      guard isSetUp(path) else {
        throw NodeError(
          .notFound, "\(path) is no node's directory: put device.key, fleet.id and admission.secret of the device there"
        )
      }
      let directory = try DataDirectory(existing: path)
      let files = try NodeFiles.load(directory)
      try verify(backup)
      let aside = try setAside(directory)
      do {
        try StoreBackup.restore(from: backup, into: path, progress: progress)
        // Opening refuses the store of another fleet or device.
        _ = try Store.open(directory: path, fleet: files.fleet, device: files.device)
      } catch {
        try putBack(aside, directory)
        throw error
      }
      return aside
    } catch {
      throw NodeError(any: error)
    }
  }

  private static func verify(_ backup: String) throws(NodeError) {
    do throws(StoreError) {
      try StoreBackup.verify(backup)
    } catch {
      switch error {
      case .missing: throw NodeError(.notFound, "there is no backup at \(backup)")
      case .damaged, .notAStore, .inputOutput, .sqlite:
        throw NodeError(
          .unprocessable, "\(backup) is damaged, or no backup of seamesh; the present store stays as it is")
      default: throw NodeError(error)
      }
    }
  }

  private static let storeSuffixes = ["", "-wal"]

  /// Under the directory's lock, so that no node runs on the store.
  private static func setAside(_ directory: DataDirectory) throws -> String? {
    let lock = try DirectoryLock(directory: directory.path)
    defer { withExtendedLifetime(lock) {} }
    let present = directory.file(Store.fileName)
    guard access(present, F_OK) == 0 else { return nil }
    let aside = "\(present).before-restore-\(WallClock.milliseconds)"
    for suffix in storeSuffixes where access(present + suffix, F_OK) == 0 {
      guard rename(present + suffix, aside + suffix) == 0 else {
        throw NodeError(.failed, "the present store could not be set aside: \(String(cString: strerror(errno)))")
      }
    }
    unlink(present + "-shm")
    return aside
  }

  private static func putBack(_ aside: String?, _ directory: DataDirectory) throws {
    let present = directory.file(Store.fileName)
    for suffix in ["", "-wal", "-shm"] { unlink(present + suffix) }
    guard let aside else { return }
    for suffix in storeSuffixes where access(aside + suffix, F_OK) == 0 { rename(aside + suffix, present + suffix) }
  }
}
