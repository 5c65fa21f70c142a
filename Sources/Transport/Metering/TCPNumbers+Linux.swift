import CLinux
import Glibc

/// What the kernel says about one TCP connection since its beginning.
struct TCPNumbers: Equatable {
  /// Both ways, with what was sent again: TLS stands in it, the headers do not.
  var payloadByteCount: UInt64 = 0
  var segmentCount: UInt64 = 0
  /// Taken from the writer and not sent for the first time yet.
  var notSentByteCount: UInt64 = 0
  var hasTimestamps = true
  var isEstablished = false
  /// Nothing is under way, of which an acknowledgement would have to come.
  var isQuiet = true
  /// Closing the socket now still sends something.
  var hasEndToSay = false

  init() {}

  /// Nil where the kernel does not tell (before Linux 4.19, and what only looks like Linux).
  private static func raw(_ descriptor: Int32) -> seamesh_tcp_numbers? {
    var raw = seamesh_tcp_numbers()
    var length = socklen_t(MemoryLayout<seamesh_tcp_numbers>.size)
    guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &raw, &length) == 0,
      length >= MemoryLayout<seamesh_tcp_numbers>.size
    else { return nil }
    return raw
  }

  /// What was taken from the writer and is not acknowledged. Nil where the kernel does not tell.
  static func underWay(_ descriptor: Int32) -> SendPace.Kernel? {
    var waiting: Int32 = 0
    // What was sent counts segments twice that the host itself dropped, so it does not tell.
    guard let raw = raw(descriptor), raw.segments_in > 0, ioctl(descriptor, UInt(TIOCOUTQ), &waiting) == 0 else {
      return nil
    }
    return SendPace.Kernel(
      underWay: Int(max(0, waiting)), acknowledged: raw.bytes_acknowledged,
      leastRoundTripMilliseconds: Int(raw.least_round_trip / 1_000))
  }

  /// Nil where the kernel does not tell.
  init?(_ descriptor: Int32) {
    guard let raw = TCPNumbers.raw(descriptor) else { return nil }
    let isOpen = State.open.contains(raw.state)
    if isOpen, raw.segments_in == 0 { return nil }
    payloadByteCount = raw.bytes_sent &+ raw.bytes_received
    segmentCount = UInt64(raw.segments_out) + UInt64(raw.segments_in)
    notSentByteCount = UInt64(raw.bytes_not_sent)
    hasTimestamps = raw.options & State.timestampsOption != 0
    isEstablished = isOpen || raw.options != 0
    isQuiet = raw.unacknowledged == 0 && raw.bytes_not_sent == 0
    hasEndToSay = isOpen
  }

  /// Where the kernel does not tell: from what passed the socket, as if nothing had been lost.
  init(estimatedFrom byteCount: UInt64) {
    payloadByteCount = byteCount
    // One acknowledgement for two segments, and those of the opening.
    segmentCount = TCPNumbers.openingSegmentCount + (byteCount / TCP.leastSegmentByteCount + 1) * 3 / 2
    isEstablished = true
  }

  private static let openingSegmentCount: UInt64 = 3

  /// As the kernel numbers them.
  private enum State {
    /// ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT.
    static let open: Set<UInt8> = [1, 4, 5, 8]
    static let timestampsOption: UInt8 = 1
  }
}
