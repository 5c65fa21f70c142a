import Kernel
import Synchronization

/// What callers and the responder's thread leave for discovery's thread.
final class DiscoveryMailbox: Sendable {
  private struct State {
    var events: [ResponderEvent] = []
    var advertisement: Advertisement?
    var discovery = DiscoveryState()
    var isStopped = false
  }

  /// Four reports for every service the responder may know.
  private static let eventLimit = 4_096

  private let state: Mutex<State>
  let signal: WakeSignal

  init(_ advertisement: Advertisement?) throws(SystemError) {
    state = Mutex(State(advertisement: advertisement))
    signal = try WakeSignal()
  }

  /// Drops the oldest where the taker is too far behind: every item is a hint that comes again.
  func post(_ event: ResponderEvent) {
    state.withLock { state in
      if state.events.count >= DiscoveryMailbox.eventLimit { state.events.removeFirst(DiscoveryMailbox.eventLimit / 2) }
      state.events.append(event)
    }
    signal.wake()
  }

  func takeEvents() -> [ResponderEvent] {
    state.withLock { state in
      defer { state.events = [] }
      return state.events
    }
  }

  var advertisement: Advertisement? { state.withLock { $0.advertisement } }
  var discoveryState: DiscoveryState { state.withLock { $0.discovery } }
  var isStopped: Bool { state.withLock { $0.isStopped } }

  func advertise(_ advertisement: Advertisement?) {
    state.withLock { $0.advertisement = advertisement }
    signal.wake()
  }

  func note(_ discovery: DiscoveryState) { state.withLock { $0.discovery = discovery } }

  func stop() {
    state.withLock { $0.isStopped = true }
    signal.wake()
  }
}
