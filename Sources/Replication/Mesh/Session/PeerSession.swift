/// One connection as the core sees it. What is valid in one phase alone lies in its ``state``, or in ``live``.
package struct PeerSession: Sendable {
  /// Legal order: `awaitingHello` → `exchangingStatements` → `awaitingInterest` → `live`, with `awaitingCredentials` behind
  /// the first where the peer is not known here; `joining` stands alone; any phase may end by closing.
  package enum Phase: Sendable, Equatable {
    case awaitingHello
    case awaitingCredentials
    case joining
    case exchangingStatements
    case awaitingInterest
    case live
  }

  enum State: Sendable {
    case handshake(Handshake)
    case live
  }

  package let id: SessionID
  package let isDialer: Bool
  package let peer: PublicKey
  package let device: DeviceID
  let exporter: Digest
  let openedAt: MonotonicTime
  /// What the link lets pass, and what of this node's wishes is left with it.
  package internal(set) var passage = Passage.everything
  package internal(set) var hello: Hello?
  /// Bits of the hellos that both ends have.
  var features: UInt64 = 0
  var state = State.handshake(.greeting(Greeting()))
  /// Empty while the handshake lasts. Of what lies within a case no part could be read in place.
  private var liveInPlace = InPlace<LiveSession>(nil)
  var wishes = Wishes()
  /// What is still to be said of statements.
  var outbox = StatementOutbox()
  /// When statements last went either way: as long as they do, a handshake takes its time.
  var lastOfStatements: MonotonicTime
  var rooms = RoomExchange()
  var spared = SparedDevices()
  /// Nil where one of the two does not tell whom it is linked with.
  var sparing: CopySparing?
  package internal(set) var pulse: Pulse
  var isWritable = true
  /// What is said at once, by how fast the link takes it away.
  var portionByteLimit = Int.max

  init(id: SessionID, isDialer: Bool, peer: PublicKey, device: DeviceID, exporter: Digest, now: MonotonicTime) {
    (self.id, self.isDialer, self.peer, self.device) = (id, isDialer, peer, device)
    (self.exporter, self.openedAt) = (exporter, now)
    (lastOfStatements, pulse) = (now, Pulse(now, asksNext: !isDialer))
  }

  package var phase: Phase {
    switch state {
    case .handshake(.greeting): .awaitingHello
    case .handshake(.unknown): .awaitingCredentials
    case .handshake(.joining): .joining
    case .handshake(.statements): .exchangingStatements
    case .handshake(.interest): .awaitingInterest
    case .live: .live
    }
  }

  /// The peer's statements were compared with ours, or are being so: new ones have to follow.
  var hasStatements: Bool {
    switch phase {
    case .awaitingHello, .awaitingCredentials, .joining: false
    case .exchangingStatements, .awaitingInterest, .live: true
    }
  }

  var interest: Interest { wishes.own }
  package var peerInterest: Interest? { wishes.peer }

  /// Nil while the handshake lasts.
  var live: LiveSession? {
    _read { yield liveInPlace.value }
    _modify { yield &liveInPlace.value }
  }

  /// The handshake is over.
  mutating func goLive(_ live: LiveSession) { (state, liveInPlace) = (.live, InPlace(live)) }

  /// A pull and the contexts behind it may say how they differ from what was told.
  var tellsDifferences: Bool { features & KnownFormats.Feature.differences != 0 }

  /// The two ends of a session both know whom the other is linked with.
  func isLinked(with device: DeviceMark) -> Bool { sparing?.neighbours.contains(device) == true }

  /// A handshake has its time from the last statement on: there may be many, and the way may be thin.
  func isOverdue(_ step: Step) -> Bool {
    let patience =
      outbox.isEmpty ? step.configuration.handshakeMilliseconds : step.configuration.deadMilliseconds
    return step.now.millisecondsSince(lastOfStatements) > patience
  }

  var link: KeepRule.Link {
    KeepRule.Link(
      dialledByThisEnd: isDialer, isLive: phase == .live, exporter: exporter, openedAt: openedAt,
      lastHeardAt: pulse.lastHeard)
  }

  /// How much speaks for somebody at the other end, ascending.
  enum Presence: Int, Comparable {
    /// It said hello and fell silent, as a connection that its other end has lost.
    case fallenSilent
    /// It has not said hello yet, or asks to join.
    case unheard
    case handshaking
    case live

    static func < (a: Presence, b: Presence) -> Bool { a.rawValue < b.rawValue }
  }

  /// A connection at rest is asked for a word after 15 s, and has answered by then over a satellite link, too.
  static let silenceMilliseconds = KeepRule.silenceLimitMilliseconds + 5_000

  func presence(_ now: MonotonicTime) -> Presence {
    guard hello != nil else { return .unheard }
    let silence = now.millisecondsSince(max(pulse.lastHeard, lastOfStatements))
    if silence > PeerSession.silenceMilliseconds { return .fallenSilent }
    return phase == .live ? .live : .handshaking
  }

  /// Both were dialled by the peer, which has asked for the other one alone: its hello on this one decides, if it ever comes.
  func isUndecided(against other: PeerSession) -> Bool {
    !isDialer && !other.isDialer && hello == nil && other.hello != nil
  }

  /// Another process of the same device is a clone, or a restart whose old connection will fall silent: no duplicate.
  func isSameProcess(as other: PeerSession) -> Bool {
    guard let mine = hello?.instance, let others = other.hello?.instance else { return true }
    return mine == others
  }
}

/// What each side of a session wants.
struct Wishes: Sendable {
  /// This node's, as far as the link lets it pass.
  var own = Interest()
  private(set) var peer: Interest?
  /// The peer's changed before it was known here.
  private(set) var mustAsk = false
  /// Own ones may be asked for.
  var telling = Once()
  /// Digest of own ones as this side's hello named it.
  private var stated: Digest?

  mutating func state(_ digest: Digest) { stated = digest }

  /// What came to be wanted between this side's hello and the peer's was told to nobody.
  func hasChangedSinceHello(_ hash: HashFunction) -> Bool { stated.map { $0 != own.digest(hash) } ?? false }

  mutating func hear(_ interest: Interest) { peer = interest }

  /// What was told before is out of date.
  mutating func doubt() { (peer, mustAsk) = (nil, true) }
}

/// Signs of life of the peer.
package struct Pulse: Sendable {
  package private(set) var lastHeard: MonotonicTime
  private var lastPing: MonotonicTime
  /// It is this side's turn to ask after silence: each in turn, who was asked last next.
  private(set) var asksNext: Bool
  package private(set) var roundTripMilliseconds: UInt64?

  init(_ now: MonotonicTime, asksNext: Bool) { (lastHeard, lastPing, self.asksNext) = (now, now, asksNext) }

  mutating func hear(_ now: MonotonicTime) { lastHeard = now }
  mutating func hearQuestion() { asksNext = true }
  mutating func noteQuestion() { asksNext = false }
  mutating func hearPong(_ now: MonotonicTime) { roundTripMilliseconds = now.millisecondsSince(lastPing) }

  /// After so much silence the peer is asked for a word; answers whether now.
  mutating func ping(after milliseconds: UInt64, _ now: MonotonicTime) -> Bool {
    guard now.millisecondsSince(lastHeard) >= milliseconds, now.millisecondsSince(lastPing) >= milliseconds else {
      return false
    }
    (lastPing, asksNext) = (now, false)
    return true
  }
}

/// Devices of which neither of two nodes takes more: their work is compared by neither.
struct SparedDevices: Sendable {
  /// Who is spent here, as the peer was told; there, as it told; and both.
  private(set) var told = SpentDevices()
  private(set) var peer = SpentDevices()
  private(set) var both = SpentDevices()
  /// Spent there once, and no more; at most as many as one message frees. The peer may name whom nobody knows.
  private(set) var freed: Set<PublicKey> = []
  /// Spent here, but work of others stands on branches of theirs: until that is here the peer is not told so.
  var asked: Set<PublicKey> = []

  func told(of spent: SpentDevices) -> SpentDevices {
    asked.isEmpty ? spent : SpentDevices(places: spent.places, branches: spent.branches.subtracting(asked))
  }

  /// Answers whether that moves what is compared.
  mutating func tell(_ spent: SpentDevices) -> Bool {
    told = spent
    return settle()
  }

  mutating func hear(_ spent: SpentDevices) -> Bool {
    let news = peer.branches.subtracting(spent.branches)
    freed = freed.union(news).subtracting(spent.branches)
    if freed.count > SpentDevices.limit { freed = news }
    peer = spent
    return settle()
  }

  private mutating func settle() -> Bool {
    let shared = told.shared(with: peer)
    defer { both = shared }
    return shared != both
  }
}
