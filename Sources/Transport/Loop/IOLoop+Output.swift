import Glibc

extension IOLoop {
  func queue(_ frames: [[UInt8]], on connection: Connection) {
    guard !connection.isClosing else { return }
    if connection.outgoing.isEmpty {
      connection.lastWriteProgress = now
      poller.wakeAt(now + configuration.stallTimeoutMilliseconds)
    }
    for frame in frames { connection.outgoing.append(frame) }
    let mark = connection.drainedByteMark(configuration)
    if connection.outgoing.cost.byteCount >= mark { connection.wasAboveMark = true }
    waitingOutput.insert(connection.number)
  }

  /// Writes until nothing waits, the socket is full, or the connection's turn is over.
  func flush(_ connection: Connection) {
    guard let tls = connection.tls, connection.wasOpened else { return }
    connection.isWriteBlocked = false
    noteTraffic(connection)
    for _ in 0..<IOLoop.recordsPerTurn {
      guard !connection.outgoing.isEmpty else { break }
      let count = connection.outgoing.copyFront(into: outBuffer)
      switch tls.write(UnsafeRawBufferPointer(rebasing: outBuffer[..<count])) {
      case .bytes(let written):
        let frameCount = connection.outgoing.consume(written)
        connection.lastWriteProgress = now
        mailbox.noteWritten(connection.number, written, frameCount: frameCount)
        noteBytes(written, connection)
      case .wantsOutput, .wantsInput:
        connection.isWriteBlocked = true
        noteDrained(connection)
        return updateInterest(connection)
      case .failed(let reason): return end(connection, connection.isClosing ? .requested : .failed(reason))
      }
    }
    noteDrained(connection)
    guard connection.outgoing.isEmpty else {
      waitingOutput.insert(connection.number)
      return
    }
    sendEnd(connection)
    updateInterest(connection)
  }

  private func noteDrained(_ connection: Connection) {
    let queued = connection.outgoing.cost.byteCount
    guard connection.wasAboveMark, queued < connection.drainedByteMark(configuration) else { return }
    connection.wasAboveMark = false
    guard connection.isOpen else { return }
    handler.drained(connection.id, queuedBytes: queued)
  }

  // MARK: Closing

  func close(_ connection: Connection, afterFlush: Bool) {
    guard connection.isOpen, afterFlush else {
      if connection.account != nil, let descriptor = connection.descriptor {
        // What the kernel still holds, and what the peer has on its way, would be paid for.
        TCP.dropOnClose(descriptor.number)
        connection.account?.endsByReset = true
      } else if connection.isOpen, !connection.isWriteBlocked {
        _ = connection.tls?.sendCloseNotify()
      }
      return end(connection, .requested)
    }
    noteNoLongerUnauthenticated(connection)
    connection.phase = .closing(endSent: false)
    connection.heldInput = []
    setDeadline(connection, now + configuration.closingTimeoutMilliseconds)
    updateInterest(connection)
    waitingOutput.insert(connection.number)
    waitingInput.insert(connection.number)
  }

  /// Everything is written: says the end (close_notify, then FIN) and waits for the peer's, since closing with unread
  /// input would send a reset that may overtake our last frames.
  private func sendEnd(_ connection: Connection) {
    guard connection.phase == .closing(endSent: false), let tls = connection.tls else { return }
    switch tls.sendCloseNotify() {
    case .done:
      connection.phase = .closing(endSent: true)
      if let descriptor = connection.descriptor { shutdown(descriptor.number, Int32(SHUT_WR)) }
    case .wantsInput, .wantsOutput: connection.isWriteBlocked = true
    case .failed: end(connection, .requested)
    }
  }
}
