/// Which of two connections between the same two devices stays (fault N4).
///
/// Each end decides alone, without a message, and both come to the same answer:
/// - the *dialler* of the new connection decides when its TLS handshake is done, before it sends anything on it;
/// - the *listener* decides when the dialler's authenticated Hello arrives on it.
///
/// A Hello is therefore also the dialler's word that it wants this connection: a node that holds a living connection to
/// the device drops its own new one first, so that its Hello is never sent. What is left is one of three cases:
/// 1. The existing connection is silent for longer than ``silenceLimitMilliseconds``: it is dead, the new one stays.
/// 2. Both were opened within ``raceWindowMilliseconds``: a race. Crossing dials: the one dialled by the lower device id
///    stays. Two dials of the same end (two addresses of one device): the one with the lower exporter value, which both
///    ends know.
/// 3. The existing one is older and was heard: a dialler keeps it, a listener takes the new one, since the other end
///    dials only whom it is not connected to (it was restarted, or woke up).
package enum KeepRule {
  /// Above the difference of opening times that one race can show at its two ends over a satellite link (two round
  /// trips of 1.5 s), with room for a stalled host.
  package static let raceWindowMilliseconds: UInt64 = 10_000
  /// The interval of the session's pings: a living connection is never silent for longer.
  package static let silenceLimitMilliseconds: UInt64 = 15_000

  package struct Link: Sendable, Equatable {
    package var dialledByThisEnd: Bool
    /// The TLS exporter value, equal at both ends.
    package var exporter: Digest
    /// Milliseconds of this node's clock that counts through suspension.
    package var openedAt: UInt64
    package var lastHeardAt: UInt64

    package init(dialledByThisEnd: Bool, exporter: Digest, openedAt: UInt64, lastHeardAt: UInt64) {
      (self.dialledByThisEnd, self.exporter) = (dialledByThisEnd, exporter)
      (self.openedAt, self.lastHeardAt) = (openedAt, lastHeardAt)
    }
  }

  package enum Choice: Sendable, Equatable { case keepExisting, keepNew }

  package static func choose(
    existing: Link, new: Link, thisDevice: DeviceID, peer: DeviceID, now: UInt64
  ) -> Choice {
    if elapsed(since: existing.lastHeardAt, now) > silenceLimitMilliseconds { return .keepNew }
    if elapsed(since: existing.openedAt, new.openedAt) > raceWindowMilliseconds {
      return new.dialledByThisEnd ? .keepExisting : .keepNew
    }
    guard existing.dialledByThisEnd != new.dialledByThisEnd else {
      return existing.exporter < new.exporter ? .keepExisting : .keepNew
    }
    let lowerIsThisDevice = thisDevice < peer
    return existing.dialledByThisEnd == lowerIsThisDevice ? .keepExisting : .keepNew
  }

  private static func elapsed(since earlier: UInt64, _ later: UInt64) -> UInt64 {
    later > earlier ? later - earlier : 0
  }
}
