import Replication

/// Peers that were connected and are not any more, as they were known last. Whoever fell silent first makes room.
package struct SilentPeers: Sendable {
  package struct Peer: Sendable {
    package let key: PublicKey
    package let device: DeviceID
    package let address: String
    package let lastHeard: MonotonicTime
    /// Changes that this node lacked of what the peer had told.
    package let ahead: Int64
    /// Changes that the peer lacked, and how many the log had then.
    private let lacked: Int64
    private let logChanges: Int64

    init(_ session: PeerSession, at address: String, _ ledger: Ledger, logChanges: Int64) {
      (key, device, lastHeard) = (session.peer, session.device, session.pulse.lastHeard)
      (self.address, self.logChanges) = (address, logChanges)
      (lacked, ahead) = session.lag(ledger)
    }

    /// What it lacks by now, as far as is known here: it may have met others since.
    package func behind(logChanges now: Int64) -> Int64 { lacked + max(0, now - logChanges) }
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
}
