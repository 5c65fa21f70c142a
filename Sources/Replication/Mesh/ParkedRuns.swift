/// Runs of one message that wait to be judged. The context of each is put together when its turn comes: all at once would
/// take the memory of as many vectors as there are runs.
struct ParkedRuns: Sendable {
  enum Waiting: Sendable {
    case arrived(IncomingRun)
    case resolved(DeliveredRun)

    var byteCount: Int {
      switch self {
      case .arrived(let run): run.encoded.count
      case .resolved(let run): run.incoming.encoded.count + run.context.count * RunBatch.contextEntryBytes
      }
    }
  }

  let session: SessionID
  let runs: ArraySlice<Waiting>
  /// The stream on which they came; nil for evidence of a fork, which stands outside.
  let stream: UInt64?

  var isForkEvidence: Bool { stream == nil }
  /// With what a partition takes of which nothing else is here.
  var byteCount: Int { runs.reduce(2_048) { $0 + $1.byteCount } }

  func rest(_ runs: ArraySlice<Waiting>) -> ParkedRuns { ParkedRuns(session: session, runs: runs, stream: stream) }

  /// What becomes of a run when its context is put together.
  enum Resolution {
    case run(DeliveredRun)
    /// It came on a stream that was asked for anew since.
    case isVoid
    /// Its context stands on one that this side does not have: the stream has to be asked for.
    case lacksBase
    case breach(String, BrokenRule.Place)
  }

  /// The context must be what the author hashed. `entries`: of all contexts of the message so far.
  func resolve(
    _ run: IncomingRun, on stream: IncomingStream?, _ name: PartitionName, entries: inout Int, _ hash: HashFunction
  ) -> Resolution {
    guard isForkEvidence || stream?.number == self.stream else { return .isVoid }
    let place = BrokenRule.Place(partition: name, replica: run.replica, sequence: run.first)
    let context = run.context.resolved(on: isForkEvidence ? nil : stream?.base)
    entries += context.count
    guard context.count <= RunSummary.contextEntryLimit, entries <= RunBatch.contextEntryLimit else {
      return .breach("contexts of one message with too many entries", place)
    }
    guard RunRecord.digest(of: context, hash) == run.contextDigest else {
      guard !isForkEvidence, stream?.lacksBase(of: run) == true else {
        return .breach("a context that does not match its digest", place)
      }
      return .lacksBase
    }
    guard run.elementDots.allSatisfy({ $0.value <= context.sequence(of: $0.key) }) else {
      return .breach("a change that names list elements it had not seen", place)
    }
    return .run(DeliveredRun(incoming: run, context: context))
  }
}

extension RunSummary {
  /// Nil where the signer could not be found out: the replica is not declared.
  package init?(_ run: DeliveredRun, in partition: PartitionName) {
    guard let signer = run.incoming.signer else { return nil }
    self.init(
      partition: partition, replica: run.incoming.replica, first: run.incoming.first,
      hashBefore: run.incoming.hashBefore, hashes: run.incoming.hashes, context: run.context, signer: signer,
      facts: run.incoming.facts)
  }
}
