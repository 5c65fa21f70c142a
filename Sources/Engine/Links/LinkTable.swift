import Replication

/// The connections with what is known of each beside what is said on it, and the frames that the transport had no room
/// for.
package struct LinkTable {
  package struct Link {
    package let remote: SocketAddress
    /// The address that was dialled; nil for an accepted connection.
    package let dialled: PeerAddress?
    /// What its link let pass when it began.
    package let passage: Passage
    package fileprivate(set) var device: DeviceID?
    /// This node ended the session, since its link lets something else pass than when it began.
    fileprivate(set) var hasMoved = false
    package fileprivate(set) var unread = UnreadAnswers()
    package fileprivate(set) var clockDifference: Int64?
    /// Bytes of messages with their lengths, before TLS seals them.
    package fileprivate(set) var sentByteCount: Int64 = 0
    package fileprivate(set) var receivedByteCount: Int64 = 0

    init(remote: SocketAddress, dialled: PeerAddress?, _ passage: Passage) {
      (self.remote, self.dialled, self.passage) = (remote, dialled, passage)
    }
  }

  package private(set) var links: [SessionID: Link] = [:]
  /// Messages that the transport had no room for. Not within ``Link``: a link is copied wherever it is looked at, and
  /// whoever held the copy would make the next message copy all that wait.
  package private(set) var held: [SessionID: HeldFrames] = [:]
  /// Addresses being dialled, by the tag given to the transport.
  private var dials: [UInt64: PeerAddress] = [:]
  private var nextTag: UInt64 = 1
  /// The last outcome per address, for people. Bounded by ``outcomeLimit``.
  package private(set) var outcomes: [PeerAddress: DialOutcome] = [:]

  static let outcomeLimit = 256

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

  mutating func note(_ outcome: DialOutcome, at address: PeerAddress) {
    if outcomes[address] == nil, outcomes.count >= LinkTable.outcomeLimit, let first = outcomes.keys.min() {
      outcomes[first] = nil
    }
    outcomes[address] = outcome
  }

  mutating func noteMoved(_ id: SessionID) { links[id]?.hasMoved = true }

  /// A connection that had opened has ended. What the peer said of it before says more than how it ended.
  mutating func note(ended link: Link, _ reason: String, at address: PeerAddress) {
    switch outcomes[address] {
    case .otherFleet, .notAMember: return
    case .failed, .ended, .linkClosed, .linkMoved, nil: break
    }
    note(link.hasMoved ? .linkMoved : .ended(reason), at: address)
  }

  mutating func removeAll() { (links, held) = ([:], [:]) }

  // MARK: Waiting for the transport

  /// True where frames are held for the session: whatever is sent now must wait behind them.
  func mustHold(for id: SessionID) -> Bool { held[id] != nil }

  mutating func hold(_ frame: [UInt8], for id: SessionID) -> HoldOutcome {
    held[id, default: HeldFrames()].hold(frame)
  }

  func heldByteCount(of id: SessionID) -> Int { held[id]?.byteCount ?? 0 }

  /// Lets go of what is held for the session: nothing more is sent on it.
  mutating func cutOff(_ id: SessionID) { held[id, default: HeldFrames()].cutOff() }

  /// Hands over what waits, in order, until `send` has no room. True when nothing waits any more.
  mutating func releaseHeld(for id: SessionID, _ send: ([UInt8]) -> LinkSending) -> Bool {
    while let frame = held[id]?.next {
      if case .full = send(frame) { return false }
      held[id]?.removeNext()
    }
    if held[id]?.isCutOff == false { held[id] = nil }
    return held[id] == nil
  }

  // MARK: Peers that do not read

  mutating func delayPong(_ nonce: UInt64, to id: SessionID) { links[id]?.unread.delayAnswer(to: nonce) }

  /// True where reading from the peer is to pause.
  mutating func addAnswers(_ count: Int, to id: SessionID) -> Bool { links[id]?.unread.add(count) ?? false }

  /// Sessions that are owed something or have used up some of their answers.
  var owed: [SessionID] { links.filter { $0.value.unread.ping != nil || $0.value.unread.count > 0 }.keys.sorted() }

  mutating func renewAnswers(of id: SessionID) -> Bool { links[id]?.unread.renew() ?? false }
  mutating func takePing(of id: SessionID) -> UInt64? { links[id]?.unread.takePing() }
}

/// What came of the last attempt to reach an address.
package enum DialOutcome: Sendable, Equatable {
  /// In the transport's words.
  case failed(String)
  /// Somebody took the connection, which has ended since; why, in the transport's words.
  case ended(String)
  /// Nothing may pass on the link that leads there.
  case linkClosed
  /// The session was ended here, since its link lets something else pass than when it began.
  case linkMoved
  case otherFleet
  /// Who answers there does not know this device.
  case notAMember
}

extension DialOutcome {
  /// For people; empty where the state of the address says it already.
  package var words: String {
    switch self {
    case .failed(let reason): reason
    case .ended(let reason): "the connection ended (\(reason))"
    case .linkClosed: "the link is of class none"
    case .linkMoved: "its link lets something else pass than before"
    case .notAMember: "it does not know this device as a member"
    case .otherFleet: ""
    }
  }
}
