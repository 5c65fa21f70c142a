import Replication
import Wire

/// What would come to count, and what would fall, if statements were said: worked out on copies, by the same evaluation.
struct Foresight {
  private let state: EngineState

  init(_ state: EngineState) { self.state = state }

  /// Of every partition that is here, in byte order of the names.
  func falls(under authority: Authority) throws -> [PartitionFall] {
    try state.mesh.partitions.values.sorted { $0.name < $1.name }.map { try fall(of: $0, under: authority) }
  }

  private func fall(of partition: PartitionState, under authority: Authority) throws -> PartitionFall {
    var (fall, log) = (PartitionFall(name: partition.name), partition.log)
    var documents: Set<DocumentKey> = []
    for change in try adopted(authority, by: &log, partition.id).acceptance {
      fall.lostChanges += change.lost.count
      fall.gainedChanges += change.gained.count
      try collect(change, partition.id, &documents)
    }
    fall.documents = documents.count
    return fall
  }

  /// Answers what the log asks of the disk until it is done.
  private func adopted(
    _ authority: Authority, by log: inout PartitionLog, _ partition: PartitionID
  ) throws -> LogChange {
    while true {
      switch log.adopt(authority) {
      case .done(let change): return change
      case .ignored: return LogChange()
      case .needsHeaders(let requests):
        for request in requests {
          let runs = try LogReader(state).summaries(partition, request.replica, from: request.sequences.lowerBound)
          try log.unfold(request, runs: runs)
        }
      }
    }
  }

  /// The documents that changes write which come or go.
  private func collect(
    _ change: AcceptanceChange, _ partition: PartitionID, _ documents: inout Set<DocumentKey>
  ) throws {
    let last = max(change.from, change.to)
    guard last > change.shared else { return }
    // Branches that count neither before nor after it lie at these numbers as well.
    let moved = Set(change.lost + change.gained)
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: change.replica)
    for run in try state.store.runs(of: chain, after: change.shared, byteLimit: .max) where run.first <= last {
      let content = try RunReader(state.identity).content(run, in: partition, state.store)
      for (offset, written) in content.contents.enumerated() {
        guard moved.contains(content.run.hashes[offset]) else { continue }
        for document in written.documents { documents.insert(try document.key(in: written.payload)) }
      }
    }
  }
}
