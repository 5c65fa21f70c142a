import Replication

/// What is known of each connection beside what is said on it, and what waits to be sent because the transport is full.
package struct LinkTable {
  package struct Link {
    package let remote: SocketAddress
    /// The address that was dialled; nil for an accepted connection.
    package let dialled: PeerAddress?
    package fileprivate(set) var device: DeviceID?
    package fileprivate(set) var clockDifference: Int64?
    /// Bytes of messages with their lengths, before TLS seals them.
    package fileprivate(set) var sentByteCount: Int64 = 0
    package fileprivate(set) var receivedByteCount: Int64 = 0

    init(remote: SocketAddress, dialled: PeerAddress?) { (self.remote, self.dialled) = (remote, dialled) }
  }

  /// Messages that the transport had no room for, in order.
  private struct Held {
    var frames: [[UInt8]] = []
    var byteCount = 0
  }

  package private(set) var links: [SessionID: Link] = [:]
  private var held: [SessionID: Held] = [:]
  /// Addresses being dialled, by the tag given to the transport.
  private var dials: [UInt64: PeerAddress] = [:]
  private var nextTag: UInt64 = 1
  /// The last outcome per address, for people. Bounded by ``outcomeLimit``.
  package private(set) var outcomes: [PeerAddress: String] = [:]

  static let outcomeLimit = 256
  /// A peer that does not read and still causes messages is cut off at this.
  static let heldByteLimit = 8 * 1024 * 1024

  package subscript(id: SessionID) -> Link? {
    get { links[id] }
    set {
      links[id] = newValue
      if newValue == nil { held[id] = nil }
    }
  }

  func sessions(of device: DeviceID) -> [SessionID] { links.filter { $0.value.device == device }.keys.sorted() }

  mutating func authenticate(_ id: SessionID, _ device: DeviceID) {
    links[id]?.device = device
    if let dialled = links[id]?.dialled { outcomes[dialled] = nil }
  }

  mutating func noteClock(_ id: SessionID?, _ milliseconds: Int64) {
    if let id { links[id]?.clockDifference = milliseconds }
  }

  mutating func countSent(_ id: SessionID, _ byteCount: Int) { links[id]?.sentByteCount += Int64(byteCount) }
  mutating func countReceived(_ id: SessionID, _ byteCount: Int) { links[id]?.receivedByteCount += Int64(byteCount) }

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

  mutating func removeAll() { (links, held) = ([:], [:]) }

  // MARK: What waits

  func isHolding(_ id: SessionID) -> Bool { held[id] != nil }

  /// False once more waits than a peer that reads would ever leave.
  mutating func hold(_ frame: [UInt8], for id: SessionID) -> Bool {
    held[id, default: Held()].frames.append(frame)
    held[id, default: Held()].byteCount += frame.count
    return held[id]?.byteCount ?? 0 <= LinkTable.heldByteLimit
  }

  mutating func takeHeld(_ id: SessionID) -> [[UInt8]] { held.removeValue(forKey: id)?.frames ?? [] }

  mutating func putBack(_ frames: ArraySlice<[UInt8]>, for id: SessionID) {
    held[id] = Held(frames: Array(frames), byteCount: frames.reduce(0) { $0 + $1.count })
  }
}
