import Links
import Replication

extension IOLoop {
  /// How long what a connection costs may go uncharged.
  private static let lookIntervalMilliseconds: UInt64 = 1_000

  // MARK: Ways

  /// Nil where there may be no connection to there; otherwise the way it takes.
  func admittedPath(to remote: SocketAddress) -> LinkPath? {
    // Without a way the system's own words say what is wrong.
    let path = paths.path(to: remote) ?? LinkPath(interface: "", remote: remote.host)
    return admits(path) ? path : nil
  }

  func admits(_ path: LinkPath) -> Bool { meter?.admits(path) ?? true }

  // MARK: Accounts

  /// From here on the connection's bytes are charged, where somebody pays for them.
  func openAccount(_ connection: Connection) {
    guard let meter, let path = connection.path, meter.isMetered(path) else { return }
    connection.account = SocketAccount(path, isAccepted: connection.origin == .accepted, meter)
    if let descriptor = connection.descriptor { TCP.keepUnsentShort(descriptor.number) }
    metered.insert(connection.number)
    noteTraffic(connection)
  }

  /// There may be something to charge soon. Nothing is looked at while nothing happens.
  func noteTraffic(_ connection: Connection) {
    guard connection.account != nil, nextLookAt == nil else { return }
    nextLookAt = now.advanced(byMilliseconds: IOLoop.lookIntervalMilliseconds)
    poller.wakeAt(now.advanced(byMilliseconds: IOLoop.lookIntervalMilliseconds))
  }

  /// So many bytes of frames have passed: on a fast link a second is too long to be uncharged.
  func noteBytes(_ byteCount: Int, _ connection: Connection) {
    guard connection.account?.note(byteCount) == true else { return }
    numbers(of: connection).map { _ = connection.account?.look($0) }
  }

  func lookAtAccounts() {
    guard let due = nextLookAt else { return }
    guard due <= now else { return poller.wakeAt(due) }
    nextLookAt = nil
    for number in metered {
      guard let connection = connections[number], let numbers = numbers(of: connection) else { continue }
      if connection.account?.look(numbers) == true { noteTraffic(connection) }
    }
  }

  /// Before its socket is closed, whatever became of it.
  func settleAccount(_ connection: Connection) {
    guard connection.account != nil else { return }
    numbers(of: connection).map { connection.account?.settle($0) }
    connection.account = nil
    metered.remove(connection.number)
  }

  private func numbers(of connection: Connection) -> TCPNumbers? {
    guard let descriptor = connection.descriptor else { return nil }
    return TCPNumbers(descriptor.number) ?? TCPNumbers(estimatedFrom: connection.tls?.wireByteCount ?? 0)
  }

  /// Links are of other classes than before: what may be no more ends, and what was free may cost now.
  func reviewLinks() {
    for connection in Array(connections.values) {
      guard let path = connection.path else { continue }
      if !admits(path) { refuse(connection) } else { reviewAccount(connection, path) }
    }
  }

  private func refuse(_ connection: Connection) {
    if connection.wasOpened { end(connection, .linkClosed) } else { dialFailed(connection, .linkClosed) }
  }

  private func reviewAccount(_ connection: Connection, _ path: LinkPath) {
    let isMetered = meter?.isMetered(path) ?? false
    if isMetered, connection.account == nil {
      openAccount(connection)
      numbers(of: connection).map { connection.account?.begin(at: $0) }
    } else if !isMetered {
      settleAccount(connection)
    }
  }
}
