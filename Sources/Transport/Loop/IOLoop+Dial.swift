import Glibc
import Kernel
import Links
import Replication

extension IOLoop {
  func startDial(_ number: UInt64, tag: UInt64, _ addresses: [SocketAddress]) {
    guard let first = addresses.first else {
      mailbox.noteGone(number)
      return handler.dialFailed(ConnectionID(number: number), tag: tag, reason: .unknownHost)
    }
    let connection = Connection(
      number, .dialled(tag: tag), phase: .connecting, remote: first, remainingAddresses: addresses, now: now,
      configuration)
    connections[number] = connection
    guard connections.count <= configuration.connectionLimit else { return giveUpDial(connection, .tooManyDials) }
    connectNext(connection, orElse: .unknownHost)
  }

  /// Tries the next address; where none is left, the dial ends with the failure of the last one.
  private func connectNext(_ connection: Connection, orElse failure: DialFailure) {
    closeAttempt(connection)
    guard !connection.remainingAddresses.isEmpty else { return giveUpDial(connection, failure) }
    let address = connection.remainingAddresses.removeFirst()
    connection.remote = address
    connection.phase = .connecting
    guard let path = admittedPath(to: address) else { return connectNext(connection, orElse: .linkClosed) }
    connection.path = path
    do throws(SystemError) {
      try connect(connection, to: address)
    } catch {
      connectNext(connection, orElse: .unreachable(error.description))
    }
  }

  private func connect(_ connection: Connection, to address: SocketAddress) throws(SystemError) {
    let descriptor = try TCP.socket(family: address.family)
    if !address.host.isLoopback { TCP.avoidLargeSegments(descriptor.number) }
    let result = address.withKernelForm { Glibc.connect(descriptor.number, $0, $1) }
    guard result == 0 || errno == EINPROGRESS else { throw SystemError("connect") }
    try poller.add(descriptor.number, token: connection.number, .output)
    connection.interest = .output
    connection.descriptor = descriptor
    openAccount(connection)
    setDeadline(connection, now.advanced(byMilliseconds: configuration.connectTimeoutMilliseconds))
  }

  func finishConnect(_ connection: Connection) {
    guard let descriptor = connection.descriptor else { return }
    let code = TCP.pendingError(descriptor.number)
    guard code == 0 else {
      return dialFailed(connection, .unreachable(SystemError("connect", code: code).description))
    }
    guard TCP.localAddress(descriptor.number) != TCP.remoteAddress(descriptor.number) else {
      return dialFailed(connection, .selfConnection)
    }
    startHandshake(connection, addToPoller: false)
  }

  /// A connection that never opened: the next address, or the end. For an accepted one there is no one to tell.
  func dialFailed(_ connection: Connection, _ failure: DialFailure) {
    guard case .dialled = connection.origin else { return release(connection) }
    connectNext(connection, orElse: failure)
  }

  private func giveUpDial(_ connection: Connection, _ failure: DialFailure) {
    release(connection)
    guard case .dialled(let tag) = connection.origin else { return }
    handler.dialFailed(connection.id, tag: tag, reason: failure)
  }

  private func closeAttempt(_ connection: Connection) {
    settleAccount(connection)
    if let descriptor = connection.descriptor { poller.remove(descriptor.number) }
    connection.tls = nil
    connection.descriptor = nil
    connection.phaseDeadline = nil
  }

  // MARK: Handshake

  func startHandshake(_ connection: Connection, addToPoller: Bool) {
    guard let descriptor = connection.descriptor else { return }
    TCP.tune(descriptor.number)
    connection.phase = .handshaking
    do {
      if addToPoller {
        try poller.add(descriptor.number, token: connection.number, .input)
        connection.interest = .input
      }
      connection.tls = try TLSSession(
        context, descriptor: descriptor.number, asClient: connection.origin != .accepted)
    } catch {
      return handshakeFailed(connection, "\(error)")
    }
    setDeadline(connection, now.advanced(byMilliseconds: configuration.handshakeTimeoutMilliseconds))
    continueHandshake(connection)
  }

  func continueHandshake(_ connection: Connection) {
    guard let tls = connection.tls else { return }
    switch tls.handshake() {
    case .wantsInput: updateInterest(connection, .input)
    case .wantsOutput: updateInterest(connection, .output)
    case .failed(let reason): handshakeFailed(connection, reason)
    case .done:
      guard let peer = tls.peer else { return handshakeFailed(connection, "no key") }
      open(connection, peer.key, peer.exporter)
    }
  }

  private func handshakeFailed(_ connection: Connection, _ reason: String) {
    mailbox.count { $0.handshakeFailures += 1 }
    dialFailed(connection, .handshakeFailed(reason))
  }

  private func open(_ connection: Connection, _ key: PublicKey, _ exporter: Digest) {
    mailbox.count { $0.opened += 1 }
    connection.phase = .unauthenticated
    connection.wasOpened = true
    connection.lastWriteProgress = now
    let timeout =
      connection.origin == .accepted
      ? configuration.authenticationTimeoutMilliseconds : configuration.dialledAuthenticationTimeoutMilliseconds
    let startedAt = connection.origin == .accepted ? connection.startedAt : now
    setDeadline(connection, startedAt.advanced(byMilliseconds: timeout))
    updateInterest(connection)
    handler.opened(
      OpenedConnection(
        id: connection.id, origin: connection.origin, remote: connection.remote,
        path: connection.path ?? LinkPath(interface: "", remote: connection.remote.host), peerKey: key,
        exporter: exporter, openedAt: now))
    // The first frames may have come along with the last message of the handshake.
    waitingInput.insert(connection.number)
    if !connection.outgoing.isEmpty { waitingOutput.insert(connection.number) }
  }

  func authenticate(_ connection: Connection) {
    guard connection.phase == .unauthenticated else { return }
    connection.phase = .authenticated
    setDeadline(connection, nil)
    noteNoLongerUnauthenticated(connection)
    updateInterest(connection)
    waitingInput.insert(connection.number)
  }
}
