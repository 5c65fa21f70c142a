import Replication
import Transport

/// The connections of this node, for status pages and for the dial policy.
struct LinkTable {
  struct Link {
    let connection: ConnectionID
    let remote: SocketAddress
    /// The address that was dialled; nil for an accepted connection.
    let dialled: PeerAddress?
    var device: DeviceID?
    /// Messages that the transport had no room for, in order.
    var overflow: [[UInt8]] = []
    var overflowByteCount = 0
    var clockDifference: Int64?
    var listenPort: UInt16 = 0
    /// Bytes of messages with their lengths, before TLS seals them.
    var sentByteCount: Int64 = 0
    var receivedByteCount: Int64 = 0
  }

  private(set) var links: [SessionID: Link] = [:]
  /// Addresses being dialled, by the tag given to the transport.
  private var dials: [UInt64: PeerAddress] = [:]
  private var nextTag: UInt64 = 1
  /// The last outcome per address, for people. Bounded by ``outcomeLimit``.
  private(set) var outcomes: [PeerAddress: String] = [:]

  static let outcomeLimit = 256
  /// A peer that does not read and still causes messages is cut off at this.
  static let overflowByteLimit = 8 * 1024 * 1024

  subscript(id: SessionID) -> Link? {
    get { links[id] }
    set { links[id] = newValue }
  }

  func address(_ id: SessionID?) -> String { id.flatMap { links[$0] }.map { $0.remote.description } ?? "?" }

  mutating func noteClock(_ id: SessionID?, _ milliseconds: Int64) {
    if let id { links[id]?.clockDifference = milliseconds }
  }

  mutating func beginDial(_ address: PeerAddress) -> UInt64 {
    defer { nextTag += 1 }
    dials[nextTag] = address
    return nextTag
  }

  mutating func endDial(_ tag: UInt64) -> PeerAddress? { dials.removeValue(forKey: tag) }

  mutating func note(_ outcome: String, at address: PeerAddress) {
    if outcomes[address] == nil, outcomes.count >= LinkTable.outcomeLimit, let first = outcomes.keys.min() {
      outcomes[first] = nil
    }
    outcomes[address] = outcome
  }

  mutating func forgetOutcome(at address: PeerAddress) { outcomes[address] = nil }

  mutating func removeAll() { links.removeAll() }
}
