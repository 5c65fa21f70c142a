import Synchronization

/// What request bodies of all connections together hold in memory, by one measure: their bytes, or the values read of them.
final class BodyBudget: Sendable {
  private let used = Mutex(0)
  private let limit: Int

  init(limit: Int) { self.limit = limit }

  func reserve(_ count: Int) -> Bool {
    used.withLock { used in
      guard count <= limit - used else { return false }
      used += count
      return true
    }
  }

  func release(_ count: Int) { used.withLock { $0 -= count } }
}
