import Glibc
import Replication

extension IOLoop {
  func queue(_ frames: [[UInt8]], on connection: Connection) {
    guard !connection.isClosing else { return }
    if connection.outgoing.isEmpty {
      noteWord(connection)
      connection.lastWriteProgress = now
      poller.wakeAt(now.advanced(byMilliseconds: configuration.stallTimeoutMilliseconds))
    }
    for frame in frames { connection.outgoing.append(frame) }
    waitingOutput.insert(connection.number)
  }

  /// Writes until nothing waits, the socket is full, or the connection's turn is over.
  func flush(_ connection: Connection) {
    guard let tls = connection.tls, connection.wasOpened else { return }
    connection.isWriteBlocked = false
    noteTraffic(connection)
    var hasDrained = false
    defer { if hasDrained { tellDrained(connection) } }
    for _ in 0..<IOLoop.recordsPerTurn {
      guard !connection.outgoing.isEmpty else { break }
      guard mayWrite(connection) else {
        hold(connection)
        return updateInterest(connection)
      }
      let count = connection.outgoing.copyFront(into: outBuffer)
      switch tls.write(UnsafeRawBufferPointer(rebasing: outBuffer[..<count])) {
      case .bytes(let written):
        let frameCount = connection.outgoing.consume(written)
        connection.lastWriteProgress = now
        if mailbox.noteWritten(connection.number, written, frameCount: frameCount) { hasDrained = true }
        noteBytes(written, connection)
      case .wantsOutput, .wantsInput:
        connection.isWriteBlocked = true
        return updateInterest(connection)
      case .failed(let reason): return end(connection, connection.isClosing ? .requested : .failed(reason))
      }
    }
    guard connection.outgoing.isEmpty else {
      waitingOutput.insert(connection.number)
      return
    }
    connection.pace.noteEmpty()
    sendEnd(connection)
    updateInterest(connection)
  }

  private func tellDrained(_ connection: Connection) {
    guard connection.isOpen, connections[connection.number] === connection else { return }
    handler.drained(connection.id, queuedBytes: connection.outgoing.cost.byteCount)
  }

  /// False where so much is under way in the kernel that what comes up next would stand behind it; looked at again soon.
  private func mayWrite(_ connection: Connection) -> Bool {
    guard connection.account == nil, let descriptor = connection.descriptor,
      let kernel = TCPNumbers.underWay(descriptor.number)
    else { return true }
    // The peer reads, however long nothing more is to be written.
    if kernel.acknowledged > connection.acknowledged { connection.lastWriteProgress = now }
    connection.acknowledged = kernel.acknowledged
    let before = connection.pace.byteMark
    let may = connection.pace.mayTake(kernel, now)
    if connection.pace.byteMark != before { mailbox.setMark(connection.number, connection.pace.byteMark) }
    return may
  }

  /// Nothing tells when something is acknowledged. Who acknowledges nothing is looked at ever less often.
  private func hold(_ connection: Connection) {
    held.insert(connection.number)
    let wait = now.millisecondsSince(connection.lastWriteProgress) / 4
    poller.wakeAt(
      now.advanced(byMilliseconds: min(max(wait, IOLoop.leastHoldMilliseconds), IOLoop.mostHoldMilliseconds)))
  }

  private static let leastHoldMilliseconds: UInt64 = 2
  private static let mostHoldMilliseconds: UInt64 = 50

  func flushHeld() {
    let numbers = held
    held = []
    for number in numbers { connections[number].map(flush) }
  }

  func keepShort(_ connection: Connection) {
    connection.pace.keepShort()
    mailbox.setMark(connection.number, connection.pace.byteMark)
  }

  // MARK: Rest

  /// Where nothing was said for so long, what comes up is one question or one answer.
  private static let restMilliseconds: UInt64 = 1_000

  /// At rest a question and its answer take three packets, and not four: the answer acknowledges the question.
  private func noteWord(_ connection: Connection) {
    guard let descriptor = connection.descriptor else { return }
    connection.breaksRest = now.millisecondsSince(connection.lastWriteProgress) >= IOLoop.restMilliseconds
    if connection.breaksRest { TCP.acknowledgeWithAnswers(descriptor.number) }
  }

  /// The answer to a question that was asked at rest has come; whoever asks next finds this side as it was.
  func noteAnswer(_ connection: Connection) {
    guard connection.breaksRest, let descriptor = connection.descriptor else { return }
    connection.breaksRest = false
    let silence = now.millisecondsSince(connection.lastWriteProgress)
    guard connection.outgoing.isEmpty, silence < IOLoop.restMilliseconds else { return }
    TCP.acknowledge(descriptor.number)
    TCP.acknowledgeWithAnswers(descriptor.number)
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
    // A stranger keeps his place among strangers until he is gone: for so long he has one of all connections.
    connection.phase = .closing(endSent: false)
    connection.heldInput = []
    setDeadline(connection, now.advanced(byMilliseconds: configuration.closingTimeoutMilliseconds))
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
