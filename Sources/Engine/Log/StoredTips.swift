import Replication
import Wire

/// Tips of changes that memory has no hash of, read from the log; each once.
package final class StoredTips {
  private let state: EngineState
  private let partition: PartitionID
  private let reader: RunReader
  private var known: [Dot: TipHash?] = [:]

  /// Beyond so many nothing more is read: what is not known then is taken for another history.
  package static let limit = 4_096

  package init(_ engine: NodeEngine, _ partition: PartitionID) {
    (state, self.partition) = (engine.state, partition)
    reader = RunReader(engine.state.identity)
  }

  package func tip(_ replica: ReplicaID, _ sequence: UInt64) -> TipHash? {
    let dot = Dot(replica: replica, sequence: sequence)
    if let found = known[dot] { return found }
    guard known.count < StoredTips.limit, sequence > 0 else { return nil }
    let found = read(replica, sequence)
    known[dot] = .some(found)
    return found
  }

  private func read(_ replica: ReplicaID, _ sequence: UInt64) -> TipHash? {
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: replica)
    let runs = (try? state.store.runs(of: chain, after: sequence - 1, byteLimit: 1)) ?? []
    for run in runs where run.first <= sequence && sequence <= run.last {
      guard let decoded = try? reader.decode(run, in: partition), sequence - run.first < decoded.hashes.count else {
        continue
      }
      return decoded.hashes[Int(sequence - run.first)].tip
    }
    return nil
  }
}
