/// Decides whom to dial and when. A value without a clock, randomness or sockets: events go in, dials come out.
///
/// Every address is only a hint (N5, N9): who answers there is known for certain after the TLS handshake alone. The policy remembers
/// which device an address led to, does not dial devices that are connected, nor itself, spaces attempts to a dead
/// address with jitter, and keeps a flood of made-up addresses (N6) away from those the operator or the fleet named.
package struct DialPolicy: Sendable {
  package enum Event: Sendable {
    /// All addresses from the configuration; replaces earlier ones.
    case configured([PeerAddress])
    /// Addresses at which a device was met in earlier runs, the best first.
    case remembered(DeviceID, [SocketAddress])
    /// Discovery saw an instance, again or for the first time. A tag that does not match lowers the priority (§8).
    case found(instance: Text, addresses: [SocketAddress], tagMatches: Bool)
    case lost(instance: Text)
    /// The dial ended without a session: nobody there, no TLS, or closed before Hello.
    case dialFailed(PeerAddress)
    /// The device behind the address is none to talk to: another fleet, or refused.
    case dialRefused(PeerAddress)
    /// Devices were let into the fleet: who refused at these addresses, or was refused there, may be one of them now.
    case admitted([PeerAddress])
    /// The TLS handshake with a dialled address showed this device. The attempt ends with what comes of it.
    case identified(PeerAddress, DeviceID)
    /// The device has a session now. `outgoing`: this node dialled it. `listening`: where it says that it can be dialled, at
    /// the host that it came from.
    case connected(DeviceID, outgoing: Bool, listening: PeerAddress? = nil)
    /// With how many devices the device says to be linked, this one among them.
    case counted(DeviceID, links: Int)
    /// The device's last session is gone.
    case disconnected(DeviceID)
    /// Interfaces or addresses of this host changed: old failures say little.
    case networkChanged
    /// Time passed; due dials are handed out by every event.
    case tick
  }

  package let thisDevice: DeviceID
  var candidates: [PeerAddress: Candidate] = [:]
  /// Devices with a session.
  var links: [DeviceID: Link] = [:]
  /// When a link makes room for another device; nil while nobody waits for room.
  var nextSwap: MonotonicTime?
  /// When the next of too many links is given up.
  var nextGivingUp: MonotonicTime?
  /// To be closed by the caller (``takeDrop()``).
  var drops: [Drop] = []
  /// When links were given up that were too much; those that are long ago are taken out.
  var givenUp: [DeviceID: MonotonicTime] = [:]
  var budget = TokenBucket(capacity: Limits.dialBurst, perMinute: Limits.dialsPerMinute)
  var strangerBudget = TokenBucket(capacity: Limits.strangerDialBurst, perMinute: Limits.strangerDialsPerMinute)

  /// Before this a tick would change nothing, unless something else happens first. Nil: that is not known.
  var quietUntil: MonotonicTime?

  package init(thisDevice: DeviceID) { self.thisDevice = thisDevice }

  /// Takes the event in and answers with the addresses to dial now. Each attempt ends with `dialFailed`, `dialRefused`, or
  /// `identified` and `connected`; one that does not counts as failed after a while.
  package mutating func handle(
    _ event: Event, now: MonotonicTime, using random: inout some RandomNumberGenerator
  ) -> [PeerAddress] {
    let isTick = if case .tick = event { true } else { false }
    // The caller ticks at every turn, and each look walks over all that is known.
    if case .counted(let device, let count) = event {
      guard let before = links[device]?.peerLinks, before != count else { return [] }
      links[device]?.peerLinks = count
      guard links.count > Limits.linksAtMost else { return [] }
    }
    if isTick, let quietUntil, now < quietUntil { return [] }
    quietUntil = nil
    switch event {
    case .configured(let addresses): configure(addresses, now, &random)
    case .remembered(let device, let addresses): remember(device, addresses, now, &random)
    case .found(let instance, let addresses, let matches):
      noteFound(instance, addresses, tagMatches: matches, now, &random)
    case .lost(let instance): noteLost(instance)
    case .dialFailed(let address): noteFailure(address, now, &random)
    case .dialRefused(let address): noteRefusal(address, now, &random)
    case .admitted(let addresses): forgive(addresses, now, &random)
    case .identified(let address, let device): identify(address, device, now)
    case .connected(let device, let outgoing, let listening):
      noteConnected(device, outgoing: outgoing, listening: listening, now)
    case .counted: break
    case .disconnected(let device): noteDisconnected(device, now, &random)
    case .networkChanged: hastenAll(now, &random)
    case .tick: break
    }
    let waits = (nextSwap, nextGivingUp)
    giveUpSurplus(now, &random)
    swapIfDue(now, &random)
    let hasExpired = expireAttempts(now, &random)
    let dials = takeDue(now)
    // What one look changes may make more due for the next.
    let isQuiet = dials.isEmpty && drops.isEmpty && (nextSwap, nextGivingUp) == waits && !hasExpired
    if isTick, isQuiet { quietUntil = earliestWake() ?? .never }
    return dials
  }
}

extension DialPolicy {
  package enum Limits {
    /// Links of other nodes' dialling come on top of these, so that the fleet hangs together however many it has.
    package static let outgoingLinks = 5
    /// Who knows no more devices than these is linked with all of them: about as many links as each has in a larger fleet.
    package static let linksOfAll = 10
    /// So many a node keeps that it dialled itself, however many dialled it: of links that others chose none is its own choice.
    package static let leastOutgoingLinks = 3
    /// With more than these it gives some up. Above ``linksOfAll``, so that who dials again for what he lost is not given
    /// up in turn.
    package static let linksAtMost = 11
    package static let crowdedIntervalMilliseconds: UInt64 = 5_000
    /// What others chose is not given up before: two who want what nobody between them carries meet so.
    package static let meetingMilliseconds: UInt64 = 30_000
    /// Who dials again within this time is not given up again.
    package static let insistenceMilliseconds: UInt64 = 120_000
    /// Where others wait for room, the oldest outgoing link is given up so often, so that no group stays an island and any
    /// two nodes meet in time. A contact costs about 3 KiB.
    package static let swapIntervalMilliseconds: UInt64 = 60_000
    /// So long a swap waits for a link that is being closed; the transport closes it within three seconds.
    package static let leavingMilliseconds: UInt64 = 1_000

    /// A handshake costs about a millisecond of a core; four at once fill a LAN without starving sessions.
    package static let concurrentDials = 4
    package static let dialBurst = 20
    package static let dialsPerMinute = 60
    /// Addresses whose tag does not match may be another fleet's, or made up: they get a small part of the budget.
    package static let concurrentStrangerDials = 1
    package static let strangerDialBurst = 4
    package static let strangerDialsPerMinute = 10
    /// Longer than the transport's own limits for connecting and handshake together.
    package static let attemptTimeoutMilliseconds: UInt64 = 30_000
    /// From the TLS handshake to a session: the transport closes what is not authenticated by then.
    package static let sessionTimeoutMilliseconds: UInt64 = 10_000

    package static let candidates = 2_048
    package static let configuredAddresses = 64
    package static let addressesPerInstance = 8
    /// design §8: the last four of each peer.
    package static let addressesPerRememberedDevice = 4

    package static let firstDelayMilliseconds: UInt64 = 1_000
    package static let longestDelayMilliseconds: UInt64 = 60_000
    /// The operator named these, so a host that comes up late is met soon.
    package static let longestConfiguredDelayMilliseconds: UInt64 = 15_000
    /// A link that flaps every two seconds (N13) still gets a contact this often.
    package static let longestFlappingDelayMilliseconds: UInt64 = 8_000
    package static let shortSessionMilliseconds: UInt64 = 5_000
    /// Another fleet's node stays another fleet's for a while.
    package static let refusedDelayMilliseconds: UInt64 = 60_000
    package static let longestRefusedDelayMilliseconds: UInt64 = 600_000
    /// An address of this very node; after a change of addresses it may be someone else's.
    package static let selfDelayMilliseconds: UInt64 = 3_600_000
    /// A fresh sighting shortens the wait once in this time, so repeated records cause no dial storm (N5).
    package static let hastenIntervalMilliseconds: UInt64 = 30_000
    package static let hastenedDelayMilliseconds: UInt64 = 1_000
  }

  /// A link that this node gives up.
  package struct Drop: Sendable, Equatable {
    package enum Reason: Sendable, Equatable {
      /// There are more than a node is to have.
      case surplus
      /// Another device waits for its place.
      case turn
    }
    package let device: DeviceID
    package let reason: Reason

    package init(_ device: DeviceID, _ reason: Reason) { (self.device, self.reason) = (device, reason) }
  }

  struct Link: Sendable {
    let since: MonotonicTime
    let isOutgoing: Bool
    /// Where it says that it can be dialled. Who is found there is linked already, and not somebody else who waits.
    var listening: PeerAddress?
    /// Those of the peer, this one among them; 0 where it has said nothing of them.
    var peerLinks = 0
    /// It was given up, and the peer dialled again: as one does whom the operator named, or who has nobody else to dial.
    var isInsistedOn = false
    /// It was given up, and is about to be closed.
    var isLeaving = false
  }

  /// What is known of one address.
  struct Candidate: Sendable {
    var isConfigured = false
    var isRemembered = false
    /// Nil unless discovery sees it now.
    var instance: Text?
    var tagMatches = false
    var device: DeviceID?
    var isSelf = false
    var isRefused = false
    /// In a row; a session that lasts ends them.
    var refusals = 0
    var failures = 0
    var nextAttempt: MonotonicTime
    /// Nil unless it is being dialled.
    var attemptEndsAt: MonotonicTime?
    var hastenedAt: MonotonicTime?

    init(nextAttempt: MonotonicTime) { self.nextAttempt = nextAttempt }

    var isStranger: Bool { !isConfigured && !isRemembered && device == nil && !tagMatches }
    var isWanted: Bool { isConfigured || isRemembered || instance != nil }

    /// Lower is dialled first.
    var rank: Int { isConfigured ? 0 : isStranger ? 2 : 1 }
  }

  /// A row for status pages: what is known of an address and when it is dialled next.
  package struct Entry: Sendable, Equatable {
    package enum State: Sendable, Equatable { case idle, dialling, connected, thisNode, refused, unreachable }
    package let address: PeerAddress
    package let instance: Text?
    package let device: DeviceID?
    package let state: State
    package let failures: Int
    package let nextAttempt: MonotonicTime
  }

  /// Names that discovery reports of devices with a session.
  package var linkedInstances: Set<Text> {
    Set(candidates.values.lazy.filter { $0.device.map { links[$0] != nil } ?? false }.compactMap(\.instance))
  }

  /// In order of addresses.
  package var entries: [Entry] {
    let connectedInstances = linkedInstances
    return candidates.sorted { $0.key < $1.key }.map { address, candidate in
      Entry(
        address: address, instance: candidate.instance, device: candidate.device,
        state: state(candidate, connectedInstances),
        failures: candidate.failures, nextAttempt: candidate.nextAttempt)
    }
  }

  private func state(_ candidate: Candidate, _ connectedInstances: Set<Text>) -> Entry.State {
    if candidate.isSelf { return .thisNode }
    if let device = candidate.device, links[device] != nil { return .connected }
    if candidate.attemptEndsAt != nil { return .dialling }
    if candidate.isRefused { return .refused }
    // Where another address of the instance leads there, one that does not is nothing to worry about.
    let isReached = candidate.instance.map(connectedInstances.contains) ?? false
    return candidate.failures > 0 && !isReached ? .unreachable : .idle
  }
}

/// Allows `perMinute` events a minute on average, and `capacity` at once.
struct TokenBucket: Sendable {
  private static let millisecondsPerMinute: UInt64 = 60_000
  private let capacity: UInt64
  private let perMinute: UInt64
  /// In parts of 1/60,000 token, so that integers suffice.
  private var level: UInt64
  private var filledAt: MonotonicTime?

  init(capacity: Int, perMinute: Int) {
    self.capacity = UInt64(capacity) * TokenBucket.millisecondsPerMinute
    self.perMinute = UInt64(perMinute)
    self.level = self.capacity
  }

  mutating func hasToken(_ now: MonotonicTime) -> Bool {
    let elapsed = min(now.millisecondsSince(filledAt ?? now), capacity)
    level = min(capacity, level + elapsed * perMinute)
    filledAt = now
    return level >= TokenBucket.millisecondsPerMinute
  }

  /// Only after ``hasToken(_:)`` said yes.
  mutating func take() { level -= min(level, TokenBucket.millisecondsPerMinute) }

  /// When a token is there, seen from the last ``hasToken(_:)``.
  var nextTokenAt: MonotonicTime {
    let missing = TokenBucket.millisecondsPerMinute - min(level, TokenBucket.millisecondsPerMinute)
    return (filledAt ?? MonotonicTime(milliseconds: 0)).advanced(byMilliseconds: (missing + perMinute - 1) / perMinute)
  }
}
