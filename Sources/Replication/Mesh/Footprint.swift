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

  init(_ table: SessionTable, _ ledger: Ledger, _ interests: InterestCache) {
    sessions = table.count
    awaitedStreams = table.values.reduce(0) { $0 + ($1.live?.streams.keys.count { ledger.partitions[$0] == nil } ?? 0) }
    streams = table.values.reduce(0) { $0 + ($1.live?.streams.count ?? 0) } - awaitedStreams
    statementBytes = ledger.statements.values.reduce(0) { $0 + $1.count }
    interestItems = interests.itemCount
    for session in table.values {
      announcedChains += (session.live?.streams ?? InPlaceTable()).values.reduce(0) {
        $0 + $1.known.count + $1.outgoing.sent.count
      }
      interestItems += session.peerInterest?.itemCount ?? 0
      postponedBytes += session.live?.postponedByteCount ?? 0
      statementsToSay += session.outbox.count
    }
    partitions = ledger.partitions.count
    for partition in ledger.partitions.values {
      parkedBatches += partition.waiting.parkedCount
      awaitedHeaders += partition.waiting.awaitedHeaders
      heldChanges += partition.log.nodeCount
      chains += partition.log.received.count
    }
  }
}
