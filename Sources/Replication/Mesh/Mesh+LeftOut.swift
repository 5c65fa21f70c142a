// Runs that nothing here allows are not the connection's fault: their author, or who passed them on, may know what is not
// known here (rule C7). They are not stored, and their chain is left out of the stream until statements come.
extension Mesh {
  mutating func leaveOut(_ replica: ReplicaID, _ id: SessionID, _ partition: PartitionID) {
    sessions[id]?.streams[partition]?.leftOut.insert(replica)
  }

  /// A run of a replica that nobody declares: left out where only a narrowing took the declaration away.
  mutating func leaveOutNarrowed(
    _ run: DeliveredRun, _ name: PartitionName, _ id: SessionID, _ partition: PartitionID
  ) -> Bool {
    guard authority.floor(of: run.incoming.replica, in: name) < run.incoming.first else { return false }
    leaveOut(run.incoming.replica, id, partition)
    return true
  }

  /// What follows a chain that was left out, or has seen it, cannot be delivered either.
  func standsOnLeftOut(_ run: DeliveredRun, _ id: SessionID, _ partition: PartitionID) -> Bool {
    guard let leftOut = sessions[id]?.streams[partition]?.leftOut, !leftOut.isEmpty else { return false }
    return leftOut.contains(run.incoming.replica) || leftOut.contains { run.context[$0] != nil }
  }

  /// Statements may allow what was left out: it is asked for anew.
  mutating func reopenStreamsWithLeftOut(_ step: inout Step) {
    for id in sessions.keys.sorted() {
      for (partition, stream) in sessions[id]?.streams.sorted(by: { $0.key < $1.key }) ?? []
      where !stream.leftOut.isEmpty {
        sessions[id]?.streams[partition]?.leftOut = []
        sessions[id]?.streams[partition]?.incoming = nil
        considerPull(id, partition, &step)
      }
    }
  }
}
