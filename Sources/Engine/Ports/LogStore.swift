import Replication
import Wire

/// The questions that the engine asks of the disk. Inside a transaction an answer has what that transaction wrote.
///
/// One thread calls it. Answers are whole arrays, bounded by the caller's limits. What it throws is a ``StoreFailure``.
package protocol LogReading: AnyObject {
  /// Signed statements in order of arrival.
  func statementBytes() throws -> [[UInt8]]
  /// Names, and prefixes followed by `*`, in byte order.
  func subscriptions() throws -> [Text]
  /// Those of this device, ascending by their numbers.
  func invitations() throws -> [Invitation]
  /// Words of devices about what they hold, in the order of partition, device and kind.
  func holdings() throws -> [KeptHoldings]
  func ownFacts() throws -> OwnFacts
  /// Partitions of which the name is known, in the order in which they were met.
  func logPartitions() throws -> [LogPartition]
  func logChains() throws -> [LogChain]
  /// Those of one partition.
  func logChains(of partition: PartitionID) throws -> [LogChain]
  /// Runs of one chain that hold changes above `sequence`, of all branches, ascending by their last one: at least one
  /// where there is one, then while their bodies stay within `byteLimit`. Runs that end at the same sequence come
  /// together.
  func runs(of chain: ChainIdentity, after sequence: UInt64, byteLimit: Int) throws -> [LogRun]
  /// Where such runs lie, of all branches, ascending by their last change, so many at the most and those that end where the last
  /// of these does; reads no run.
  func places(of chain: ChainIdentity, after sequence: UInt64, limit: Int) throws -> [RunPlace]
  /// By chain of which runs came behind an arrival: the number before the lowest of their changes. Looks at these runs alone, and
  /// at no body.
  func ends(beforeRunsBehind arrival: Int64) throws -> [PartitionID: [ReplicaID: UInt64]]
  /// The chain's run at a place.
  func run(at place: RunPlace, of chain: ChainIdentity) throws -> LogRun?
  /// The bytes of the chain's run at a place: they read also where the context does not that it refers to.
  func body(at place: RunPlace, of chain: ChainIdentity) throws -> [UInt8]?
  /// Whether the chain's run at a place was written with these bytes: tells also where its own do not read any more.
  func isWritten(_ body: ArraySlice<UInt8>, at place: RunPlace, of chain: ChainIdentity) throws -> Bool
  /// Holds runs of all chains that came after `arrival`, in that order, against what they were when they were written: at
  /// least one where there is one, then until the limit of their bytes or number is reached.
  func scrub(
    after arrival: Int64, damagedBases: Set<Int64>, byteLimit: Int, countLimit: Int
  ) throws -> ScrubbedRuns
  /// The run that ends highest; of several that do, the one that came last.
  func lastRun(of chain: ChainIdentity) throws -> LogRun?
  func reissues(in partition: PartitionID) throws -> Set<Reissue>
  /// A payload that travelled apart from its run, whole; nil where it has not arrived.
  func largePayload(_ hash: Digest) throws -> [UInt8]?
  /// What a device has sent so far of a payload that travels apart from its run: its first bytes.
  func stagedBytes(_ key: StagedKey) throws -> [UInt8]
  /// Ascending by their keys.
  func stagedShares() throws -> [StagedShare]
  /// One document, alive or deleted; nil where none has ever been there.
  func document(_ key: DocumentKey, in partition: PartitionID) throws -> LogDocument?
  /// Documents whose state is such as ``DocumentStateCodec/encodeSetAside(generation:)`` gives, in no order: all are looked
  /// through.
  func documentsSetAside(limit: Int) throws -> [(partition: PartitionID, key: DocumentKey)]
}

/// A part of the log that was held against what was written.
package struct ScrubbedRuns: Sendable {
  /// The arrival of the last of them.
  package var end: Int64
  /// Nothing lies behind it.
  package var isAll = false
  /// The arrival of the last run of the log.
  package var logEnd: Int64 = 0
  package var byteCount = 0
  /// Those that are not as they were written, or whose context refers to such a one.
  package var damaged: [(partition: PartitionID, run: DamagedRun)] = []
  /// Arrivals of those that others refer to for their contexts, with those that were found before.
  package var damagedBases: Set<Int64>
  /// Arrivals of those that are as they were written.
  package var intact: Set<Int64> = []
  /// Of these no sum tells more than that they begin as runs: whether they decode is still to be looked at.
  package var withoutSum: [(partition: PartitionID, run: DamagedRun)] = []
  /// So many are not where the index has them: nothing is known of them.
  package var misplacedCount = 0

  package init(end: Int64, damagedBases: Set<Int64> = []) { (self.end, self.damagedBases) = (end, damagedBases) }
}

/// Where a run lies in the log.
package struct RunPlace: Hashable, Sendable {
  package let last: UInt64
  /// In the order of arrival, over all partitions.
  package let arrival: Int64
  package init(last: UInt64, arrival: Int64) { (self.last, self.arrival) = (last, arrival) }
}

extension LogReading {
  // For a log without an index.

  package func places(of chain: ChainIdentity, after sequence: UInt64, limit: Int) throws -> [RunPlace] {
    let all = try runs(of: chain, after: sequence, byteLimit: .max)
    let end = all.count > limit && limit > 0 ? all[limit - 1].last : .max
    return all.prefix { $0.last <= end }.map { RunPlace(last: $0.last, arrival: $0.arrival) }
  }

  package func run(at place: RunPlace, of chain: ChainIdentity) throws -> LogRun? {
    try runs(of: chain, after: place.last - 1, byteLimit: 0).first { $0.arrival == place.arrival }
  }

  package func body(at place: RunPlace, of chain: ChainIdentity) throws -> [UInt8]? {
    try run(at: place, of: chain)?.body
  }

  /// What the row of a run tells of it, whatever its bytes are; nil where not even that reads.
  func damagedRun(at place: RunPlace, of chain: ChainIdentity) -> DamagedRun? {
    (try? run(at: place, of: chain)).map { DamagedRun($0, of: chain.replica) }
  }

  /// A payload that travelled apart from its run; nil also where it is not as it was written, and has to come anew.
  func intactPayload(_ hash: Digest) throws -> [UInt8]? {
    do {
      return try largePayload(hash)
    } catch let failure as any StoreFailure where failure.isOfOneRow {
      return nil
    }
  }

  package func isWritten(_ body: ArraySlice<UInt8>, at place: RunPlace, of chain: ChainIdentity) throws -> Bool {
    try self.body(at: place, of: chain).map { $0[...] == body } ?? false
  }

  /// Memory gives back what was written.
  package func scrub(
    after arrival: Int64, damagedBases: Set<Int64>, byteLimit: Int, countLimit: Int
  ) throws -> ScrubbedRuns {
    var scrubbed = ScrubbedRuns(end: arrival)
    scrubbed.isAll = true
    return scrubbed
  }
}

/// The store of one node, as its engine sees it: a log of runs, the documents they come to, and a few facts.
package protocol LogStore: LogReading {
  /// The store's own id, drawn when it was made; a copy has the same one.
  var storeID: UUIDValue { get }
  /// True once the store must not be written any more (K3).
  var hasFailed: Bool { get }
  var totals: LogTotals { get }
  /// Runs `body` as one transaction, durable when this returns: all of it, or nothing when it throws. `isBacklog`: much
  /// comes at once, and more will follow.
  func transact<Result>(isBacklog: Bool, _ body: (any LogTransaction) throws -> Result) throws -> Result
  /// Brings what transactions left beside its place to where it belongs, if that is due; never within a transaction. Asked
  /// once everybody has been answered. Throws where the store may have failed; what was committed stands.
  func carryOver(_ occasion: CarryOccasion) throws
  /// Milliseconds after the last commit or the last asking at which it is to be asked again though nothing is written; nil
  /// where nothing waits for that.
  var carryDelay: UInt64? { get }
}

/// Who would wait for ``LogStore/carryOver(_:)``.
package enum CarryOccasion: Sendable {
  /// A user of the node who wrote a moment ago, or peers to whom something is being read.
  case attended
  /// Nobody, as far as is known.
  case busy
  /// Nobody, and nothing has been written for a while.
  case idle
}

/// One transaction: all of what is written through it, or nothing. Not to be kept beyond the closure it was handed to.
package protocol LogTransaction: LogReading {
  /// Stores a statement. Twice is as good as once. `arrived`: when it came, by this node's clock, in milliseconds since
  /// 1970; 0 where that is not known.
  func add(_ statement: Statement, arrived: Int64) throws
  /// Takes a statement away that fell out of the set.
  func removeStatement(_ id: Digest) throws
  func setReplica(_ replica: Incarnation) throws
  func setUnderstanding(_ understanding: [UInt8]) throws
  func setLogDamaged(_ isDamaged: Bool) throws
  func setProgress(commits: UInt64, timestamp: HybridTimestamp) throws
  func subscribe(_ pattern: Text) throws
  func unsubscribe(_ pattern: Text) throws
  /// In place of the one with its number, if there is one.
  func put(_ invitation: Invitation) throws
  func removeInvitation(_ serial: UInt64) throws
  /// In place of the device's earlier word of this kind about the partition, where its number is no greater.
  func put(_ kept: KeptHoldings, in partition: PartitionID) throws
  /// `address`: where the device can be dialled again, as text.
  func noteContact(_ device: DeviceID, address: String?, time: Int64) throws
  func addPartition(_ id: PartitionID, _ name: PartitionName) throws
  /// Takes a partition away of which nothing is stored but the name; any other stays.
  func removePartition(_ id: PartitionID) throws
  /// Answers the run's place in the order of arrival, over all partitions. `genesis` is asked for where the chain begins.
  func append(_ run: AppendedRun, to chain: ChainIdentity, genesis: @autoclosure () -> Digest) throws -> Int64
  /// Puts a run in the place of one that is not as it was written, which is the same but for that.
  func replaceRun(at arrival: Int64, with run: AppendedRun, of chain: ChainIdentity) throws
  /// Documents of the partition read again, or differently, without a run that tells it: who follows them reads all anew.
  func noteRebuild(of partition: PartitionID) throws
  func setMarks(_ marks: ChainMarks, of chain: ChainIdentity) throws
  func add(_ reissue: Reissue, in partition: PartitionID) throws
  /// Adds bytes behind those that are there, where the share then comes to what it says.
  func addPiece(_ bytes: ArraySlice<UInt8>, to share: StagedShare) throws
  func removePieces(_ key: StagedKey) throws
  /// The caller has checked its hash. Twice is as good as once.
  func addLargePayload(_ payload: ApartPayload) throws
  /// Writes the state of a document, in place of `old` where there was one.
  func store(_ new: LogDocument, over old: LogDocument?, as key: DocumentKey, in partition: PartitionID) throws
  /// Carries newly accepted changes into documents, each in order of delivery and covered by no accepted context (M12). A
  /// document whose row does not read stays as it is, and is named.
  func fold(_ runs: [AcceptedRun]) throws -> ChangedDocuments
  /// Makes documents anew from all accepted changes, where acceptance moved in another way (M12).
  func rebuild(_ documents: Set<DocumentKey>, by rebuilding: Rebuilding) throws -> ChangedDocuments
}

extension LogTransaction {
  /// Where nobody asks when it came.
  package func add(_ statement: Statement) throws { try add(statement, arrived: 0) }
}

/// An error of the store. It ends the transaction that it comes up in, whatever else that holds.
package protocol StoreFailure: Error {
  /// The open store must not be written again.
  var isFatal: Bool { get }
  /// Of one row that does not read: whoever can do without it may go on, also within the transaction.
  var isOfOneRow: Bool { get }
  /// The run that is not as it was written, or of which the payload is not; nil where it is something else.
  var runAtFault: DamagedRun? { get }
  /// The run itself reads, and all that follows from it: a payload that travelled apart from it does not.
  var isOfPayload: Bool { get }
}

extension StoreFailure {
  package var runAtFault: DamagedRun? { nil }
  package var isOfOneRow: Bool { false }
  package var isOfPayload: Bool { false }
}
