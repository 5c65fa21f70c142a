import Engine
import Replication
import Storage

/// The engine's log without a disk below it: the fast second implementation of the port, for runs that are not about
/// SQLite. It answers as ``Storage/Store`` does, which `StoreEquivalenceTests` holds it to.
///
/// A transaction costs what it touches: each change notes how it is taken back, and nothing is copied.
package final class MemoryStore: LogStore {
  /// As the running node sees it.
  package internal(set) var image: MemoryImage
  /// Why nothing may be written any more (K3).
  package private(set) var failure: StoreError?
  /// Called when a transaction is about to be committed. What it throws is what the disk does to the commit: the
  /// transaction is taken back, and after a fatal error nothing is written any more.
  package var beforeCommit: (() throws -> Void)?
  /// Whether a commit that fails fatally in ``beforeCommit`` has reached the disk all the same: the next start shows it.
  package var keepsFailedCommit = false
  /// Where it is not what ``image`` says.
  private var durable: MemoryImage?
  private var undo: [(inout MemoryImage) -> Void] = []
  /// Before the transaction; nil: none is open.
  private var scalars: MemoryImage.Scalars?
  /// As in SQLite's store, a transaction that fails gives back the numbers that it took.
  private(set) var nextArrival: Int64

  package init(_ image: MemoryImage) {
    self.image = image
    nextArrival = image.lastArrival + 1
  }

  package var storeID: UUIDValue { image.storeID }
  package var hasFailed: Bool { failure != nil }
  /// Everything is in its place.
  package func carryOver(_ occasion: CarryOccasion) {}
  package var carryDelay: UInt64? { nil }
  /// Of what is committed.
  package var totals: LogTotals { (scalars?.totals ?? image.totals).record }

  /// What a crash at this moment leaves.
  package var committed: MemoryImage {
    if let durable { return durable }
    var found = image
    takeBack(&found)
    return found
  }

  package func transact<Result>(
    isBacklog: Bool, _ body: (any LogTransaction) throws -> Result
  ) throws -> Result {
    if let failure { throw failure }
    precondition(scalars == nil, "a transaction inside a transaction")
    scalars = image.scalars
    do {
      let result = try body(self)
      try commit()
      return result
    } catch {
      takeBack(&image)
      nextArrival = image.lastArrival + 1
      close()
      if let error = error as? StoreError, error.isFatal { failure = error }
      throw error
    }
  }

  private func commit() throws {
    do { try beforeCommit?() } catch {
      if keepsFailedCommit, let error = error as? StoreError, error.isFatal { durable = image }
      throw error
    }
    close()
  }

  private func close() {
    undo.removeAll(keepingCapacity: true)
    scalars = nil
  }

  private func takeBack(_ image: inout MemoryImage) {
    for step in undo.reversed() { step(&image) }
    if let scalars { image.scalars = scalars }
  }

  // MARK: For what is written

  /// Notes how a change that is about to be made, or has just been made, is taken back.
  func onFailure(_ step: @escaping (inout MemoryImage) -> Void) {
    precondition(scalars != nil, "a write outside of a transaction")
    undo.append(step)
  }

  func requireTransaction() { precondition(scalars != nil, "a write outside of a transaction") }

  func takeArrival() -> Int64 {
    defer { nextArrival += 1 }
    return nextArrival
  }

  /// The real store's integers are signed: what does not fit is refused.
  static func check(_ sequence: UInt64) throws(StoreError) {
    if Int64(exactly: sequence) == nil { throw .outOfRange(what: "sequence", value: sequence) }
  }
}
