/// Which of two connections between the same two devices stays (fault N4).
///
/// Each end decides alone, without a message, and both come to the same answer:
/// - the *dialler* of the new connection decides when its TLS handshake is done, before it sends anything on it;
/// - the *listener* decides when the dialler's authenticated Hello arrives on it.
///
/// A Hello is therefore also the dialler's word that it wants this connection, and until it is said the other end gives
/// nothing up for it. The cases, the first that applies:
/// 1. The existing connection is silent for longer than ``silenceLimitMilliseconds``: it is dead, the new one stays.
/// 2. This end has dialled the new one, and the existing one is live already: it stays, since what is under way on it would
///    have to be sent again. Over a full link the handshake of a crossing dial takes seconds.
/// 3. Both were opened within ``raceWindowMilliseconds``: a race. Crossing dials: the one dialled by the lower device id
///    stays. Two dials of the same end (two addresses of one device): the one with the lower exporter value, which both
///    ends know.
/// 4. The existing one is older and was heard: a dialler keeps it, a listener takes the new one, since the other end
///    dials only whom it is not connected to (it was restarted, or woke up).
package enum KeepRule {
  /// Above the difference of opening times that one race can show at its two ends over a satellite link (two round
  /// trips of 1.5 s), with room for a stalled host.
  package static let raceWindowMilliseconds: UInt64 = 10_000
  /// The interval of the session's pings: a living connection is never silent for longer.
  package static let silenceLimitMilliseconds: UInt64 = 15_000

  package struct Link: Sendable, Equatable {
    package var dialledByThisEnd: Bool
    /// The other end's Hello was there and was answered or is the answer.
    package var isLive: Bool
    /// The TLS exporter value, equal at both ends.
    package var exporter: Digest
    package var openedAt: MonotonicTime
    package var lastHeardAt: MonotonicTime

    package init(
      dialledByThisEnd: Bool, isLive: Bool, exporter: Digest, openedAt: MonotonicTime, lastHeardAt: MonotonicTime
    ) {
      (self.dialledByThisEnd, self.isLive, self.exporter) = (dialledByThisEnd, isLive, exporter)
      (self.openedAt, self.lastHeardAt) = (openedAt, lastHeardAt)
    }
  }

  package enum Choice: Sendable, Equatable { case keepExisting, keepNew }

  package static func choose(
    existing: Link, new: Link, thisDevice: DeviceID, peer: DeviceID, now: MonotonicTime
  ) -> Choice {
    if now.millisecondsSince(existing.lastHeardAt) > silenceLimitMilliseconds { return .keepNew }
    if new.dialledByThisEnd, existing.isLive { return .keepExisting }
    if new.openedAt.millisecondsSince(existing.openedAt) > raceWindowMilliseconds {
      return new.dialledByThisEnd ? .keepExisting : .keepNew
    }
    guard existing.dialledByThisEnd != new.dialledByThisEnd else {
      return existing.exporter < new.exporter ? .keepExisting : .keepNew
    }
    let lowerIsThisDevice = thisDevice < peer
    return existing.dialledByThisEnd == lowerIsThisDevice ? .keepExisting : .keepNew
  }
}
