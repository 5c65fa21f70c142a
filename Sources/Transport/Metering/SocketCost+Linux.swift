import Glibc
import Links
import Replication

/// What a TCP connection costs on its interface, as the interface's own counters have it.
struct SocketCost: Equatable {
  /// IP and link layer, for each segment.
  let outerHeaderByteCount: UInt64
  /// SYN and its answer have options of 20 bytes where the others have 12, and the answer of who accepts is not counted.
  let isAccepted: Bool

  private static let tcpHeaderByteCount: UInt64 = 20
  private static let timestampsByteCount: UInt64 = 12
  private static let openingOptionsByteCount: UInt64 = 20
  /// FIN and its acknowledgement, both after the last look: what else the two ends say then has been counted already.
  private static let endSegmentCount: UInt64 = 2

  init(outerHeaderByteCount: UInt64, isAccepted: Bool) {
    (self.outerHeaderByteCount, self.isAccepted) = (outerHeaderByteCount, isAccepted)
  }

  init(_ path: LinkPath, isAccepted: Bool) {
    let ipHeaderByteCount: UInt64 =
      switch path.remote {
      case .ipv4: 20
      case .ipv6: 40
      }
    self.init(
      outerHeaderByteCount: ipHeaderByteCount + LinkLayer.headerByteCount(of: path.interface), isAccepted: isAccepted)
  }

  func byteCount(_ numbers: TCPNumbers) -> UInt64 {
    guard numbers.isEstablished else {
      return numbers.payloadByteCount + numbers.segmentCount * segment(SocketCost.openingOptionsByteCount)
    }
    let options = numbers.hasTimestamps ? SocketCost.timestampsByteCount : 0
    let opening = 2 * (SocketCost.openingOptionsByteCount - options) + (isAccepted ? segment(options) : 0)
    return numbers.payloadByteCount + numbers.segmentCount * segment(options) + opening
  }

  /// What goes out yet when the socket is closed now.
  func byteCountOfEnd(_ numbers: TCPNumbers) -> UInt64 {
    guard numbers.hasEndToSay else { return 0 }
    let options = numbers.hasTimestamps ? SocketCost.timestampsByteCount : 0
    let segments = SocketCost.endSegmentCount + numbers.notSentByteCount / TCP.leastSegmentByteCount
    return numbers.notSentByteCount + segments * segment(options)
  }

  var byteCountOfReset: UInt64 { segment(0) }

  private func segment(_ optionsByteCount: UInt64) -> UInt64 {
    outerHeaderByteCount + SocketCost.tcpHeaderByteCount + optionsByteCount
  }
}

enum LinkLayer {
  private static let ethernetHeaderByteCount: UInt64 = 14
  /// ARPHRD_ETHER; Wi-Fi shows itself so, too. Modems and tunnels carry IP without a header that their counters have.
  private static let ethernet = "1"

  static func headerByteCount(of interface: Text) -> UInt64 {
    guard !interface.utf8.isEmpty, !interface.utf8.contains(UInt8(ascii: "/")),
      let file = fopen("/sys/class/net/\(interface.string)/type", "r")
    else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 16)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let text = line.prefix { $0 != 0 && $0 != CChar(UInt8(ascii: "\n")) }.map { UInt8(bitPattern: $0) }
    return String(decoding: text, as: UTF8.self) == ethernet ? ethernetHeaderByteCount : 0
  }
}
