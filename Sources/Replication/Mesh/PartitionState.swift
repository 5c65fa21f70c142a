/// What a node knows of one partition without looking at the disk.
package struct PartitionState: Sendable {
  package let id: PartitionID
  package let name: PartitionName
  package internal(set) var log: PartitionLog
  /// The session that does this partition's catch-up, and when it last brought something (one peer at a time).
  var catchUp: (session: SessionID, progress: MonotonicTime)?
  /// Runs that wait for headers from the disk; the shell answers at once, so at most a message or two.
  var parked: [ParkedRuns] = []
  var awaitedHeaders = 0
  var awaitsAuthority = false

  package init(id: PartitionID, name: PartitionName, log: PartitionLog) {
    (self.id, self.name, self.log) = (id, name, log)
  }
}
