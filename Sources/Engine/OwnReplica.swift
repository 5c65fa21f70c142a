import Replication

/// This node's own chains: under which replica it writes, how far, and whether it may go on under it.
package struct OwnReplica {
  struct End {
    var sequence: UInt64
    var hash: Digest
    var context: VersionVector

    var position: ChainPosition { ChainPosition(sequence: sequence, tip: hash.tip) }
  }

  package internal(set) var replica: Incarnation?
  /// Own changes committed so far, over all partitions and replicas of this store.
  package internal(set) var commits: UInt64 = 0
  /// Reasons to draw a new replica id at the next write (rule C20).
  package internal(set) var causes: Set<RenewalCause> = []
  /// When the present id took the place of another; nil where it did not since the start.
  var renewedAt: MonotonicTime?
  /// Partitions in which peers have shown runs under the present id that were not written here.
  var contested: Set<PartitionID> = []
  var lastTimestamp = HybridTimestamp.zero
  /// The end of each chain that the current replica has written.
  var ends: [PartitionID: End] = [:]
  /// Ids that were left for the right of another membership alone, the latest last. No reason for a new one has come up since.
  var resting: [Resting] = []

  struct Resting {
    /// As the mark has it.
    let noted: RestingReplica
    let ends: [PartitionID: End]

    init(_ incarnation: Incarnation, _ ends: [PartitionID: End], _ hash: HashFunction) {
      var bytes: [UInt8] = []
      for (partition, end) in ends.sorted(by: { $0.key < $1.key }) {
        partition.digest.append(to: &bytes)
        appendBigEndian(end.sequence, to: &bytes)
        end.hash.append(to: &bytes)
      }
      noted = RestingReplica(incarnation: incarnation, ends: Digest.of(bytes, hash))
      self.ends = ends
    }
  }

  /// A device has few memberships that stand. One more than these draws an id anew.
  static let restingLimit = 4

  /// Now, or again where it rests.
  func writes(under id: ReplicaID) -> Bool {
    id == replica?.id || resting.contains { $0.noted.incarnation.id == id }
  }

  var isRenewalDue: Bool { replica == nil || !causes.isEmpty }

  mutating func nextTimestamp(wallMilliseconds: Int64) -> HybridTimestamp {
    lastTimestamp = HybridTimestamp.next(
      after: lastTimestamp, referenceMilliseconds: UInt64(clamping: wallMilliseconds))
    return lastTimestamp
  }

  func sequence(in partition: PartitionID) -> UInt64 { ends[partition]?.sequence ?? 0 }
  func tip(in partition: PartitionID) -> Digest? { ends[partition]?.hash }
  package func context(in partition: PartitionID) -> VersionVector { ends[partition]?.context ?? VersionVector() }

  /// The run is of the present replica, and goes on from its last one in the partition.
  func isFollowed(by run: Run, in partition: PartitionID) -> Bool {
    run.record.chain.replica == replica?.id && run.record.first == sequence(in: partition) + 1
      && ends[partition].map { $0.hash == run.record.hashBefore } ?? true
  }

  mutating func advance(_ partition: PartitionID, _ run: Run) {
    ends[partition] = End(sequence: run.record.last, hash: run.record.hashAtLast, context: run.record.context)
  }

  /// Goes on as another replica; its chains begin anew.
  mutating func renew(_ incarnation: Incarnation, _ now: MonotonicTime, _ hash: HashFunction) {
    leavePresent(hash)
    if replica != nil { renewedAt = now }
    (replica, ends) = (incarnation, [:])
    (causes, contested) = ([], [])
  }

  /// Goes on as one that rests, where that had come to.
  mutating func goOn(as earlier: Resting, _ hash: HashFunction) {
    resting.removeAll { $0.noted == earlier.noted }
    leavePresent(hash)
    (replica, ends, contested) = (earlier.noted.incarnation, earlier.ends, [])
  }

  /// What speaks against one id of this store may speak against all.
  private mutating func leavePresent(_ hash: HashFunction) {
    guard let replica, causes.isEmpty else { return resting = [] }
    resting = resting.suffix(OwnReplica.restingLimit - 1) + [Resting(replica, ends, hash)]
  }

  // MARK: How often

  /// Between two renewals of one process: each costs a statement and an entry in every later context, for ever.
  package static let renewalMilliseconds: UInt64 = 60_000

  /// Milliseconds until the id may be renewed.
  func timeToRenewal(_ now: MonotonicTime) -> UInt64 {
    guard replica != nil, let renewedAt else { return 0 }
    let passed = now.millisecondsSince(renewedAt)
    return passed < OwnReplica.renewalMilliseconds ? OwnReplica.renewalMilliseconds - passed : 0
  }

  /// Nothing may be written there under the present id, and it was drawn too lately to be renewed. Elsewhere nobody has
  /// shown another history.
  package func isBarred(_ partition: PartitionID, _ now: MonotonicTime) -> Bool {
    isRenewalDue && timeToRenewal(now) > 0 && isContested(partition)
  }

  /// Of a present id that is in doubt: elsewhere nobody has shown another history.
  func isContested(_ partition: PartitionID) -> Bool { causes != [.peer] || contested.contains(partition) }
}
