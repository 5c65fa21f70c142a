import Synchronization

/// A copy that is read into a file beside the store first, and brought to its place from there: the write-ahead log is held for
/// as long as the store's own disk takes, not for as long as a slow stick does.
final class BackupStage {
  private let path: String
  private let files: StoreFiles

  /// Beside the store, and gone with the next opening if a copy is cut off.
  static let suffix = ".copying"
  /// Between two reports of progress.
  private static let stepByteCount = 1024 * 1024
  /// Beside the copy itself.
  private static let spareBytes: Int64 = 256 * 1024 * 1024
  /// Stores of which a copy is on its way: a second one at a time goes directly.
  private static let taken = Mutex<Set<String>>([])

  /// Nil where the copy is to go directly.
  init?(beside store: String, for path: String, _ files: StoreFiles, _ way: StoreBackup.Way) {
    switch way {
    case .direct: return nil
    case .staged: break
    case .whicheverFits:
      guard files.layer == nil, let here = FileSystem.identity(store),
        let there = FileSystem.identity(FileSystem.parent(path)), here.device != there.device,
        let space = try? DiskSpace.of(FileSystem.parent(store)),
        let size = files.size(store), space.availableBytes > size &+ BackupStage.spareBytes
      else { return nil }
    }
    guard BackupStage.taken.withLock({ $0.insert(store).inserted }) else { return nil }
    (self.path, self.files) = (store + BackupStage.suffix, files)
  }

  deinit {
    try? files.remove(path)
    _ = BackupStage.taken.withLock { $0.remove(String(path.dropLast(BackupStage.suffix.count))) }
  }

  func write(_ store: String, to target: String, _ progress: (Int, Int) -> Void) throws(StoreError) {
    for suffix in ["", "-journal"] { try files.remove(path + suffix) }
    var pages = 0
    do {
      let source = try StoreBackup.source(store, files)
      try StoreBackup.fill(path, from: source, in: files) { done, all in
        pages = all
        progress(done, 2 * all)
      }
    }
    let size = max(1, files.size(path) ?? 1)
    try StoreBackup.place(at: target, as: PartialName.free(for: target, files), in: files) {
      partial throws(StoreError) in
      try FileSystem.copy(path, to: partial, stepByteCount: BackupStage.stepByteCount) { bytes in
        progress(pages + Int(clamping: Int64(pages) * min(bytes, size) / size), 2 * pages)
      }
    }
  }
}
