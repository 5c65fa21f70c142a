/// Cuts a byte stream into frames: a length (4 bytes, big-endian, of the body alone), then the body.
///
/// The length is judged before a byte is reserved for it (W3). A value without IO, so that it can be tested byte by byte.
struct FrameAssembler {
  enum Violation: Error, Equatable {
    case tooLarge(byteCount: Int, limit: Int)
    /// No message is empty; a stream of them would only cost work (W11).
    case empty
  }

  static let lengthByteCount = 4

  private var length: UInt32 = 0
  private var lengthBytesSeen = 0
  private var body: [UInt8] = []
  private var bodyByteCount = 0

  /// Of a frame that has not come to its end.
  var unfinishedByteCount: Int { body.count }

  /// True between frames: where the stream may end.
  var isBetweenFrames: Bool { lengthBytesSeen == 0 }

  /// Takes in as much as it can and answers how many bytes that was: fewer than there are only where a frame is larger
  /// than what is accepted `now` but not than what will be accepted `later`. Called again, it goes on at the first byte
  /// it did not take. Limits are asked for anew for every frame.
  mutating func consume(
    _ bytes: UnsafeRawBufferPointer, limits: () -> (now: Int, later: Int), deliver: ([UInt8]) -> Void
  ) throws(Violation) -> Int {
    var position = 0
    while position < bytes.count {
      if lengthBytesSeen < FrameAssembler.lengthByteCount {
        length = length << 8 | UInt32(bytes[position])
        lengthBytesSeen += 1
        position += 1
        guard lengthBytesSeen == FrameAssembler.lengthByteCount else { continue }
        bodyByteCount = Int(length)
        guard bodyByteCount > 0 else { throw .empty }
        let limit = limits().later
        guard bodyByteCount <= limit else { throw .tooLarge(byteCount: bodyByteCount, limit: limit) }
        continue
      }
      guard bodyByteCount <= limits().now else { return position }
      position += take(UnsafeRawBufferPointer(rebasing: bytes[position...]), deliver)
    }
    return position
  }

  private mutating func take(_ bytes: UnsafeRawBufferPointer, _ deliver: ([UInt8]) -> Void) -> Int {
    let count = min(bytes.count, bodyByteCount - body.count)
    if body.isEmpty { body.reserveCapacity(bodyByteCount) }
    body.append(contentsOf: bytes.prefix(count))
    if body.count == bodyByteCount {
      let frame = body
      (length, lengthBytesSeen, bodyByteCount, body) = (0, 0, 0, [])
      deliver(frame)
    }
    return count
  }
}
