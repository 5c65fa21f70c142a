import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// Damage done to what a node has stored.
extension BenchNode {
  /// Its bytes in a payload, so that one of them can be flipped and the run still decodes.
  static let number: Int64 = 70_000
  private static let numberBytes = "00011170"

  func chain(_ partition: PartitionName, _ replica: ReplicaID) -> ChainIdentity {
    ChainIdentity(fleet: state.identity.fleet, partition: id(of: partition), replica: replica)
  }

  func rows(_ partition: PartitionName, _ replica: ReplicaID) throws -> [LogRun] {
    try store.store.runs(of: chain(partition, replica), after: 0, byteLimit: .max)
  }

  /// Another number in the text of stored runs: they decode, and their hashes do not fit.
  func flip(_ partition: PartitionName, _ replica: ReplicaID, where isMeant: (LogRun) -> Bool) throws {
    for run in try rows(partition, replica) where isMeant(run) {
      let hex = hex(run)
      let spoiled = hex.replacing(BenchNode.numberBytes, with: "00011171", maxReplacements: 1)
      #expect(spoiled != hex)
      try overwrite(run, with: spoiled)
    }
  }

  /// Stored runs are cut short to so many bytes, in rows without a sum, as early stores have them.
  func cutShort(
    _ partition: PartitionName, _ replica: ReplicaID, to count: Int = 3, where isMeant: (LogRun) -> Bool
  ) throws {
    for run in try rows(partition, replica) where isMeant(run) {
      try store.store.database.execute(
        "UPDATE runs SET sum=NULL, body=substr(body,1,\(count)) WHERE arrival=\(run.arrival)")
    }
  }

  /// The disk gives a run again as it was.
  func overwrite(_ run: LogRun) throws { try overwrite(run, with: hex(run)) }

  private func hex(_ run: LogRun) -> String {
    run.body.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  private func overwrite(_ run: LogRun, with body: String) throws {
    try store.store.database.execute("UPDATE runs SET body=x'\(body)' WHERE arrival=\(run.arrival)")
  }
}

extension EngineBench {
  func catchUp(_ seconds: Int = 40) {
    for _ in 0..<seconds * 2 { advance(500) }
  }

  /// How far chains count at the most, once it is said, by their partitions; as node 0 has them.
  func ends(_ last: [PartitionName: [ReplicaID: UInt64]]) throws -> [Statement.PartitionEnds] {
    let node = nodes[0]
    return try last.sorted { $0.key.text < $1.key.text }.map { place, chains in
      let ends = try chains.sorted { $0.key < $1.key }.map { replica, sequence in
        let runs = try LogReader(node.state).summaries(node.id(of: place), replica, from: 1)
        let run = try #require(runs.first { $0.first <= sequence && $0.last >= sequence })
        let position = ChainPosition(sequence: sequence, tip: run.hashes[Int(sequence - run.first)].tip)
        return Statement.ChainEnd(replica: replica, position: position)
      }
      return Statement.PartitionEnds(partition: place.text, chains: ends)
    }
  }

  func say(_ statement: Statement, to slot: Int) throws { cut(meet(try messenger(statement), slot)) }
}
