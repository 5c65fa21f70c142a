import Glibc
import Replication
import Transport

/// Does not come back from the first call, for tests of the watchdog.
final class HangingHandler: TransportHandler {
  /// A dial that ends in a call, whatever is there.
  static let trigger = PeerAddress.socket(SocketAddress(.ipv4(0x7f00_0001), port: 1))

  func opened(_ connection: OpenedConnection) { hang() }
  func received(_ connection: ConnectionID, frame: [UInt8]) { hang() }
  func closed(_ connection: ConnectionID, reason: CloseReason) { hang() }
  func drained(_ connection: ConnectionID, queuedBytes: Int) { hang() }
  func dialFailed(_ connection: ConnectionID, tag: UInt64, reason: DialFailure) { hang() }

  private func hang() { while true { sleep(.max) } }
}
