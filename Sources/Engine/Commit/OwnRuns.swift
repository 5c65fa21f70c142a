import Replication
import Wire

/// Own runs on their way into the log, in memory and on disk.
struct OwnRuns {
  private let state: EngineState
  private let transaction: any LogTransaction

  init(_ state: EngineState, _ transaction: any LogTransaction) {
    (self.state, self.transaction) = (state, transaction)
  }

  /// Signs what was collected and puts it at the end of its chain, and the documents that it makes into the store.
  func append(
    _ builder: RunBuilder, making made: [MadeDocuments] = [], to partition: PartitionID, _ done: inout Committed
  ) throws -> LogChange {
    let run = builder.close(sign: state.identity.cryptography.sign)
    // Two own runs at one place are a fork that nobody can take back.
    precondition(
      state.own.isFollowed(by: run, in: partition), "an own run that does not go on from the last of its chain")
    Invariant.check(
      state.hasSeen(run.record.context, after: state.own.context(in: partition), in: partition),
      "an own run forgets what the one before it had seen")
    state.own.advance(partition, run)
    guard let change = state.mesh.learnOwn(run, in: partition, signer: state.identity.device) else {
      throw EngineError.ownRunNotTaken
    }
    let (chain, (encoded, payloadStarts)) = (run.record.chain, RunCodec.encoded(run))
    let appended = AppendedRun(
      first: run.record.first, last: run.record.last, context: run.record.context, body: encoded[...],
      arrived: state.clock.wallMilliseconds)
    let hash = state.identity.cryptography.hash
    let arrival = try transaction.append(appended, to: chain, genesis: chain.genesis(hash))
    done.noteArrival(arrival)
    if let apart = run.apart { try transaction.addLargePayload(apart) }
    if let marks = state.look(at: partition, { $0.log.marks(of: chain.replica) }) {
      try transaction.setMarks(marks, of: chain)
    }
    done.own.append(Committed.Own(partition: partition, run: run, encoded: encoded))
    guard !made.isEmpty else { return change }
    let writes = made.flatMap { $0.placed(in: run, payloadStarts) }
    done.documents.append(
      try transaction.fold([
        AcceptedRun(
          partition: partition, replica: chain.replica, context: run.record.context,
          documents: RunDocuments(writes: writes, buffer: encoded[...]), arrival: arrival)
      ]))
    return change
  }

  /// As ``append(_:to:_:)``, and merges what the run says with what it has not seen, as if it had come from elsewhere.
  func appendFolding(
    _ builder: RunBuilder, to partition: PartitionID, _ sight: Sight, _ done: inout Committed
  ) throws -> ChangedDocuments {
    _ = try append(builder, to: partition, &done)
    guard let own = done.own.last else { throw EngineError.ownRunNotTaken }
    let reader = RunReader(state.identity)
    let record = own.run.record
    let stored = LogRun(
      arrival: 0, first: record.first, last: record.last, context: record.context, body: own.encoded)
    let content = try reader.content(stored, in: partition, transaction)
    return try transaction.fold([
      AcceptedRun(
        partition: partition, replica: record.chain.replica, context: record.context, sight: sight,
        documents: content.documents)
    ])
  }
}

extension Run {
  /// The payload that travels apart; it stands alone in its run.
  var apart: ApartPayload? {
    guard changes.count == 1, changes[0].payload.count > Run.inlinePayloadByteLimit else { return nil }
    return ApartPayload(hash: changes[0].header.payloadHash, bytes: changes[0].payload)
  }
}
