/// One connection as the core sees it.
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

  package let id: SessionID
  package let isDialer: Bool
  package let peer: PublicKey
  package let device: DeviceID
  let exporter: Digest
  let openedAt: MonotonicTime
  /// What the link lets pass, and what of this node's wishes is left with it.
  package internal(set) var passage = Passage.everything
  var interest = Interest()
  package internal(set) var phase: Phase = .awaitingHello
  package internal(set) var hello: Hello?
  /// Digest of the statements as this side's hello named it: both sides decide by what both said.
  var statedAuthority: Digest?
  /// By its credentials it is a member, but not yet by the statements that are here: nothing but statements is said to it.
  var isToBeShown = false
  /// It was told this side's credentials: once is all that a session needs.
  var hasToldCredentials = false
  var exchange = StatementExchange()
  /// What a peer that is a member no longer was not told.
  var withheldStatements: Set<Digest> = []
  /// Statements learnt since this side's hello, before the peer's was there.
  var statementsSinceHello: [[UInt8]] = []
  /// What is still to be said of statements.
  var outbox = StatementOutbox()
  /// When statements last went either way: as long as they do, a handshake takes its time.
  var lastOfStatements: MonotonicTime
  /// The peer's interest changed before it was known here.
  var mustAskInterest = false
  /// Digest of this side's interest as its hello named it.
  var statedInterest: Digest?
  var peerInterest: Interest?

  /// It was told to the peer: once is all that a session needs.
  var hasToldInterest = false

  /// Who is spent here, as the peer was told; there, as it told; and both.
  var toldSpent = SpentDevices()
  var peerSpent = SpentDevices()
  var spared = SpentDevices()

  var comparison = Comparison()
  var level = LevelMarks()
  var rooms = RoomExchange()
  /// What came so far of a vector that travels in parts.
  var partial: PartialVector?
  var streams: [PartitionID: PeerStream] = [:]
  /// When runs that came from elsewhere are passed on. Beside the streams, of which there may be thousands: the shell asks
  /// for the earliest at every turn.
  var relaysDue: [PartitionID: MonotonicTime] = [:]
  var nextStream: UInt64 = 1
  /// Answers of the log that are still to come to what was asked for streams that are not there any more, or were asked for
  /// anew since: what they hold follows on another vector.
  var voidLoads: [PartitionID: Int] = [:]
  /// Entries of chains that are not here in what the peer announced; counted anew before it matters.
  var awaitedChains = 0
  var awaitedCountedAt: MonotonicTime
  /// What evidence that waits takes in memory.
  var postponedByteCount = 0
  /// Where among the forked chains of a partition the next searches begin.
  var nextSearch = 0

  var isWritable = true
  package internal(set) var lastHeard: MonotonicTime
  var lastPing: MonotonicTime
  package internal(set) var roundTripMilliseconds: UInt64?
  var nextComparison: MonotonicTime
  /// When a question was last asked or answered.
  var lastCompared: MonotonicTime
  /// Questions of the peer's that were answered long before a comparison was due; counted anew when one is.
  var earlyComparisons = 0
  static let earlyComparisonLimit = 4
  /// Probes of chains that one side may not carry any more; each costs reading a chain.
  var answeredHandOvers = 0
  /// The peer is live for certain: what is held of own chains was offered, and what comes to be held is.
  var mayOfferHeldWork = false
  /// Chains that the peer may not carry any more, and began to hand over before their right was known here, or their
  /// partitions wanted.
  var handedOverEarly: Set<HandedOverChain> = []
  /// What is being handed over of a payload that travels apart.
  var arrivingHandedOver = ArrivingPayloads()
  /// Partitions that are not here yet and of which the peer may name something, beyond as many as are here.
  static let awaitedPartitionLimit = 4_096
  /// The peer named vectors before its interest was known here.
  var mustCompareAgain = false

  init(id: SessionID, isDialer: Bool, peer: PublicKey, device: DeviceID, exporter: Digest, now: MonotonicTime) {
    (self.id, self.isDialer, self.peer, self.device) = (id, isDialer, peer, device)
    (self.exporter, self.openedAt) = (exporter, now)
    (lastHeard, lastPing, nextComparison, lastCompared, lastOfStatements) = (now, now, now, now, now)
    awaitedCountedAt = now
  }

  var link: KeepRule.Link {
    KeepRule.Link(
      dialledByThisEnd: isDialer, exporter: exporter, openedAt: openedAt.milliseconds,
      lastHeardAt: lastHeard.milliseconds)
  }

  /// Another process of the same device is a clone, or a restart whose old connection will fall silent: no duplicate.
  func isSameProcess(as other: PeerSession) -> Bool {
    guard let mine = hello?.instance, let others = other.hello?.instance else { return true }
    return mine == others
  }

  /// Nobody wants it any more here.
  mutating func forget(_ partition: PartitionID) {
    streams[partition] = nil
    relaysDue[partition] = nil
    comparison.changed[partition] = nil
  }
}
