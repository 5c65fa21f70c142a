import Replication

/// How many wrong requests to join of one address are looked at. Guessing a secret is hopeless anyway; this bounds what it
/// costs others. How many connections there are in all before anyone knows who they are, the transport bounds. A value without
/// IO.
struct JoinGate {
  /// At once, and then one after each pause.
  static let burst: UInt64 = 8
  static let pauseMilliseconds: UInt64 = 2_000
  static let hostLimit = 1_024

  /// By address, when all that it was allowed will be allowed again.
  private var fullAt: [SocketAddress.Host: UInt64] = [:]

  var hostCount: Int { fullAt.count }

  func isOpen(to host: SocketAddress.Host, _ now: MonotonicTime) -> Bool {
    guard let full = fullAt[host], full > now.milliseconds else { return true }
    return full - now.milliseconds <= (JoinGate.burst - 1) * JoinGate.pauseMilliseconds
  }

  /// A request of this address was wrong.
  mutating func charge(_ host: SocketAddress.Host, _ now: MonotonicTime) {
    let now = now.milliseconds
    if fullAt[host] == nil, fullAt.count >= JoinGate.hostLimit { forget(now) }
    fullAt[host] = max(fullAt[host] ?? now, now) + JoinGate.pauseMilliseconds
  }

  /// Those that may do everything again, else the one that is nearest to it.
  private mutating func forget(_ now: UInt64) {
    fullAt = fullAt.filter { $0.value > now }
    guard fullAt.count >= JoinGate.hostLimit, let next = fullAt.min(by: { $0.value < $1.value })?.key else { return }
    fullAt[next] = nil
  }
}
