/// The fate of a frame that the transport had no room for.
package enum HoldOutcome: Equatable {
  case held
  /// The bound is passed for the first time: everything held is let go, and the peer is to be cut off.
  case cutOff
  /// The peer is being cut off already.
  case dropped
}

/// Frames that wait until the transport has room for them, in order: all of one session's.
///
/// Bounded in bytes and in frames. Every step costs the same however much waits.
package struct HeldFrames {
  private(set) var frames: [[UInt8]] = []
  /// Frames before this one are handed over already.
  private var first = 0
  /// Bytes of all frames that wait, with ``frameOverheadByteCount`` for each.
  private(set) var byteCount = 0
  private(set) var isCutOff = false

  /// A peer that does not read and still causes messages is cut off above this: as much again as the transport queues.
  static let byteLimit = 8 * 1024 * 1024
  /// Memory that a waiting frame takes beside its bytes.
  static let frameOverheadByteCount = 64
  /// The same for small messages, which cost memory and work by their number. An honest peer with tens of thousands of
  /// partitions is asked for each of them at once.
  static let frameLimit = 65_536

  var isEmpty: Bool { first == frames.count }
  package var frameCount: Int { frames.count - first }
  var next: [UInt8]? { isEmpty ? nil : frames[first] }

  mutating func hold(_ frame: [UInt8]) -> HoldOutcome {
    guard !isCutOff else { return .dropped }
    let cost = HeldFrames.cost(of: frame)
    guard frameCount < HeldFrames.frameLimit, byteCount + cost <= HeldFrames.byteLimit else {
      cutOff()
      return .cutOff
    }
    frames.append(frame)
    byteCount += cost
    return .held
  }

  mutating func cutOff() {
    self = HeldFrames()
    isCutOff = true
  }

  /// The transport has taken ``next``.
  mutating func removeNext() {
    guard let frame = next else { return }
    byteCount -= HeldFrames.cost(of: frame)
    frames[first] = []
    first += 1
    compact()
  }

  private static func cost(of frame: [UInt8]) -> Int { frame.count + frameOverheadByteCount }

  /// Moving the rest down only when half is gone keeps the cost per frame constant.
  private mutating func compact() {
    guard first * 2 >= frames.count else { return }
    frames.removeFirst(first)
    first = 0
  }
}
