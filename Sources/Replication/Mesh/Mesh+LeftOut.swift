// Runs that nothing here allows are not the connection's fault: their author, or who passed them on, may know what is not
// known here (rule C7). They are not stored, and their chain is left out of the stream until statements come.
extension Mesh {
  mutating func leaveOut(_ replica: ReplicaID, _ id: SessionID, _ partition: PartitionID) {
    sessions[id]?.streams[partition]?.incoming.leftOut.insert(replica)
  }

  func leftOut(_ id: SessionID, _ partition: PartitionID) -> LeftOutChains? {
    sessions[id]?.streams[partition]?.incoming.leftOut
  }

  /// A run of a replica that nobody declares: left out where only a narrowing took the declaration away.
  mutating func leaveOutNarrowed(
    _ run: DeliveredRun, _ name: PartitionName, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    guard ledger.authority.floor(of: run.incoming.replica, in: name) < run.incoming.first else { return false }
    leaveOut(run.incoming.replica, id, partition)
    return true
  }

  /// Statements may allow what was left out: it is asked for anew.
  mutating func reopenStreamsWithLeftOut(_ step: inout Step) {
    for id in sessions.keys.sorted() {
      for (partition, stream) in sessions[id]?.streams.sorted(by: { $0.key < $1.key }) ?? []
      where !stream.incoming.leftOut.isEmpty {
        sessions[id]?.streams[partition]?.incoming.leftOut.forgive()
        sessions[id]?.streams[partition]?.incoming.close()
        considerPull(id, partition, &step)
      }
    }
  }
}
