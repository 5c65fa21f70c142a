import Synchronization

/// Bytes of request bodies that all connections together hold in memory.
final class BodyBudget: Sendable {
  private let used = Mutex(0)
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  func reserve(_ bytes: Int) -> Bool {
    used.withLock { used in
      guard bytes <= limit - used else { return false }
      used += bytes
      return true
    }
  }

  func release(_ bytes: Int) { used.withLock { $0 -= bytes } }
}
