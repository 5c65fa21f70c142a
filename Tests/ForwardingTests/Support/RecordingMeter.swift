import Links
import Synchronization

/// A meter that a test sets, and that remembers what it was told.
final class RecordingMeter: LinkMeter {
  private struct State {
    var admits = true
    var charges: [UInt64] = []
  }

  private let state = Mutex(State())

  var charges: [UInt64] { state.withLock { $0.charges } }
  var charged: UInt64 { charges.reduce(0, +) }
  func close() { state.withLock { $0.admits = false } }

  func admits(_ path: LinkPath) -> Bool { state.withLock { $0.admits } }
  func isMetered(_ path: LinkPath) -> Bool { true }
  func charge(_ byteCount: UInt64, on path: LinkPath) { state.withLock { $0.charges.append(byteCount) } }
}
