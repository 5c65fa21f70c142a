import Synchronization

/// What all results of queries together may hold, those among them that are still written to somebody who reads slowly.
final class ResultMemory: Sendable {
  static let sentence = "other results take the memory that there is for all of them: ask again in a moment"

  private let limit: Int
  private let held = Mutex(0)

  init(limit: Int) { self.limit = limit }

  /// A part for one result, which gives it back when nobody has it any more.
  func part() -> ResultShare { ResultShare(of: self) }

  fileprivate func take(_ bytes: Int) throws(NodeError) {
    let isFree = held.withLock { held in
      guard bytes <= limit - held else { return false }
      held += bytes
      return true
    }
    guard isFree else {
      throw NodeError(.busy, ResultMemory.sentence)
    }
  }

  fileprivate func give(_ bytes: Int) { held.withLock { $0 -= bytes } }

  var heldBytes: Int { held.withLock(\.self) }
}

/// What one result holds of ``ResultMemory``.
package final class ResultShare: Sendable {
  /// Asking for each document would cost more than it is worth.
  static let step = 64 * 1024

  private let memory: ResultMemory
  private let held = Mutex(0)

  fileprivate init(of memory: ResultMemory) { self.memory = memory }

  /// Holds so much at least; refused with `busy` where others hold the rest.
  func hold(_ bytes: Int) throws(NodeError) {
    try held.withLock { held throws(NodeError) in
      guard bytes > held else { return }
      let wanted = (bytes + ResultShare.step - 1) / ResultShare.step * ResultShare.step
      try memory.take(wanted - held)
      held = wanted
    }
  }

  deinit { memory.give(held.withLock(\.self)) }
}
