import Replication

/// The beacon's datagram: found where no responder runs.
///
/// "seamesh" and the version (8 bytes), TCP port (2, big-endian), tag (8), length of the instance name (1), the name.
/// Nothing may follow. A later version keeps the first seven bytes.
struct BeaconPacket: Equatable {
  static let version: UInt8 = 1
  static let byteLimit = headByteCount + Advertisement.instanceByteLimit
  private static let magic: [UInt8] = Array("seamesh".utf8) + [version]
  private static let headByteCount = 8 + 2 + Advertisement.tagByteCount + 1

  let advertisement: Advertisement

  init(_ advertisement: Advertisement) { self.advertisement = advertisement }

  var bytes: [UInt8] {
    let name = Array(advertisement.instance.utf8)
    let port = [UInt8(advertisement.port >> 8), UInt8(truncatingIfNeeded: advertisement.port)]
    return BeaconPacket.magic + port + advertisement.tag + [UInt8(name.count)] + name
  }

  /// Nil unless the bytes are one whole packet of this version, its name valid UTF-8.
  init?(_ bytes: some RandomAccessCollection<UInt8>) {
    let bytes = Array(bytes)
    let head = BeaconPacket.headByteCount
    guard bytes.count > head, bytes.starts(with: BeaconPacket.magic), bytes.count == head + Int(bytes[head - 1]),
      let name = String(validating: bytes[head...], as: UTF8.self),
      let advertisement = Advertisement(
        instance: name, tag: Array(bytes[10..<18]), port: UInt16(bytes[8]) << 8 | UInt16(bytes[9]))
    else { return nil }
    self.advertisement = advertisement
  }
}

/// How many datagrams are looked at: per source and in all, a second (N6). A value without IO.
struct BeaconAdmission {
  static let perSourcePerSecond = 20
  static let perSecond = 200
  private static let windowMilliseconds: UInt64 = 1_000

  private var windowStart = MonotonicTime(milliseconds: 0)
  private var total = 0
  private var perSource: [SocketAddress.Host: Int] = [:]

  mutating func admit(_ source: SocketAddress.Host, now: MonotonicTime) -> Bool {
    if now >= windowStart.advanced(byMilliseconds: BeaconAdmission.windowMilliseconds) {
      (windowStart, total, perSource) = (now, 0, [:])
    }
    // What one source sends beyond its share must not use up that of the others.
    let fromSource = perSource[source] ?? 0
    guard fromSource < BeaconAdmission.perSourcePerSecond, total < BeaconAdmission.perSecond else { return false }
    total += 1
    perSource[source] = fromSource + 1
    return true
  }
}
