extension PeerSession {
  /// Changes that the peer is known to lack, and that this node is known to lack, over the common scope.
  package func lag(_ ledger: Ledger) -> (behind: Int64, ahead: Int64) {
    var (behind, ahead) = (UInt64(0), UInt64(0))
    for (id, stream) in live?.streams ?? [:] where isInScope(id, stream.name, ledger) {
      let log = ledger.partitions[id]?.log
      for (replica, position) in log?.clipped.entries ?? [:] {
        behind += subtracting(position.sequence, stream.known.sequence(of: replica))
      }
      for (replica, position) in stream.known.entries {
        ahead += subtracting(position.sequence, log?.received.sequence(of: replica) ?? 0)
      }
    }
    return (Int64(clamping: behind), Int64(clamping: ahead))
  }

  private func subtracting(_ a: UInt64, _ b: UInt64) -> UInt64 { a > b ? a - b : 0 }
}
