/// Peers that were connected and are not any more, as they were known last: for people. Whoever fell silent first makes room.
package struct SilentPeers: Sendable {
  package struct Peer: Sendable {
    package let key: PublicKey
    package let device: DeviceID
    package let lastHeard: MonotonicTime
    /// Changes that this node lacked of what the peer had told.
    package let ahead: Int64
    /// Changes that the peer lacked, and how many there were here.
    private let lacked: Int64
    private let held: Int64

    init(_ session: PeerSession, _ ledger: Ledger) {
      (key, device, lastHeard) = (session.peer, session.device, session.pulse.lastHeard)
      (lacked, ahead) = session.lag(ledger)
      held = SilentPeers.changes(of: ledger)
    }

    /// What it lacks by now, as far as is known here: it may have met others since.
    ///
    /// - Parameter now: ``SilentPeers/changes(of:)``.
    package func behind(_ now: Int64) -> Int64 { lacked + max(0, now - held) }
  }

  package static let limit = 256
  private var peers: [DeviceID: Peer] = [:]

  mutating func note(_ peer: Peer) {
    peers[peer.device] = peer
    guard peers.count > SilentPeers.limit,
      let oldest = peers.values.min(by: { ($0.lastHeard, $0.device) < ($1.lastHeard, $1.device) })
    else { return }
    peers[oldest.device] = nil
  }

  /// Heard last first.
  package var all: [Peer] { peers.values.sorted { ($1.lastHeard, $0.device) < ($0.lastHeard, $1.device) } }

  /// Changes that are announced, of all partitions.
  package static func changes(of ledger: Ledger) -> Int64 {
    ledger.partitions.values.reduce(0) { sum, partition in
      partition.log.clipped.entries.values.reduce(sum) { $0 + Int64(clamping: $1.sequence) }
    }
  }
}
