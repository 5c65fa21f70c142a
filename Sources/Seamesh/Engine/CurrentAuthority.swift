import Replication
import Synchronization

/// The statements as the engine has them now, for other threads: whoever decodes frames, and whoever shows documents.
final class CurrentAuthority: Sendable {
  private let held: Mutex<Authority>

  init(_ authority: Authority) { held = Mutex(authority) }

  var now: Authority { held.withLock { $0 } }

  func adopt(_ authority: Authority) { held.withLock { $0 = authority } }
}
