import Synchronization
import Wire

/// What peers have sent since the start, by the kind of message: beside what the log has grown by it shows how often a change
/// came, and what all else costs.
final class FrameTally: Sendable {
  struct Row: Sendable, Hashable {
    var frames: UInt64 = 0
    var bytes: UInt64 = 0
  }

  private let rows = Mutex(Dictionary(uniqueKeysWithValues: MessageCodec.Number.allCases.map { ($0, Row()) }))

  /// Frames that are no message of this version are not counted.
  func note(_ frame: [UInt8]) {
    guard let number = MessageCodec.number(of: frame[...]) else { return }
    rows.withLock { rows in
      rows[number, default: Row()].frames &+= 1
      rows[number, default: Row()].bytes &+= UInt64(frame.count)
    }
  }

  /// By the number of the message, also of those that never came.
  var received: [(name: String, row: Row)] {
    rows.withLock { $0 }.sorted { $0.key.rawValue < $1.key.rawValue }.map { ("\($0.key)", $0.value) }
  }
}
