import Replication
import Seamesh
import Transport

/// Whether a node whose store failed may start again in this process: once, if all of its store reads. A disk that fails
/// again soon is nothing that opening helps against.
struct StoreReopening {
  let directory: String
  /// Looks at all of a store.
  var verify: (String) throws(NodeError) -> Void = { directory throws(NodeError) in
    try Node.verifyStore(in: directory)
  }
  private var lastAt: MonotonicTime?

  /// A failure after so long is another one.
  static let onceMilliseconds: UInt64 = 24 * 3_600 * 1_000

  init(directory: String) { self.directory = directory }

  /// Throws where the process is to end.
  mutating func look(after failure: NodeError, now: MonotonicTime) throws(Failure) {
    if let lastAt, now.millisecondsSince(lastAt) < StoreReopening.onceMilliseconds {
      throw StoreReopening.failure(failure, directory)
    }
    lastAt = now
    do throws(NodeError) { try verify(directory) } catch { throw StoreReopening.failure(error, directory) }
  }

  static func failure(_ error: NodeError, _ directory: String) -> Failure {
    Failure(
      .storeFailed,
      "\(error.message); check the disk, then put a backup back with seamesh restore, or move seamesh.db and seamesh.db-wal "
        + "in \(shown(directory)) aside together and start again: what peers hold is fetched anew")
  }
}
