import Replication

/// Which of the ledger's statements a relay knows, so that its word on marks and documents may stand against another relay's.
///
/// That is more than those that it holds. Of a device that says more than it may, statements that others hold, or held once, do
/// not come into this relay's set; and those of a room move that room alone.
struct StatementKnowledge: Equatable, Sendable {
  /// Held here, and in the ledger once the batch is in.
  private let held: Set<Digest>
  /// In the ledger, and not here.
  private(set) var elsewhere: [StatementPlace]

  /// - Parameters:
  ///   - held: all that are here. One that the ledger refuses says nothing of what this relay knows of it.
  ///   - there: those that the ledger has, as far as this relay knows.
  ///   - brought: those of the batch.
  ///   - elsewhere: those of the ledger that were not here when it was read.
  init(held: Set<Digest>, there: Set<Digest>, brought: [Digest], elsewhere: [StatementPlace]) {
    self.held = held.intersection(there.union(elsewhere.lazy.map(\.id))).union(brought)
    self.elsewhere = elsewhere.filter { !held.contains($0.id) }
  }

  /// Says in the batch what this relay knows. Of a room of which it lacks something it says of no chain how far it knows that.
  ///
  /// - Parameter leftOut: those of ``elsewhere`` that cannot come into this relay's set.
  func tell(in batch: inout LedgerBatch, leftOut: Set<Digest>, fleet: FleetID, _ hash: HashFunction) {
    let ofRooms = elsewhere.filter { !$0.isOfFleet }
    let rooms = Set(ofRooms.compactMap { PartitionName(roomOf: $0.scope)?.id(fleet: fleet, hash: hash) })
    batch.heads.removeAll { rooms.contains($0.chain.partition) }
    batch.knownStatements = StatementSum.of(held.union(leftOut).union(ofRooms.lazy.map(\.id)), hash)
  }
}
