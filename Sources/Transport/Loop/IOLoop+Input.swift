extension IOLoop {
  func setPaused(_ connection: Connection, _ isPaused: Bool) {
    connection.isPaused = isPaused
    guard connection.isOpen else { return }
    updateInterest(connection)
    if !isPaused { waitingInput.insert(connection.number) }
  }

  /// Reads until the socket is empty, the connection must wait, or its turn is over.
  func readInput(_ connection: Connection) {
    guard takeHeldInput(connection) else { return }
    for _ in 0..<IOLoop.recordsPerTurn {
      guard connection.wantsInput, let tls = connection.tls else { return }
      // The command that says so is on its way, and takes effect when this turn is over.
      guard !connection.isOpen || !mailbox.isReadingPaused(connection.number) else { return }
      switch tls.read(into: inBuffer) {
      case .bytes(let count):
        mailbox.count { $0.receivedBytes += UInt64(count) }
        noteBytes(count, connection)
        noteAnswer(connection)
        guard take(UnsafeRawBufferPointer(rebasing: inBuffer[..<count]), connection) else { return }
      case .wantsInput: return updateInterest(connection)
      case .wantsOutput:
        connection.isWriteBlocked = true
        return updateInterest(connection)
      case .ended: return endOfInput(connection, clean: true)
      case .truncated: return endOfInput(connection, clean: false)
      case .flooded: return end(connection, .flooded)
      case .failed(let reason): return end(connection, connection.isClosing ? .requested : .failed(reason))
      }
    }
    waitingInput.insert(connection.number)
  }

  private func endOfInput(_ connection: Connection, clean: Bool) {
    if connection.isClosing { return end(connection, .requested) }
    end(connection, clean && connection.assembler.isBetweenFrames ? .ended : .truncated)
  }

  /// False when the connection must wait or is gone.
  private func takeHeldInput(_ connection: Connection) -> Bool {
    guard connection.isOpen, !connection.heldInput.isEmpty, !connection.isPaused else { return true }
    let held = connection.heldInput
    connection.heldInput = []
    return held.withUnsafeBytes { take($0, connection) }
  }

  /// Delivers the frames that these bytes complete. False when the connection must wait or is gone.
  private func take(_ bytes: UnsafeRawBufferPointer, _ connection: Connection) -> Bool {
    guard connection.isOpen else { return true }
    let taken: Int
    do throws(FrameAssembler.Violation) {
      taken = try connection.assembler.consume(
        bytes, limits: { connection.frameLimits(configuration) },
        deliver: { frame in
          connection.framesDelivered += 1
          if connection.phase == .unauthenticated { connection.unauthenticatedInput += frame.count }
          handler.received(connection.id, frame: frame)
        })
    } catch {
      mailbox.count { $0.framingViolations += 1 }
      end(connection, CloseReason(error))
      return false
    }
    connection.lastInput = now
    noteUnfinished(connection.assembler.unfinishedByteCount, connection)
    guard makeRoom(for: connection) else { return false }
    guard taken < bytes.count else { return true }
    connection.heldInput = Array(bytes[taken...])
    updateInterest(connection)
    return false
  }
}

// MARK: Unfinished frames

extension IOLoop {
  func noteUnfinished(_ byteCount: Int, _ connection: Connection) {
    guard byteCount != connection.unfinishedByteCount else { return }
    unfinishedByteCount += byteCount - connection.unfinishedByteCount
    connection.unfinishedByteCount = byteCount
    handler.unfinished(byteCount: unfinishedByteCount)
  }

  /// Beyond the bound the connection ends that has most of a frame here without its end; of several, the one from which
  /// nothing came for longest. Nobody's reading could pause instead: what would have to come is the rest of a frame. False
  /// where that was this one.
  private func makeRoom(for connection: Connection) -> Bool {
    while unfinishedByteCount > configuration.unfinishedByteLimit {
      let most = connections.values.max {
        ($0.unfinishedByteCount, $1.lastInput, $1.number) < ($1.unfinishedByteCount, $0.lastInput, $0.number)
      }
      guard let most, most.unfinishedByteCount > 0 else { return true }
      mailbox.count { $0.unfinishedFrames += 1 }
      end(most, .unfinishedFrames)
      if most === connection { return false }
    }
    return true
  }
}

extension CloseReason {
  fileprivate init(_ violation: FrameAssembler.Violation) {
    switch violation {
    case .tooLarge(let byteCount, let limit): self = .frameTooLarge(byteCount: byteCount, limit: limit)
    case .empty: self = .emptyFrame
    }
  }
}
