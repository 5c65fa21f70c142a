import Replication
import Transport

/// What is to become of a frame that the transport had no room for.
enum HoldOutcome: Equatable {
  case held
  /// The bound is passed for the first time: everything held is let go, and the peer is to be cut off.
  case cutOff
  /// The peer is being cut off already.
  case dropped
}

/// Frames that wait until the transport has room for them, in order: all of one session's.
///
/// Bounded in bytes and in frames. Every step costs the same however much waits.
struct HeldFrames {
  private(set) var frames: [[UInt8]] = []
  /// Frames before this one are handed over already.
  private var first = 0
  /// Of all that waits, with ``SecureTransport/frameOverheadByteCount`` for each frame.
  private(set) var byteCount = 0
  private(set) var isCutOff = false

  /// A peer that does not read and still causes messages is cut off above this: as much again as the transport queues.
  static let byteLimit = 8 * 1024 * 1024
  /// The same for small messages, which cost memory and work by their number. An honest peer with tens of thousands of
  /// partitions is asked for each of them at once.
  static let frameLimit = 65_536

  var isEmpty: Bool { first == frames.count }
  var frameCount: Int { frames.count - first }
  var next: [UInt8]? { isEmpty ? nil : frames[first] }

  mutating func hold(_ frame: [UInt8]) -> HoldOutcome {
    guard !isCutOff else { return .dropped }
    let cost = HeldFrames.cost(of: frame)
    guard frameCount < HeldFrames.frameLimit, byteCount + cost <= HeldFrames.byteLimit else {
      self = HeldFrames()
      isCutOff = true
      return .cutOff
    }
    frames.append(frame)
    byteCount += cost
    return .held
  }

  /// The transport has taken ``next``.
  mutating func removeNext() {
    guard let frame = next else { return }
    byteCount -= HeldFrames.cost(of: frame)
    frames[first] = []
    first += 1
    compact()
  }

  private static func cost(of frame: [UInt8]) -> Int { frame.count + SecureTransport.frameOverheadByteCount }

  /// Moving the rest down only when half is gone keeps the cost per frame constant.
  private mutating func compact() {
    guard first * 2 >= frames.count else { return }
    frames.removeFirst(first)
    first = 0
  }
}

/// What one peer is owed while it does not read. See Docs/ARCHITECTURE.md, "A peer that does not read".
struct UnreadAnswers {
  /// Of the last ping that was not answered yet.
  private(set) var ping: UInt64?
  /// Answers that the peer's own messages called for since reading from it last went on.
  private(set) var count = 0
  private(set) var isHeldUp = false

  /// Of one peer between two ticks of the engine: far more than an honest one asks while it does not read.
  static let limit = 1_024

  /// A newer ping takes the place of an older one: one answer says that this node lives.
  mutating func delayAnswer(to ping: UInt64) { self.ping = ping }

  /// True where reading from the peer is to pause.
  mutating func add(_ answers: Int) -> Bool {
    count += answers
    guard !isHeldUp, count >= UnreadAnswers.limit else { return false }
    isHeldUp = true
    return true
  }

  mutating func takePing() -> UInt64? {
    defer { ping = nil }
    return ping
  }

  /// A new portion of answers. True where reading was paused and is to go on.
  mutating func renew() -> Bool {
    defer { (count, isHeldUp) = (0, false) }
    return isHeldUp
  }
}
