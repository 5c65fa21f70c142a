import Identity
import Replication
import Synchronization
import Transport
import Wire

/// The IO thread's part: frames become messages, and runs are hashed and their signatures checked, beside the engine.
final class FrameIntake: TransportHandler {
  private let fleet: FleetID
  private let inbox: Inbox<EngineJob>
  private let authority: Mutex<Authority>
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

  /// Bytes of one connection's frames that may wait for the engine: enough for a large commit batch of catch-up.
  static let waitingByteLimit = 24 * 1024 * 1024
  /// Reading goes on when less than this waits.
  static let resumeByteMark = 12 * 1024 * 1024
  /// What a waiting message takes beside its bytes.
  static let messageByteCount = 512
  /// Messages of one connection that may wait: whoever uses this node waits behind them (W11).
  static let waitingMessageLimit = 4_096
  static let resumeMessageMark = 2_048

  init(
    fleet: FleetID, authority: Authority, inbox: Inbox<EngineJob>, pause: @escaping @Sendable (ConnectionID) -> Void
  ) {
    (self.fleet, self.inbox, self.pause) = (fleet, inbox, pause)
    self.authority = Mutex(authority)
  }

  /// A newer set of statements; runs that came before it are checked by the engine.
  func adopt(_ authority: Authority) { self.authority.withLock { $0 = authority } }

  func opened(_ connection: OpenedConnection) { inbox.put(.opened(connection)) }

  func closed(_ connection: ConnectionID, reason: CloseReason) {
    waiting.withLock { $0[connection] = nil }
    inbox.put(.closed(connection, reason))
  }

  func drained(_ connection: ConnectionID, queuedBytes: Int) { inbox.put(.drained(connection)) }

  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) {
    inbox.put(.dialFailed(tag: tag, reason))
  }

  func received(_ connection: ConnectionID, frame: [UInt8]) {
    guard waiting.withLock({ $0[connection]?.isBroken }) != true else { return }
    do {
      guard let message = try MessageCodec.decode(frame[...]) else { return }
      let job: EngineJob =
        if case .runs(let batch) = message {
          .runs(connection, batch, try decode(batch), byteCount: frame.count)
        } else {
          .message(connection, message, byteCount: frame.count)
        }
      note(connection, frame.count)
      inbox.put(job)
    } catch {
      waiting.withLock { $0[connection, default: Backlog()].isBroken = true }
      inbox.put(.violation(connection, "\(error)"))
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

  private func decode(_ batch: RunBatch) throws(RunError) -> [IncomingRun] {
    let partition = batch.name.id(fleet: fleet, hash: SHA256.hash)
    let authority = authority.withLock { $0 }
    var runs: [IncomingRun] = []
    runs.reserveCapacity(batch.entries.count)
    for entry in batch.entries {
      let decoded = try RunCodec.decode(entry.encoded, fleet: fleet, partition: partition, hash: SHA256.hash)
      runs.append(try IncomingRun(decoded, context: entry.context, in: batch.name, authority))
    }
    return runs
  }
}

extension IncomingRun {
  /// Checks the signature where the signer is known; otherwise leaves the signer open for whoever knows more statements.
  init(
    _ run: DecodedRun, context: ContextForm, in partition: PartitionName, _ authority: Authority
  ) throws(RunError) {
    let signer = authority.signer(of: run.chain.replica)
    if let signer { try run.verifySignature(of: signer, Ed25519.verify) }
    self.init(
      replica: run.chain.replica, first: run.first, hashBefore: run.hashBefore, contextDigest: run.contextDigest,
      context: context, hashes: run.hashes, facts: run.facts(in: partition), elementDots: run.elementDots,
      signer: signer, encoded: run.encoded, content: ArrivedContent(run, isSignerKnown: signer != nil))
  }
}

extension IncomingRun {
  func with(_ content: ArrivedContent, elementDots: [ReplicaID: UInt64]) -> IncomingRun {
    IncomingRun(
      replica: replica, first: first, hashBefore: hashBefore, contextDigest: contextDigest, context: context,
      hashes: hashes, facts: facts, elementDots: elementDots, signer: signer, encoded: encoded, content: content)
  }
}

extension DecodedRun {
  var elementDots: [ReplicaID: UInt64] {
    var joined: [ReplicaID: UInt64] = [:]
    for case .documents(let scan) in contents { joined.merge(scan.elementDots, uniquingKeysWith: max) }
    return joined
  }

  /// Empty where every change is an ordinary one.
  func facts(in partition: PartitionName) -> [ChangeFacts] {
    let needsOwner = partition.keyValue?.key == Statement.Rule.Key.allUsers
    guard needsOwner || isUnusual else { return [] }
    let facts = changes.indices.map { index in
      ChangeFacts(
        recognition: recognition(at: index), ownDocument: needsOwner ? owner(at: index) : nil,
        origin: changes[index].header.origin)
    }
    return facts.allSatisfy { $0 == ChangeFacts() } ? [] : facts
  }

  /// Is there a change that is not counted at once, or one that re-issues another?
  private var isUnusual: Bool {
    contents.contains { if case .held = $0 { true } else { false } } || changes.contains { $0.header.origin != nil }
  }

  private func recognition(at index: Int) -> ChangeFacts.Recognition {
    guard case .held = contents[index] else { return .known }
    return changes[index].header.codec == .plain ? .unknownExtension : .unknownCodec
  }

  private func owner(at index: Int) -> Text? {
    let dot = Dot(replica: chain.replica, sequence: changes[index].header.sequence)
    return (try? PayloadDecoder.decodeWrites(changes[index].payload, dot: dot)).flatMap(DocumentRule.owner(of:))
  }
}
