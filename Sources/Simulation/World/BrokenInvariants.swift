import Synchronization

/// What the code under test found to be wrong within itself, until the world asks.
final class BrokenInvariants: Sendable {
  private let noted = Mutex<[String]>([])

  func note(_ what: String) { noted.withLock { $0.append(what) } }

  func take() -> [String] {
    noted.withLock { noted in
      defer { noted = [] }
      return noted
    }
  }
}
