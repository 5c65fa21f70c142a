import Replication

/// Decides which connections from others are let in before anyone knows who they are (W4). A value without IO.
struct Admission {
  enum Verdict: Equatable { case admit, refuseByLimit, refuseBySource }

  private let limit: Int
  private let perSourceLimit: Int
  private var count = 0
  private var perSource: [SocketAddress.Host: Int] = [:]
  private var budget: AcceptBudget

  init(_ configuration: TransportConfiguration) {
    self.limit = configuration.unauthenticatedLimit
    self.perSourceLimit = configuration.unauthenticatedPerSourceLimit
    self.budget = AcceptBudget(configuration)
  }

  /// Whether another connection may be taken from the kernel's queue now.
  mutating func mayAccept(_ now: MonotonicTime) -> Bool { budget.take(now) }

  /// Of which sources a connection is to give way to one of `newcomer`: those that hold the most, where that is more than
  /// the newcomer would. None where there is room, or the newcomer has its share.
  func crowding(_ newcomer: SocketAddress.Host) -> Set<SocketAddress.Host> {
    guard count >= limit, perSource[newcomer, default: 0] < perSourceLimit else { return [] }
    let most = perSource.values.max() ?? 0
    guard most > perSource[newcomer, default: 0] else { return [] }
    return Set(perSource.filter { $0.value == most }.keys)
  }

  /// An admitted source must be given back by ``leave(_:)``.
  mutating func enter(_ source: SocketAddress.Host) -> Verdict {
    guard count < limit else { return .refuseByLimit }
    guard perSource[source, default: 0] < perSourceLimit else { return .refuseBySource }
    count += 1
    perSource[source, default: 0] += 1
    return .admit
  }

  mutating func leave(_ source: SocketAddress.Host) {
    count -= 1
    let rest = perSource[source, default: 0] - 1
    perSource[source] = rest > 0 ? rest : nil
  }
}

/// Handshakes cost a core's time: so many at once, so many a second.
private struct AcceptBudget {
  private let burst: UInt64
  private let perSecond: UInt64
  /// In thousandths of a connection.
  private var level: UInt64
  private var filledAt: MonotonicTime?

  init(_ configuration: TransportConfiguration) {
    self.burst = UInt64(clamping: configuration.acceptBurst) * 1_000
    self.perSecond = UInt64(clamping: configuration.acceptsPerSecond)
    self.level = burst
  }

  mutating func take(_ now: MonotonicTime) -> Bool {
    let elapsed = now.millisecondsSince(filledAt ?? now)
    level = min(burst, level + min(elapsed, burst) * perSecond)
    filledAt = now
    guard level >= 1_000 else { return false }
    level -= 1_000
    return true
  }
}
