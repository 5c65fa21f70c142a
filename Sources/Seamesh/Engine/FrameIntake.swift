import Engine
import Replication
import Synchronization
import Transport

/// The IO thread's part: frames become messages, and runs are hashed and their signatures checked, beside the engine.
final class FrameIntake: TransportHandler {
  private let decoder: FrameDecoder
  private let inbox: Inbox
  private let authority: CurrentAuthority
  private let keeper: LinkKeeper?
  private let waiting = Mutex(WaitingFrames())
  let tally = FrameTally()
  private let pause: @Sendable (ConnectionID) -> Void

  init(
    _ decoder: FrameDecoder, authority: CurrentAuthority, inbox: Inbox, keeper: LinkKeeper? = nil,
    pause: @escaping @Sendable (ConnectionID) -> Void
  ) {
    (self.decoder, self.inbox, self.authority, self.pause) = (decoder, inbox, authority, pause)
    self.keeper = keeper
  }

  /// Bytes of frames that the engine has not taken up.
  var waitingByteCount: Int { waiting.withLock { $0.byteCount } }

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
    waiting.withLock { $0.remove(connection) }
    keeper?.closed(connection.session)
    inbox.put(.event(.closed(connection.session, reason: "\(reason)")))
  }

  func drained(_ connection: ConnectionID, queuedBytes: Int) { inbox.put(.event(.drained(connection.session))) }

  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {
    inbox.put(.event(.dialFailed(tag: tag, reason: "\(reason)", isLinkClosed: reason == .linkClosed)))
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {
    guard waiting.withLock({ !$0.isBroken(connection) }) else { return }
    tally.note(frame)
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
      waiting.withLock { $0.markBroken(connection) }
      inbox.put(.event(.violation(connection.session, BrokenRun.rule(of: error), at: BrokenRun.place(of: error))))
    }
  }

  func unfinished(byteCount: Int) { waiting.withLock { $0.unfinishedByteCount = byteCount } }

  /// Pauses under the lock: a pause that came after the engine's going on again would be the last word.
  private func note(_ connection: ConnectionID, _ byteCount: Int) {
    waiting.withLock { waiting in
      if waiting.add(byteCount, of: connection) { pause(connection) }
    }
  }

  /// The engine is done with a message of so many bytes. True when reading is to go on.
  func release(_ connection: ConnectionID, _ byteCount: Int) -> Bool {
    waiting.withLock { $0.take(byteCount, of: connection) }
  }

  /// Reading from a peer that does not read pauses until ``letGo(_:)``.
  func holdUp(_ connection: ConnectionID) {
    waiting.withLock { waiting in
      if waiting.holdUp(connection) { pause(connection) }
    }
  }

  /// True when reading is to go on.
  func letGo(_ connection: ConnectionID) -> Bool {
    waiting.withLock { $0.letGo(connection) }
  }
}

extension ConnectionID {
  /// One connection carries one session.
  var session: SessionID { SessionID(rawValue: number) }
  init(_ session: SessionID) { self.init(number: session.rawValue) }
}
