import Replication
import Wire

/// What somebody who reads elsewhere had seen of a partition when he changed a document: the changes that the version which
/// he read stands on, and nothing that came since, whatever this node has.
///
/// His write must not replace what was not before his eyes (rule C3); with this node's accepted vector as its context it would
/// do so without a trace.
struct SeenByReader {
  private let state: EngineState
  private let transaction: any LogTransaction
  private let partition: PartitionID

  init(_ state: EngineState, _ transaction: any LogTransaction, _ partition: PartitionID) {
    (self.state, self.transaction, self.partition) = (state, transaction, partition)
  }

  /// The context of the run that his change becomes: an entry never falls, so it has what the own chain saw before.
  ///
  /// - Throws: ``EngineError/versionNotHere`` where this node lacks, or does not count, what he read,
  ///   ``EngineError/versionDamaged`` where its log does not give it.
  func context(of reading: EarlierReading, after previous: VersionVector) throws -> VersionVector {
    guard let replica = state.own.replica?.id, let log = state.mesh.partitions[partition]?.log else {
      throw EngineError.notAMember
    }
    var seen = VersionVector()
    for (other, sequence) in reading.state?.changes ?? [:] {
      if other == replica {
        guard sequence <= state.own.sequence(in: partition) else { throw EngineError.versionNotHere }
      } else {
        seen[other] = try position(of: other, at: sequence, log)
      }
    }
    return log.context(seeing: seen, of: replica, after: previous)
  }

  /// Under a replica id that is yet to be drawn, nothing comes before his change.
  ///
  /// - Throws: ``EngineError/versionNotHere`` where this node lacks, or does not count, what he read.
  func judge(_ reading: EarlierReading) throws {
    for (other, sequence) in reading.state?.changes ?? [:] {
      guard let log = state.mesh.partitions[partition]?.log else { throw EngineError.versionNotHere }
      _ = try position(of: other, at: sequence, log)
    }
  }

  /// - Throws: ``EngineError/changedSinceRead`` where the own chain had seen what the reader had not, and his write would
  ///   replace that without a trace.
  func check(
    _ writes: [DocumentWrite], _ context: WriteContext, _ reading: EarlierReading, _ done: inout Committed
  ) throws {
    let read = reading.state?.changes ?? [:]
    for write in writes {
      let key = DocumentKey(collection: write.collection, id: write.id)
      guard let present = try present(key, &done) else { continue }
      let replaced = present.changes(replacedBy: AcceptedWrite(context, write))
      guard replaced.allSatisfy({ $0.sequence <= read[$0.replica] ?? 0 }) else { throw EngineError.changedSinceRead }
    }
  }

  /// A document that does not read is made anew from the log first.
  private func present(_ key: DocumentKey, _ done: inout Committed) throws -> DocumentState? {
    do {
      return try stored(key)
    } catch is DamagedDocument {
      var mending = CommitWriter(state, transaction)
      try mending.mend([key], in: partition)
      done.documents += mending.done.documents
      return try stored(key)
    }
  }

  private func stored(_ key: DocumentKey) throws -> DocumentState? {
    try transaction.document(key, in: partition).map { try DocumentState($0, of: key) }
  }

  private func position(of replica: ReplicaID, at sequence: UInt64, _ log: PartitionLog) throws -> ChainPosition {
    guard sequence <= log.accepted.sequence(of: replica), sequence <= log.forkPoints[replica] ?? .max else {
      // Above a fork a number alone does not tell which branch was read.
      throw EngineError.versionNotHere
    }
    if let known = log.position(of: replica, at: sequence) { return known }
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: replica)
    for stored in try runs(of: chain, at: sequence)
    where stored.first <= sequence && sequence <= stored.last {
      let run = try readable(DamagedRun(stored, of: replica)) {
        try RunReader(state.identity).decode(stored, in: partition)
      }
      let index = Int(sequence - stored.first)
      guard index < run.hashes.count else { break }
      return ChainPosition(sequence: sequence, tip: run.hashes[index].tip)
    }
    throw DamagedLog("a change that counts is not in the log")
  }

  private func runs(of chain: ChainIdentity, at sequence: UInt64) throws -> [LogRun] {
    try readable { try transaction.runs(of: chain, after: sequence - 1, byteLimit: 1) }
  }

  /// His change alone waits for a run that is damaged here: whatever else is in the commit goes on.
  private func readable<Answer>(_ run: DamagedRun? = nil, _ read: () throws -> Answer) throws -> Answer {
    do {
      return try read()
    } catch let failure where DamagedLog.isOfOneRow(failure) {
      if let run = DamagedLog.failure(failure, of: run).runAtFault { state.damagedRuns.note(run, in: partition) }
      throw EngineError.versionDamaged
    }
  }
}
