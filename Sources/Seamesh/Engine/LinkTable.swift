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
    var unread = UnreadAnswers()
    var clockDifference: Int64?
    var listenPort: UInt16 = 0
    /// Bytes of messages with their lengths, before TLS seals them.
    var sentByteCount: Int64 = 0
    var receivedByteCount: Int64 = 0
  }

  private(set) var links: [SessionID: Link] = [:]
  /// Messages that the transport had no room for. Not within ``Link``: a link is copied wherever it is looked at, and
  /// whoever held the copy would make the next message copy all that wait.
  private(set) var held: [SessionID: HeldFrames] = [:]
  private var answersRenewedAt = MonotonicTime(milliseconds: 0)
  /// Addresses being dialled, by the tag given to the transport.
  private var dials: [UInt64: PeerAddress] = [:]
  private var nextTag: UInt64 = 1
  /// The last outcome per address, for people. Bounded by ``outcomeLimit``.
  private(set) var outcomes: [PeerAddress: String] = [:]

  static let outcomeLimit = 256

  subscript(id: SessionID) -> Link? {
    get { links[id] }
    set {
      links[id] = newValue
      if newValue == nil { held[id] = nil }
    }
  }

  // MARK: Waiting for the transport

  /// True once in every ``Mesh/tickMilliseconds``: ticks come sooner while relays are due.
  mutating func mustRenewAnswers(_ now: MonotonicTime) -> Bool {
    guard now.millisecondsSince(answersRenewedAt) >= Mesh.tickMilliseconds else { return false }
    answersRenewedAt = now
    return true
  }

  /// What leaves later must wait behind what is held, too.
  func mustHold(for id: SessionID) -> Bool { held[id] != nil }

  mutating func hold(_ frame: [UInt8], for id: SessionID) -> HoldOutcome {
    held[id, default: HeldFrames()].hold(frame)
  }

  /// Hands over what waits, in order, until `send` has no room. True when nothing waits any more.
  mutating func releaseHeld(for id: SessionID, _ send: ([UInt8]) -> SendResult) -> Bool {
    while let frame = held[id]?.next {
      if send(frame) == .full { return false }
      held[id]?.removeNext()
    }
    if held[id]?.isCutOff == false { held[id] = nil }
    return held[id] == nil
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

  mutating func removeAll() {
    links.removeAll()
    held.removeAll()
  }
}
