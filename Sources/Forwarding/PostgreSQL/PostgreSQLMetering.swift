import CPostgreSQL
import Links

/// What a connection of libpq costs on its link, looked at while it is used.
struct PostgreSQLMetering {
  private static let lookInterval: Duration = .seconds(1)

  private let meter: (any SocketMeter)?
  /// Parameters and results, both ways.
  var byteCount: UInt64 = 0
  private var verdict = LinkVerdict.free
  private var lookedAt: ContinuousClock.Instant?

  init(_ meter: (any SocketMeter)?) { self.meter = meter }

  /// How long a wait may be before the next look.
  var patienceMilliseconds: Int64 { verdict == .metered ? 1_000 : .max }

  /// False where nothing may pass on the link.
  mutating func mayGoOn(_ handle: OpaquePointer) -> Bool {
    guard let meter else { return true }
    lookedAt = .now
    verdict = meter.look(
      at: LibrarySocket(
        descriptor: PQsocket(handle), remote: PQhostaddr(handle).map { String(cString: $0) }, byteCount: byteCount))
    return verdict != .closed
  }

  /// The same, at most once a second.
  mutating func mayGoOnWaiting(_ handle: OpaquePointer) -> Bool {
    if let lookedAt, .now - lookedAt < PostgreSQLMetering.lookInterval { return verdict != .closed }
    return mayGoOn(handle)
  }

  /// What is done is done, whatever the link is by now.
  mutating func note(_ handle: OpaquePointer) { _ = mayGoOn(handle) }

  /// Before the connection is closed.
  mutating func end(_ handle: OpaquePointer) {
    guard let meter else { return }
    if PQsocket(handle) >= 0 { _ = mayGoOn(handle) }
    meter.ended()
  }
}
