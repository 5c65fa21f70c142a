extension Mesh {
  /// What grows with peers and partitions, for those who watch bounds.
  package struct Footprint: Sendable, Equatable {
    package var sessions = 0
    package var streams = 0
    /// Of partitions that are known by name alone.
    package var awaitedStreams = 0
    package var parkedBatches = 0
    package var awaitedHeaders = 0
    package var statementBytes = 0
    /// Statements that wait to be said; their bytes are shared with those that are held.
    package var statementsToSay = 0
    /// Entries of what peers have announced, over all streams.
    package var announcedChains = 0
    /// Partitions and prefixes that peers want, by session and remembered.
    package var interestItems = 0
    package var postponedBytes = 0
    /// Changes that memory holds one by one: of forked and held chains.
    package var heldChanges = 0
    package var partitions = 0
    package var chains = 0
  }

  package var footprint: Footprint {
    let streams = sessions.values.reduce(0) { $0 + ($1.live?.streams.count ?? 0) }
    let awaited = sessions.values.reduce(0) { $0 + ($1.live?.streams.keys.count { ledger.partitions[$0] == nil } ?? 0) }
    var footprint = Footprint(
      sessions: sessions.count, streams: streams - awaited, awaitedStreams: awaited,
      parkedBatches: ledger.partitions.values.reduce(0) { $0 + $1.waiting.parkedCount },
      awaitedHeaders: ledger.partitions.values.reduce(0) { $0 + $1.waiting.awaitedHeaders })
    footprint.statementBytes = ledger.statements.values.reduce(0) { $0 + $1.count }
    footprint.interestItems = interestCache.itemCount
    for session in sessions.values {
      footprint.announcedChains += (session.live?.streams ?? [:]).values.reduce(0) {
        $0 + $1.known.count + $1.outgoing.sent.count
      }
      footprint.interestItems += session.peerInterest?.itemCount ?? 0
      footprint.postponedBytes += session.live?.postponedByteCount ?? 0
      footprint.statementsToSay += session.outbox.count
    }
    footprint.partitions = ledger.partitions.count
    for partition in ledger.partitions.values {
      footprint.heldChanges += partition.log.nodeCount
      footprint.chains += partition.log.received.count
    }
    return footprint
  }
}
