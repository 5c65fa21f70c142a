import Kernel
import Replication
import Synchronization

/// What discovery's thread and the responder's thread tell each other.
final class ResponderMailbox: Sendable {
  struct Orders: Sendable {
    var advertisement: Advertisement?
    var settled: Set<String> = []
    /// Interfaces or addresses of this host changed since the last look.
    var isNetworkChanged = false
    var isStopped = false
  }

  private struct State {
    var orders: Orders
    var callStartedAt: MonotonicTime?
  }

  private let state: Mutex<State>
  let signal: WakeSignal

  init(_ advertisement: Advertisement?) throws(SystemError) {
    state = Mutex(State(orders: Orders(advertisement: advertisement)))
    signal = try WakeSignal()
  }

  func change(_ body: (inout Orders) -> Void) {
    state.withLock { body(&$0.orders) }
    signal.wake()
  }

  func takeOrders() -> Orders {
    state.withLock { state in
      defer { state.orders.isNetworkChanged = false }
      return state.orders
    }
  }

  /// Marks a call into the library, so that others see when it does not return.
  func call<R>(_ body: () -> R) -> R {
    state.withLock { $0.callStartedAt = ElapsedClock.now() }
    defer { state.withLock { $0.callStartedAt = nil } }
    return body()
  }

  var callStartedAt: MonotonicTime? { state.withLock { $0.callStartedAt } }
}

/// What the responder's thread tells.
enum ResponderEvent: Equatable, Sendable {
  case available
  /// No daemon answers; everything it said may be old.
  case absent
  case registered(Bool)
  case seen(name: String, addresses: [SocketAddress], tag: [UInt8])
  case lost(name: String)
}
