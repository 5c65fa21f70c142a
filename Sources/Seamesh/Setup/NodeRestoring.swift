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
      let contents = DirectoryContents(path)
      guard contents.standing != .empty else {
        throw NodeError(
          .notFound, "\(path) is no node's directory: put device.key and fleet.id of the device there")
      }
      if let refusal = contents.nodeRefusal { throw refusal }
      let directory = try DataDirectory(existing: path)
      let files = try NodeFiles.load(directory)
      let lock = try DirectoryLock(directory: path)
      try verify(backup)
      let aside = try StoreRestoring(
        directory: path, fleet: files.fleet, device: files.device, asideName: asideName(in: directory), lock: lock
      ).run(from: backup, progress: progress)
      // The store that a ledger was to fill is set aside now.
      try PrivateFile.remove(directory.file(LedgerFilling.markerFile))
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

  /// The store that was there before a restore begins its file's name with this.
  static let setAsidePrefix = "\(Store.fileName).before-restore-"

  /// By the time, and a number where two restores fall into one second.
  private static func asideName(in directory: DataDirectory) -> String {
    let name = setAsidePrefix + WallClock.stamp
    let names = [name] + (2...99).map { "\(name)-\($0)" }
    func isFree(_ name: String) -> Bool {
      ["", "-wal"].allSatisfy { access(directory.file(name) + $0, F_OK) != 0 }
    }
    return names.first(where: isFree) ?? name
  }
}
