/// Which session brings what is lacking of each partition, and when it last brought something: one peer at a time, the others
/// wait.
struct CatchUps: Sendable {
  private struct CatchUp: Sendable {
    let session: SessionID
    var progress: MonotonicTime
  }

  private var running: [PartitionID: CatchUp] = [:]

  var isEmpty: Bool { running.isEmpty }

  func session(of partition: PartitionID) -> SessionID? { running[partition]?.session }

  /// Ascending.
  func partitions(of session: SessionID) -> [PartitionID] {
    running.filter { $0.value.session == session }.keys.sorted()
  }

  mutating func begin(_ partition: PartitionID, on session: SessionID, _ now: MonotonicTime) {
    running[partition] = CatchUp(session: session, progress: now)
  }

  mutating func noteProgress(_ partition: PartitionID, _ now: MonotonicTime) { running[partition]?.progress = now }

  mutating func end(_ partition: PartitionID) { running[partition] = nil }

  mutating func end(_ partition: PartitionID, on session: SessionID) {
    if running[partition]?.session == session { running[partition] = nil }
  }

  /// Ascending.
  var partitions: [PartitionID] { running.keys.sorted() }

  /// Ends where it has brought nothing for so long; answers with its session then.
  mutating func endIfSilent(_ partition: PartitionID, for milliseconds: UInt64, _ now: MonotonicTime) -> SessionID? {
    guard let catchUp = running[partition], now.millisecondsSince(catchUp.progress) > milliseconds else { return nil }
    running[partition] = nil
    return catchUp.session
  }
}
