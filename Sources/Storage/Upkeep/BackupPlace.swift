import Synchronization

/// Where a copy is to come. One at a time in a process: a backup whose command has ended goes on.
struct BackupPlace: Hashable, Sendable {
  /// Tells apart where two spellings of a path lead.
  private let directory: FileIdentity?
  private let name: String

  private static let taken = Mutex<Set<BackupPlace>>([])

  init(_ path: String, _ files: StoreFiles) {
    directory = files.layer == nil ? FileSystem.identity(FileSystem.parent(path)) : nil
    // A layer's names are its own.
    name =
      directory == nil ? (files.layer ?? "") + ":" + path : path.split(separator: "/").last.map(String.init) ?? path
  }

  /// False where a copy is on its way there.
  func take() -> Bool { BackupPlace.taken.withLock { $0.insert(self).inserted } }

  func leave() { _ = BackupPlace.taken.withLock { $0.remove(self) } }
}

/// What a copy is called until it is whole.
enum PartialName {
  static let suffix = ".partial"
  /// The file's own, and those of what SQLite puts beside it.
  static let sideSuffixes = ["", "-journal", "-wal", "-shm"]
  /// Of names that others, or copies that were cut off, may have taken.
  private static let attempts = 1_000

  /// Makes an empty file beside `path` under the first name of which nothing is there: what lies there may be anybody's, and is
  /// left as it is.
  static func free(for path: String, _ files: StoreFiles) throws(StoreError) -> String {
    for number in 1...attempts {
      let partial = path + suffix + "-\(number)"
      // A journal that lies there would be taken for the copy's.
      guard !sideSuffixes.contains(where: { files.exists(partial + $0) }) else { continue }
      if try files.makeNewFile(partial) { return partial }
    }
    throw .alreadyExists(path: path + suffix + "-\(attempts)")
  }
}
