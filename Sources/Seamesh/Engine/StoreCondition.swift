import Replication
import Storage
import Synchronization

/// Whether the store can be relied on. Told by whoever reads or writes it, asked by whoever keeps the process.
final class StoreCondition: Sendable {
  private let first = Mutex<NodeError?>(nil)
  private let log: NodeLog

  init(_ log: NodeLog) { self.log = log }

  /// Why it is to be closed, looked at and opened again; nil while nothing is wrong with it.
  var failure: NodeError? { first.withLock { $0 } }

  func note(_ error: any Error) {
    let error = NodeError(any: error)
    first.withLock { $0 = $0 ?? error }
  }

  /// Of what a reader met: its own limits and the rows of single documents are no matter of the store.
  func noteRead(_ error: StoreError) {
    switch error {
    case .damaged, .inputOutput:
      log.error("reading the store failed", ["reason": "\(error)"])
      note(error)
    default: break
    }
  }
}

extension Node {
  /// The disk or the database failed: the node answers what it still can, and is to be stopped, its store looked at, and
  /// started again. A file that was deleted or replaced is no such case: opening again would not bring it back.
  package var storeFailure: NodeError? { condition.failure }

  package var listenPort: UInt16? { endpoints.listen.first?.port }

  /// Reads all of the store of a directory in which no node runs. Throws what is wrong with it.
  package static func verifyStore(in directory: String) throws(NodeError) {
    do throws(StoreError) {
      let lock = try DirectoryLock(directory: directory)
      try withExtendedLifetime(lock) { () throws(StoreError) in
        try StoreBackup.verify(directory + "/" + Store.fileName)
      }
    } catch {
      throw NodeError(error)
    }
  }
}
