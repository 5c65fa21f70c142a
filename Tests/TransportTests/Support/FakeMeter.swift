import Links
import Replication
import Synchronization

/// A meter that a test sets, and that remembers what it was asked and told.
final class FakeMeter: LinkMeter {
  struct State {
    var admits = true
    var isMetered = true
    var charged: UInt64 = 0
    var paths: Set<LinkPath> = []
    var questionsWhetherMetered = 0
  }

  private let state: Mutex<State>

  init(admits: Bool = true, isMetered: Bool = true) {
    state = Mutex(State(admits: admits, isMetered: isMetered))
  }

  var now: State { state.withLock { $0 } }
  var charged: UInt64 { now.charged }
  func change(_ body: (inout sending State) -> Void) { state.withLock { body(&$0) } }

  func admits(_ path: LinkPath) -> Bool { state.withLock { $0.admits } }

  func isMetered(_ path: LinkPath) -> Bool {
    state.withLock { state in
      state.questionsWhetherMetered += 1
      return state.isMetered
    }
  }

  func charge(_ byteCount: UInt64, on path: LinkPath) {
    state.withLock { state in
      state.charged += byteCount
      state.paths.insert(path)
    }
  }
}
