extension PeerSession {
  /// Changes that the peer is known to lack, and that this node is known to lack, over the common scope.
  package func lag(_ ledger: Ledger) -> (behind: Int64, ahead: Int64) {
    var (behind, ahead) = (UInt64(0), UInt64(0))
    for (id, stream) in live?.streams ?? InPlaceTable() {
      let lag = lag(on: stream, ledger.partitions[id]?.log)
      // Rights are looked up last: nearly all streams are level.
      guard lag != (0, 0), isInScope(id, stream.name, ledger) else { continue }
      behind += lag.behind
      ahead += lag.ahead
    }
    return (Int64(clamping: behind), Int64(clamping: ahead))
  }

  private func lag(on stream: PeerStream, _ log: PartitionLog?) -> (behind: UInt64, ahead: UInt64) {
    var (behind, ahead) = (UInt64(0), UInt64(0))
    for (replica, position) in log?.clipped.entries ?? VersionVector().entries {
      behind += subtracting(position.sequence, stream.known.sequence(of: replica))
    }
    for (replica, position) in stream.known.entries {
      ahead += subtracting(position.sequence, log?.received.sequence(of: replica) ?? 0)
    }
    return (behind, ahead)
  }

  private func subtracting(_ a: UInt64, _ b: UInt64) -> UInt64 { a > b ? a - b : 0 }
}
