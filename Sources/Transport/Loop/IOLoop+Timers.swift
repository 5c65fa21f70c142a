extension IOLoop {
  /// Ends what waited too long and sets the timer for the next.
  func expire() {
    if areListenersMuted { unmuteListeners() }
    for connection in Array(connections.values) { expire(connection) }
    lookAtAccounts()
    for connection in connections.values {
      if let deadline = connection.deadline(configuration) { poller.wakeAt(deadline) }
    }
  }

  private func expire(_ connection: Connection) {
    if let deadline = connection.phaseDeadline, deadline <= now { return expirePhase(connection) }
    guard let deadline = connection.deadline(configuration), deadline <= now else { return }
    mailbox.count { $0.stalledPeers += 1 }
    end(connection, .peerStalled)
  }

  private func expirePhase(_ connection: Connection) {
    switch connection.phase {
    case .connecting: dialFailed(connection, .timedOut)
    case .handshaking:
      mailbox.count { $0.handshakeFailures += 1 }
      dialFailed(connection, .timedOut)
    case .unauthenticated:
      mailbox.count { $0.authenticationTimeouts += 1 }
      end(connection, .authenticationTimedOut)
    case .authenticated: setDeadline(connection, nil)
    case .closing: end(connection, .requested)
    }
  }
}
