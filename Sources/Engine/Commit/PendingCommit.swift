import Replication

/// Bounds of one transaction. They are looked at after each event, so that it passes them by one event at the most.
package struct CommitLimits: Sendable {
  /// Large enough that random ids sort well, small enough for memory.
  package var changes = 32_768
  package var bytes = 24 * 1024 * 1024
  package var writes = 1_024
  /// Changes in one transaction that tell a backlog from live traffic.
  package var backlogChanges = 4_096
  /// The first two bounds while somebody writes on this node and waits: some 20 ms of one core.
  package var attendedChanges = 4_096
  package var attendedBytes = 3 * 1024 * 1024
  /// So long after his last write somebody counts as writing.
  package var attendedMilliseconds: UInt64 = 10_000
  /// Answers to peers in one turn, of up to 1 MiB each: what came meanwhile is not to wait for all of them.
  package var loadsOfOneTurn = 8
  package init() {}
}

/// Requests that become one change, and where the answer goes.
package struct LocalWriteJob: Sendable {
  package let partition: PartitionName
  package let edits: [any DocumentEdit]
  /// Nil: who asks has the documents before him as they are here.
  package let reading: EarlierReading?
  /// Called once: with a receipt when the change is on disk, or with why there is none.
  package let answer: @Sendable (Result<ChangeReceipt, any Error>) -> Void

  package init(
    partition: PartitionName, edits: [any DocumentEdit], reading: EarlierReading? = nil,
    answer: @escaping @Sendable (Result<ChangeReceipt, any Error>) -> Void
  ) {
    (self.partition, self.edits, self.reading, self.answer) = (partition, edits, reading, answer)
  }
}

/// How somebody who reads elsewhere had a document before him when he changed it: his change has seen nothing that came
/// since, whatever this node has (rule C3).
package struct EarlierReading: Sendable {
  /// What he read; nil where there was no document.
  package let state: DocumentState?
  /// When he made the change, by his clock.
  package let wall: WallTime
  /// What informs of the change: for whom it was, what caused it.
  package let extensions: [ChangeExtension]

  package init(state: DocumentState?, wall: WallTime, extensions: [ChangeExtension]) {
    (self.state, self.wall, self.extensions) = (state, wall, extensions)
  }
}

/// A wish to follow a partition, or every one whose name begins with what stands before a `*`, or an end to it.
package struct SubscriptionJob: Sendable {
  package let pattern: Text
  package let isWanted: Bool
  /// Called once, when it is on disk or will not be.
  package let answer: @Sendable (Result<Void, any Error>) -> Void

  package init(pattern: Text, isWanted: Bool, answer: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    (self.pattern, self.isWanted, self.answer) = (pattern, isWanted, answer)
  }
}

/// Everything that the next commit will write.
struct PendingCommit {
  struct Applied {
    let partition: PartitionID
    let source: SessionID
    let runs: [DeliveredRun]

    var commit: Mesh.Commit { Mesh.Commit(partition, source: source, runs.map(\.logged)) }
  }

  var statements: [Statement] = []
  /// Those that fell out of the set.
  var displaced: [Digest] = []
  var applied: [Applied] = []
  var rebuilds: [(PartitionID, LogChange)] = []
  var writes: [LocalWriteJob] = []
  var subscriptions: [SubscriptionJob] = []
  var pieces: [StagedPiece] = []
  /// Own work to be issued again.
  var reissues: [Reissue.Owed] = []
  /// Contacts to remember: device, and where it can be dialled.
  var contacts: [(DeviceID, String?)] = []
  /// Words of devices about what they hold, this one's among them, with the sessions that they came on.
  var holdings: [(record: KeptHoldings, source: SessionID?)] = []
  private(set) var changeCount = 0
  private(set) var byteCount = 0

  var isEmpty: Bool {
    statements.isEmpty && displaced.isEmpty && applied.isEmpty && rebuilds.isEmpty && writes.isEmpty
      && contacts.isEmpty && holdings.isEmpty && pieces.isEmpty && subscriptions.isEmpty && reissues.isEmpty
  }

  /// Partitions whose own chains grow.
  var writingPartitions: [PartitionName] { writes.map(\.partition) + reissues.map(\.name) }

  /// True where memory has taken in what is not on disk yet: should the commit fail, only reading everything again
  /// helps.
  var isAheadOfDisk: Bool {
    !applied.isEmpty || !statements.isEmpty || !displaced.isEmpty || !rebuilds.isEmpty || !pieces.isEmpty
  }

  func isFull(_ limits: CommitLimits, isAttended: Bool) -> Bool {
    changeCount >= (isAttended ? limits.attendedChanges : limits.changes)
      || byteCount >= (isAttended ? limits.attendedBytes : limits.bytes) || writes.count >= limits.writes
  }

  mutating func apply(_ partition: PartitionID, from source: SessionID, _ runs: [DeliveredRun]) {
    applied.append(Applied(partition: partition, source: source, runs: runs))
    for run in runs {
      changeCount += run.incoming.hashes.count
      // A context takes memory of its own, and room on the disk.
      byteCount += run.incoming.encoded.count + run.context.count * 48
    }
  }

  mutating func stage(_ piece: PayloadPiece, as key: StagedKey, from session: SessionID) {
    pieces.append(StagedPiece(key: key, session: session, piece: piece))
    byteCount += piece.bytes.count
  }

  /// Moves of acceptance other than by plain delivery, by partition.
  var moved: [PartitionID: [LogChange]] {
    var moved: [PartitionID: [LogChange]] = [:]
    for (partition, change) in rebuilds { moved[partition, default: []].append(change) }
    for applied in applied {
      for run in applied.runs { if let change = run.change { moved[applied.partition, default: []].append(change) } }
    }
    return moved
  }
}

/// The results of a transaction, to be told once it is durable.
struct Committed {
  struct Own {
    let partition: PartitionID
    let run: Run
    let encoded: [UInt8]

    var commit: Mesh.Commit { Mesh.Commit(partition, source: nil, [logged]) }

    private var logged: LoggedRun {
      LoggedRun(
        replica: run.record.chain.replica, first: run.record.first, last: run.record.last,
        hashBefore: run.record.hashBefore, context: run.record.context, encoded: encoded[...], apart: run.apart)
    }
  }

  var own: [Own] = []
  var receipts: [(LocalWriteJob, Result<ChangeReceipt, any Error>)] = []
  var documents: [ChangedDocuments] = []
  private(set) var arrivals: ClosedRange<Int64>?
  /// Runs that did not read, and that came anew as others do.
  var mended: [(run: DamagedRun, chain: DamagedRuns.Chain)] = []
  /// Chains of which a run came that is in the log, and did not read at the opening.
  var reread: [ChainIdentity] = []
  /// What is here of payloads that travel apart.
  var staged = StagedPayloads()
  /// The store says now what this build understands.
  var hasNotedUnderstanding = false
  /// Documents are to be made anew that the log cannot give, and the store says so.
  var owesDocuments = false
  /// Documents that got a row that does not read, since they could not be made anew.
  var setAsideCount = 0
  /// Sessions whose pieces did not come to the payload that they named.
  var spoiled: [(SessionID, PartitionName)] = []
  /// Partitions that own writes made this node want.
  var subscribed: [PartitionName] = []
  /// Partitions of which nothing is stored and that nobody wants any more.
  var forgotten: [PartitionID] = []
  /// The replica id that own writes drew.
  var drawn: DrawnReplica?
  /// The store goes on under another id than before, be it one that it had before that.
  var hasChangedReplica = false
  /// Directives with which the core answered the declaration.
  var directives: [Mesh.Directive] = []

  mutating func noteArrival(_ arrival: Int64) { arrivals = min(arrivals?.lowerBound ?? arrival, arrival)...arrival }
}

extension DeliveredRun {
  var logged: LoggedRun {
    LoggedRun(
      replica: incoming.replica, first: incoming.first, last: last, hashBefore: incoming.hashBefore,
      hashAtLast: incoming.hashes.last, context: context, encoded: incoming.encoded, apart: incoming.documents.apart)
  }
}

extension EngineState {
  /// The record of a commit for whoever follows them. To be made once per commit: it notes what was told.
  func record(of done: Committed, _ batch: PendingCommit) -> CommitRecord {
    var moved = Set(batch.applied.map(\.partition)).union(batch.rebuilds.map(\.0))
    moved.formUnion(done.own.map(\.partition))
    let partitions = moved.sorted().compactMap { id -> CommitRecord.Moved? in
      guard let (name, accepted) = look(at: id, { ($0.name, $0.log.accepted) }) else { return nil }
      let before = toldAccepted.updateValue(accepted, forKey: id)
      return CommitRecord.Moved(partition: id, name: name, before: before ?? VersionVector(), accepted: accepted)
    }
    return CommitRecord(
      partitions: partitions, documents: done.documents.filter { $0.count > 0 }, arrivals: done.arrivals,
      hasStatements: !batch.statements.isEmpty,
      words: Set(batch.holdings.map { identity.id(of: $0.record.holdings.partition) }))
  }
}
