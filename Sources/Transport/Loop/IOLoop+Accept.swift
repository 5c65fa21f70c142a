import CLinux
import Glibc
import Kernel
import Replication

extension IOLoop {
  /// Connections taken per turn: others must not wait for a flood.
  private static let acceptsPerTurn = 16
  /// How long the listeners rest when a budget is used up or the system has no room: what comes waits in the kernel.
  private static let restMilliseconds: UInt64 = 100

  func startListening(_ descriptor: Descriptor) {
    let token = mailbox.nextNumber()
    do throws(SystemError) {
      try poller.add(descriptor.number, token: token, areListenersMuted ? [] : .input)
      listeners[token] = descriptor
    } catch {
      noteAcceptFailure()
    }
  }

  func acceptAll(from listener: Descriptor) {
    for _ in 0..<IOLoop.acceptsPerTurn {
      guard admission.mayAccept(now) else { return muteListeners() }
      guard accept(from: listener) else { return }
    }
  }

  /// False when there is nothing more to take now.
  private func accept(from listener: Descriptor) -> Bool {
    var number: Int32 = -1
    let remote = SocketAddress.read { form, length in
      number = accept4(
        listener.number, form, &length.pointee, Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue))
      return number
    }
    guard number >= 0 else { return acceptFailed(errno) }
    let descriptor = Descriptor(number)
    guard let remote else { return true }
    admit(descriptor, remote)
    return true
  }

  private func acceptFailed(_ code: Int32) -> Bool {
    switch code {
    case EAGAIN: return false
    case EINTR, ECONNABORTED, EPROTO: return true
    default:
      // Without descriptors or memory (K4) the socket stays readable: looking again at once would only spin.
      noteAcceptFailure()
      muteListeners()
      return false
    }
  }

  private func noteAcceptFailure() {
    mailbox.count { [now] in
      $0.acceptFailures += 1
      $0.lastAcceptFailure = now
    }
  }

  private func admit(_ descriptor: Descriptor, _ remote: SocketAddress) {
    guard connections.count < configuration.connectionLimit else {
      return refuse(descriptor) { $0.refusedByLimit += 1 }
    }
    let path = paths.path(of: descriptor.number, to: remote.host)
    guard admits(path) else { return refuse(descriptor) { $0.refusedByLink += 1 } }
    makeRoom(for: remote.host)
    switch admission.enter(remote.host) {
    case .refuseByLimit: refuse(descriptor) { $0.refusedByLimit += 1 }
    case .refuseBySource: refuse(descriptor) { $0.refusedBySource += 1 }
    case .admit:
      mailbox.count { $0.accepted += 1 }
      let connection = Connection(
        mailbox.nextNumber(), .accepted, phase: .handshaking, remote: remote, now: now, configuration)
      connection.countsAsUnauthenticated = true
      connection.descriptor = descriptor
      connection.path = path
      connections[connection.number] = connection
      mailbox.noteAlive(connection.number)
      openAccount(connection)
      startHandshake(connection, addToPoller: true)
    }
  }

  /// Strangers who say nothing hold their places no longer than until somebody else wants one: the oldest of those who have
  /// the most goes, whoever that is, so that a host with one connection has the time that the others have as well. With one
  /// address alone nobody gets more than ``TransportConfiguration/unauthenticatedPerSourceLimit``.
  private func makeRoom(for newcomer: SocketAddress.Host) {
    let crowd = admission.crowding(newcomer)
    guard !crowd.isEmpty,
      let oldest = connections.values.filter({ $0.countsAsUnauthenticated && crowd.contains($0.remote.host) })
        .min(by: { ($0.startedAt, $0.number) < ($1.startedAt, $1.number) })
    else { return }
    mailbox.count { $0.evicted += 1 }
    end(oldest, .crowdedOut)
  }

  private func refuse(_ descriptor: Descriptor, _ count: (inout TransportStatistics) -> Void) {
    TCP.dropOnClose(descriptor.number)
    mailbox.count(count)
  }

  func noteNoLongerUnauthenticated(_ connection: Connection) {
    guard connection.countsAsUnauthenticated else { return }
    connection.countsAsUnauthenticated = false
    admission.leave(connection.remote.host)
  }

  // MARK: Rest

  func muteListeners() {
    setListeners([])
    areListenersMuted = true
    poller.wakeAt(now.advanced(byMilliseconds: IOLoop.restMilliseconds))
  }

  func unmuteListeners() {
    areListenersMuted = false
    setListeners(.input)
  }

  private func setListeners(_ interest: Poller.Interest) {
    for (token, listener) in listeners { poller.change(listener.number, token: token, interest) }
  }
}
