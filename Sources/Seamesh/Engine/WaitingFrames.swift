import Transport

/// What connections have handed in and the engine has not taken up, and whose reading is to pause meanwhile.
struct WaitingFrames {
  private struct Backlog {
    var byteCount = 0
    var messageCount = 0
    /// Reading is paused until the engine has caught up.
    var isFull = false
    /// Reading is paused because the peer does not read.
    var isHeldUp = false
    /// What came is no protocol: nothing more is listened to until the engine closes it.
    var isBroken = false
  }

  private var backlogs: [ConnectionID: Backlog] = [:]
  private(set) var byteCount = 0
  /// Of frames that have not come to their end: they are no one's backlog, since no pause of reading makes them fewer, and
  /// leave less to all.
  var unfinishedByteCount = 0

  /// Bytes of one connection's frames that may wait for the engine: two of the largest, and seconds of catch-up. One
  /// device has up to three connections.
  static let connectionByteLimit = 8 * 1024 * 1024
  /// Bytes of all connections' frames: above it each pauses at its share. One frame more of each is taken, since how long
  /// it is shows when it is there.
  static let byteLimit = 64 * 1024 * 1024
  /// Reading goes on when less than this part of the limit waits.
  private static let resumeDivisor = 2
  /// What a waiting message takes beside its bytes.
  static let messageByteCount = 512
  /// Messages of one connection that may wait.
  static let messageLimit = 4_096

  /// Bytes of each connection's frames that may wait now.
  private var share: Int {
    let limit = max(0, WaitingFrames.byteLimit - unfinishedByteCount)
    return byteCount > limit
      ? min(WaitingFrames.connectionByteLimit, limit / max(1, backlogs.count)) : WaitingFrames.connectionByteLimit
  }

  /// True where reading is to pause.
  mutating func add(_ byteCount: Int, of connection: ConnectionID) -> Bool {
    var backlog = backlogs[connection] ?? Backlog()
    let added = byteCount + WaitingFrames.messageByteCount
    backlog.byteCount += added
    backlog.messageCount += 1
    self.byteCount += added
    backlog.isFull =
      backlog.isFull || backlog.byteCount > share || backlog.messageCount > WaitingFrames.messageLimit
    backlogs[connection] = backlog
    return backlog.isFull
  }

  /// The engine is done with so many bytes. True where reading is to go on.
  mutating func take(_ byteCount: Int, of connection: ConnectionID) -> Bool {
    guard var backlog = backlogs[connection] else { return false }
    let taken = min(backlog.byteCount, byteCount + WaitingFrames.messageByteCount)
    backlog.byteCount -= taken
    self.byteCount -= taken
    backlog.messageCount = max(0, backlog.messageCount - 1)
    let hasCaughtUp =
      backlog.byteCount < share / WaitingFrames.resumeDivisor
      && backlog.messageCount < WaitingFrames.messageLimit / WaitingFrames.resumeDivisor
    let goesOn = backlog.isFull && hasCaughtUp
    if goesOn { backlog.isFull = false }
    backlogs[connection] = backlog
    return goesOn && !backlog.isHeldUp
  }

  /// True where the connection is known.
  mutating func holdUp(_ connection: ConnectionID) -> Bool {
    guard backlogs[connection] != nil else { return false }
    backlogs[connection]?.isHeldUp = true
    return true
  }

  /// True where reading is to go on.
  mutating func letGo(_ connection: ConnectionID) -> Bool {
    guard backlogs[connection]?.isHeldUp == true else { return false }
    backlogs[connection]?.isHeldUp = false
    return backlogs[connection]?.isFull == false
  }

  mutating func markBroken(_ connection: ConnectionID) { backlogs[connection, default: Backlog()].isBroken = true }
  func isBroken(_ connection: ConnectionID) -> Bool { backlogs[connection]?.isBroken == true }

  func holds(_ connection: ConnectionID) -> Bool { (backlogs[connection]?.byteCount ?? 0) > 0 }

  /// The connection has gone; what of it waits is no longer counted.
  mutating func remove(_ connection: ConnectionID) {
    byteCount -= backlogs.removeValue(forKey: connection)?.byteCount ?? 0
  }
}
