import Engine
import Replication
import Synchronization
import Transport

/// The IO thread's part: frames become messages, and runs are hashed and their signatures checked, beside the engine.
final class FrameIntake: TransportHandler {
  private let decoder: FrameDecoder
  private let inbox: Inbox<NodeJob>
  private let authority: CurrentAuthority
  private let keeper: LinkKeeper?
  private let waiting = Mutex<[ConnectionID: Backlog]>([:])
  private let pause: @Sendable (ConnectionID) -> Void

  /// What one connection has handed in and the engine has not taken up.
  private struct Backlog {
    var byteCount = 0
    var messageCount = 0
    /// Reading is paused until the engine has caught up.
    var isFull = false
    /// Reading is paused because the peer does not read.
    var isHeldUp = false
    /// What came is no protocol: nothing more is listened to until the engine closes it.
    var isBroken = false

    /// True where reading is to pause.
    mutating func add(_ byteCount: Int) -> Bool {
      self.byteCount += byteCount + FrameIntake.messageByteCount
      messageCount += 1
      isFull =
        isFull || self.byteCount > FrameIntake.waitingByteLimit || messageCount > FrameIntake.waitingMessageLimit
      return isFull
    }

    /// True where reading is to go on.
    mutating func remove(_ byteCount: Int) -> Bool {
      self.byteCount = max(0, self.byteCount - byteCount - FrameIntake.messageByteCount)
      messageCount = max(0, messageCount - 1)
      guard isFull, self.byteCount < FrameIntake.resumeByteMark, messageCount < FrameIntake.resumeMessageMark else {
        return false
      }
      isFull = false
      return !isHeldUp
    }
  }

  /// Bytes of one connection's frames that may wait for the engine: two of the largest, and seconds of catch-up. One
  /// device has up to three connections.
  static let waitingByteLimit = 8 * 1024 * 1024
  /// Reading goes on when less than this waits.
  static let resumeByteMark = 4 * 1024 * 1024
  /// What a waiting message takes beside its bytes.
  static let messageByteCount = 512
  /// Messages of one connection that may wait: whoever uses this node waits behind them (W11).
  static let waitingMessageLimit = 4_096
  static let resumeMessageMark = 2_048

  init(
    _ decoder: FrameDecoder, authority: CurrentAuthority, inbox: Inbox<NodeJob>, keeper: LinkKeeper? = nil,
    pause: @escaping @Sendable (ConnectionID) -> Void
  ) {
    (self.decoder, self.inbox, self.authority, self.pause) = (decoder, inbox, authority, pause)
    self.keeper = keeper
  }

  /// A newer set of statements; runs that came before it are checked by the engine.
  func adopt(_ authority: Authority) { self.authority.adopt(authority) }

  func opened(_ connection: OpenedConnection) {
    var tag: UInt64?
    if case .dialled(let dialled) = connection.origin { tag = dialled }
    keeper?.opened(connection.id.session, connection.path)
    inbox.put(
      .event(
        .opened(
          OpenedLink(
            session: connection.id.session, dialTag: tag, remote: connection.remote, peerKey: connection.peerKey,
            exporter: connection.exporter))))
  }

  func closed(_ connection: ConnectionID, reason: CloseReason) {
    waiting.withLock { $0[connection] = nil }
    keeper?.closed(connection.session)
    inbox.put(.event(.closed(connection.session, reason: "\(reason)")))
  }

  func drained(_ connection: ConnectionID, queuedBytes: Int) { inbox.put(.event(.drained(connection.session))) }

  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {
    inbox.put(.event(.dialFailed(tag: tag, reason: "\(reason)")))
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {
    guard waiting.withLock({ $0[connection]?.isBroken }) != true else { return }
    do {
      let event: EngineEvent
      switch try decoder.decode(frame, under: { authority.now }) {
      case .nothing: return
      case .message(let message): event = .message(connection.session, message, byteCount: frame.count)
      case .runs(let batch, let runs): event = .runs(connection.session, batch, runs, byteCount: frame.count)
      }
      note(connection, frame.count)
      inbox.put(.event(event))
    } catch {
      waiting.withLock { $0[connection, default: Backlog()].isBroken = true }
      inbox.put(.event(.violation(connection.session, "\(error)")))
    }
  }

  /// Pauses under the lock: a pause that came after the engine's going on again would be the last word.
  private func note(_ connection: ConnectionID, _ byteCount: Int) {
    waiting.withLock { waiting in
      if waiting[connection, default: Backlog()].add(byteCount) { pause(connection) }
    }
  }

  /// The engine is done with a message of so many bytes. True when reading is to go on.
  func release(_ connection: ConnectionID, _ byteCount: Int) -> Bool {
    waiting.withLock { waiting in
      waiting[connection]?.remove(byteCount) ?? false
    }
  }

  /// Reading from a peer that does not read pauses until ``letGo(_:)``.
  func holdUp(_ connection: ConnectionID) {
    waiting.withLock { waiting in
      guard waiting[connection] != nil else { return }
      waiting[connection]?.isHeldUp = true
      pause(connection)
    }
  }

  /// True when reading is to go on.
  func letGo(_ connection: ConnectionID) -> Bool {
    waiting.withLock { waiting in
      guard waiting[connection]?.isHeldUp == true else { return false }
      waiting[connection]?.isHeldUp = false
      return waiting[connection]?.isFull == false
    }
  }
}

extension ConnectionID {
  /// One connection carries one session.
  var session: SessionID { SessionID(rawValue: number) }
  init(_ session: SessionID) { self.init(number: session.rawValue) }
}
