import Replication

/// One TCP connection with TLS on it: two pipes that keep order and lose nothing while it lives.
struct Connection {
  struct End {
    let slot: Int
    /// Which life of the slot's process.
    let life: Int
    let session: SessionID
    /// This end closed it, or is gone: nothing that comes is read any more.
    var isClosed = false
    /// Its process was told that the connection is gone.
    var isTold = false
    /// Nothing is read before.
    var stalledUntil: UInt64 = 0
    var intake = Intake()

    mutating func end() { (isClosed, isTold) = (true, true) }
  }

  /// What one end has read and its engine has not taken up: bounded, as the node's own is.
  struct Intake {
    var byteCount = 0
    /// More waits than may; reading goes on when half of it is gone.
    var isFull = false
    /// The engine wants nothing more for a while: this peer does not read what it asks for.
    var isHeldUp = false
    /// Frames that have arrived and are not read.
    var unreadFrames = 0
    /// The next of them is about to be read.
    var isReadingOn = false

    var isPaused: Bool { isFull || isHeldUp }

    mutating func add(_ count: Int, limit: Int) {
      byteCount += count
      isFull = isFull || byteCount > limit
    }

    mutating func remove(_ count: Int, limit: Int) {
      byteCount = max(0, byteCount - count)
      if byteCount < limit / 2 { isFull = false }
    }
  }

  /// Frames on their way from one end to the other.
  struct Pipe {
    var frames: [[UInt8]] = []
    var head = 0
    var queuedBytes = 0
    /// The last frame's arrival: none overtakes another.
    var lastArrival: UInt64 = 0
    /// Frames vanish, and nobody is told.
    var isSilent = false
    var isPaused = false

    mutating func take() -> [UInt8]? {
      guard head < frames.count else { return nil }
      let frame = frames[head]
      frames[head] = []
      head += 1
      if head == frames.count { (frames, head) = ([], 0) }
      queuedBytes -= frame.count
      return frame
    }
  }

  let number: UInt64
  /// That the dialler gave.
  let tag: UInt64
  /// The dialler's, then the listener's.
  var ends: [End]
  /// Of what each end sends.
  var pipes = [Pipe(), Pipe()]

  /// Above this the sender is told to pause; far below the real one, so that short histories reach it.
  static let pauseByteMark = 6 * 1024
  static let resumeByteMark = 2 * 1024
}
