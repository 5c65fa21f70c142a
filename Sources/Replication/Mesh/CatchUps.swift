/// Which session brings what is lacking of each partition, and when it last brought something: one peer at a time, the others
/// wait.
struct CatchUps: Sendable {
  private struct CatchUp: Sendable {
    let session: SessionID
    /// What the peer was known to have when it was asked: that it sends. What came to it since it may leave to others.
    let asked: VersionVector
    var progress: MonotonicTime
    /// What it has brought so far.
    var byteCount = 0
    /// Messages whose runs memory has, and the disk does not yet.
    var uncommitted = 0
  }

  private var running: [PartitionID: CatchUp] = [:]

  var isEmpty: Bool { running.isEmpty }

  func session(of partition: PartitionID) -> SessionID? { running[partition]?.session }

  /// Ascending.
  func partitions(of session: SessionID) -> [PartitionID] {
    running.filter { $0.value.session == session }.keys.sorted()
  }

  mutating func begin(
    _ partition: PartitionID, on session: SessionID, for asked: VersionVector, _ now: MonotonicTime
  ) {
    running[partition] = CatchUp(session: session, asked: asked, progress: now)
  }

  /// Something that the peer was known to have when it was asked has not come. What came ahead of what others bring has: they
  /// may have to be asked for that.
  func isOutstanding(_ partition: PartitionID, _ stream: PeerStream, _ state: PartitionState?) -> Bool {
    guard let asked = running[partition]?.asked else { return false }
    let reached = state?.waiting.ahead.reached ?? [:]
    return stream.isAhead(of: state?.log) { replica in
      asked.sequence(of: replica) > max(state?.log.received.sequence(of: replica) ?? 0, reached[replica] ?? 0)
    }
  }

  mutating func noteProgress(_ partition: PartitionID, _ byteCount: Int, _ now: MonotonicTime) {
    running[partition]?.progress = now
    running[partition]?.byteCount += byteCount
  }

  /// A few reports. Of more it is worth a wait to send it once.
  static let fewBytes = 8_192

  /// The session catches this node up, and has brought more than a few changes, with what has just come.
  func bringsMuch(_ session: SessionID, _ partition: PartitionID, _ byteCount: Int) -> Bool {
    guard let catchUp = running[partition], catchUp.session == session else { return false }
    return catchUp.byteCount + byteCount > CatchUps.fewBytes
  }

  /// Runs of one message go to the disk; several messages may get there in one commit.
  mutating func noteTaken(_ partition: PartitionID) { running[partition]?.uncommitted += 1 }

  /// Those of one message are there. Answers whether more are on their way.
  mutating func noteCommitted(_ partition: PartitionID) -> Bool {
    guard let before = running[partition]?.uncommitted, before > 0 else { return false }
    running[partition]?.uncommitted = before - 1
    return before > 1
  }

  mutating func end(_ partition: PartitionID) { running[partition] = nil }

  /// Answers whether this session did it.
  @discardableResult
  mutating func end(_ partition: PartitionID, on session: SessionID) -> Bool {
    guard running[partition]?.session == session else { return false }
    running[partition] = nil
    return true
  }

  /// Ascending.
  var partitions: [PartitionID] { running.keys.sorted() }
  var count: Int { running.count }

  /// It has brought nothing for so long.
  func isSilent(_ partition: PartitionID, for milliseconds: UInt64, _ now: MonotonicTime) -> Bool {
    running[partition].map { now.millisecondsSince($0.progress) > milliseconds } ?? false
  }
}
