/// Frames that wait to be written, read as one stream of bytes (each body behind its length). Confined to the IO thread.
struct SendQueue {
  private var frames: [[UInt8]] = []
  /// Frames before this one are written and already released.
  private var first = 0
  /// Bytes of the first frame, its length included, that are written.
  private var written = 0
  /// All bytes that wait, lengths included.
  private(set) var byteCount = 0
  var frameCount: Int { frames.count - first }
  var cost: QueueCost { QueueCost(byteCount, frameCount: frameCount) }

  var isEmpty: Bool { byteCount == 0 }

  static func wireByteCount(_ frame: [UInt8]) -> Int { frame.count + FrameAssembler.lengthByteCount }

  mutating func append(_ frame: [UInt8]) {
    frames.append(frame)
    byteCount += SendQueue.wireByteCount(frame)
  }

  /// Copies the front of the stream, so that many small frames go out in one record. Answers the count.
  func copyFront(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var filled = 0
    var skipped = written
    for frame in frames[first...] {
      guard filled < buffer.count else { break }
      if skipped < FrameAssembler.lengthByteCount {
        filled += copyLength(of: frame, from: skipped, into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
        skipped = FrameAssembler.lengthByteCount
      }
      frame.withUnsafeBytes { body in
        let rest = body[(skipped - FrameAssembler.lengthByteCount)...].prefix(buffer.count - filled)
        UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyBytes(from: rest)
        filled += rest.count
      }
      skipped = 0
    }
    return filled
  }

  private func copyLength(of frame: [UInt8], from start: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: frame.count).bigEndian) { length in
      let part = length[start...].prefix(buffer.count)
      buffer.copyBytes(from: part)
      return part.count
    }
  }

  /// Removes what was written from the front. Answers how many frames are through with it.
  @discardableResult
  mutating func consume(_ count: Int) -> Int {
    let before = frameCount
    byteCount -= count
    written += count
    while first < frames.count, written >= SendQueue.wireByteCount(frames[first]) {
      written -= SendQueue.wireByteCount(frames[first])
      frames[first] = []
      first += 1
    }
    compact()
    return before - frameCount
  }

  /// Moving the rest down only when half is gone keeps the cost per frame constant.
  private mutating func compact() {
    guard first > 0, first * 2 >= frames.count else { return }
    frames.removeFirst(first)
    first = 0
  }
}

/// What waiting frames take.
struct QueueCost {
  /// With ``SecureTransport/frameOverheadByteCount`` for each frame.
  private(set) var byteCount = 0
  private(set) var frameCount = 0

  init() {}

  init(_ streamByteCount: Int, frameCount: Int) {
    byteCount = streamByteCount + frameCount * SecureTransport.frameOverheadByteCount
    self.frameCount = frameCount
  }

  static func += (a: inout QueueCost, b: QueueCost) {
    a.byteCount += b.byteCount
    a.frameCount += b.frameCount
  }

  static func -= (a: inout QueueCost, b: QueueCost) {
    a.byteCount -= b.byteCount
    a.frameCount -= b.frameCount
  }
}
