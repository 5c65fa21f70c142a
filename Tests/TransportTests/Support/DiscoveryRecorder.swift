import Foundation
import Replication
import Synchronization

@testable import Transport

/// Keeps what discovery tells, and lets a test wait for it.
final class DiscoveryRecorder: DiscoveryHandler {
  struct State {
    var known: [String: (addresses: [SocketAddress], tag: [UInt8])] = [:]
    var foundCount: [String: Int] = [:]
    var lost: [String] = []
    var states: [DiscoveryState] = []
    var interfaceChanges = 0
    var discovery: DiscoveryState { states.last ?? DiscoveryState() }
  }

  private let state = Mutex(State())
  private let changed = NSCondition()

  var now: State { state.withLock { $0 } }

  func found(instance: String, addresses: [SocketAddress], tag: [UInt8]) {
    change {
      $0.known[instance] = (addresses, tag)
      $0.foundCount[instance, default: 0] += 1
    }
  }

  func lost(instance: String) {
    change {
      $0.known[instance] = nil
      $0.lost.append(instance)
    }
  }

  func discoveryChanged(_ state: DiscoveryState) { change { $0.states.append(state) } }
  func interfacesChanged() { change { $0.interfaceChanges += 1 } }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { body(&$0) }
    changed.lock()
    changed.broadcast()
    changed.unlock()
  }

  func wait(seconds: Double = 20, until condition: (State) -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: seconds)
    changed.lock()
    defer { changed.unlock() }
    while !condition(now) {
      guard changed.wait(until: deadline) else { return condition(now) }
    }
    return true
  }
}
