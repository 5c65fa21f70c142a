import Glibc
import Kernel
import Replication
import Synchronization

/// Turns host names into addresses on a thread of its own: `getaddrinfo` blocks for as long as a name server is silent.
final class HostResolver: Sendable {
  /// More dials than this are never under way at once; a name beyond it fails at once and is tried again later.
  static let waitingLimit = 16
  /// A name with more addresses than this would let one dial run for minutes.
  static let addressLimit = 8

  private struct Job {
    let name: String
    let port: UInt16
    let completion: @Sendable ([SocketAddress]) -> Void
  }

  private struct State {
    var waiting: [Job] = []
    var isRunning = false
  }

  private let state = Mutex(State())

  /// Calls `completion` from the helper thread, with an empty array where the name is unknown; answers false where too
  /// many names wait already, without calling it.
  func resolve(
    _ name: String, port: UInt16, _ completion: @escaping @Sendable ([SocketAddress]) -> Void
  ) -> Bool {
    let (accepted, mustStart) = state.withLock { state in
      guard state.waiting.count < HostResolver.waitingLimit else { return (false, false) }
      state.waiting.append(Job(name: name, port: port, completion: completion))
      defer { state.isRunning = true }
      return (true, !state.isRunning)
    }
    guard mustStart else { return accepted }
    do throws(SystemError) {
      _ = try DedicatedThread.start("seamesh names") { [self] in work() }
    } catch {
      state.withLock { $0 = State() }
      return false
    }
    return accepted
  }

  /// The thread ends when no name waits, so an idle node keeps none.
  private func work() {
    while let job = next() { job.completion(HostResolver.addresses(of: job.name, port: job.port)) }
  }

  private func next() -> Job? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isRunning = false
        return nil
      }
      return state.waiting.removeFirst()
    }
  }

  private static func addresses(of name: String, port: UInt16) -> [SocketAddress] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(name, nil, &hints, &list) == 0, let first = list else { return [] }
    defer { freeaddrinfo(first) }
    var addresses: [SocketAddress] = []
    var entry: UnsafeMutablePointer<addrinfo>? = first
    while let current = entry, addresses.count < addressLimit {
      if let form = current.pointee.ai_addr, let address = SocketAddress(form) {
        addresses.append(SocketAddress(address.host, port: port))
      }
      entry = current.pointee.ai_next
    }
    return addresses
  }
}
