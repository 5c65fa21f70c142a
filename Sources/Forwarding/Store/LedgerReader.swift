import struct Engine.DamagedLog
import Replication
import Storage
import Wire

/// Holds a ledger against the log: which runs it lacks.
struct LedgerReader {
  let source: any ForwardingSource
  let backend: any Backend
  let limits: ForwarderLimits
  /// Nil where nothing is known of an earlier time.
  var memory: LedgerMemory?
  /// Tells this process from earlier ones, and from those of copies of this directory.
  var process = ""

  /// A chain as the store has it, and what the ledger is asked about it.
  private struct Held {
    let number: ChainNumber
    let received: UInt64
    let question: ChainQuestion
  }

  func read() throws -> Forwarder.LedgerReading {
    var view = LedgerView()
    view.statements = try backend.statementIDs()
    let accepted = try source.accepted()
    let (chains, position, totals) = try source.read { store in
      try store.snapshot { store in (try held(store), try store.logEnd(), try store.totals()) }
    }
    let end = position.arrival
    view.readAt = end
    let before = arrivalRemembered(position)
    var first = end
    var (lacking, lost): (Int64, UInt64) = (0, 0)
    for start in stride(from: 0, to: chains.count, by: limits.questionChains) {
      let asked = chains[start..<min(start + limits.questionChains, chains.count)]
      let answers = try backend.answers(to: asked.map(\.question))
      guard answers.count == asked.count else {
        throw BackendProblem(.refused, "the backend answered something else than it was asked")
      }
      for (chain, answer) in zip(asked, answers) {
        let reached = try note(chain, answer, &view)
        if let before { lost += try missing(chain, answer, before) }
        guard let arrival = try source.read({ try $0.firstArrival(of: chain.number, above: reached) }) else { continue }
        first = min(first, arrival - 1)
        lacking += Int64(clamping: chain.received - min(reached, chain.received))
      }
    }
    view.amount = known(of: totals, lacking: lacking)
    var reading = Forwarder.LedgerReading(
      view: view, runsAfter: first, accepted: accepted.vectors,
      held: LogAmount(changes: totals.changes, bytes: totals.logBytes))
    (reading.lost, reading.position) = (lost, accepted.position)
    let start = try backend.documentStart(of: process)
    (reading.documents, reading.step, reading.batches) = (DocumentProgress(start), start.step, start.ledger.batches)
    reading.documents.resume(as: process, memory?.ledger == backend.ledgerID ? memory : nil)
    return reading
  }

  private func note(_ chain: Held, _ answer: ChainAnswer, _ view: inout LedgerView) throws -> UInt64 {
    let key = chain.question.chain
    let reached = try ChainComparison.reached(chain.question, answer) { sequence in
      // Where the log does not tell it, runs that may be there are sent again.
      try source.read { try hashIfReadable(of: chain.number, at: sequence, in: key.partition, $0) }
    }
    view.reached[key] = reached
    view.highest[key] = answer.highest
    view.marks[key] = answer.mark
    return reached
  }

  /// All runs that had come by then were in this ledger; nil where that is not known.
  private func arrivalRemembered(_ end: LogPosition) -> Int64? {
    guard let memory, memory.ledger == backend.ledgerID, let position = LogPosition(text: memory.position),
      position.belongs(to: end)
    else { return nil }
    return position.arrival
  }

  /// Numbers that the ledger had of a chain and lacks.
  private func missing(_ chain: Held, _ answer: ChainAnswer, _ arrival: Int64) throws -> UInt64 {
    guard answer.highest < chain.received else { return 0 }
    let had = try source.read { try $0.highest(of: chain.number, cameThrough: arrival) }
    return had > answer.highest ? had - answer.highest : 0
  }

  /// Bytes are taken to be as evenly spread as changes.
  private func known(of totals: Counters, lacking: Int64) -> LogAmount {
    let known = max(0, totals.changes - lacking)
    guard totals.changes > 0 else { return LogAmount() }
    return LogAmount(changes: known, bytes: Int64(Double(totals.logBytes) * Double(known) / Double(totals.changes)))
  }

  private func held(_ store: StoreReader) throws -> [Held] {
    let partitions = Dictionary(try store.partitions().map { ($0.number, $0.id) }) { first, _ in first }
    return try store.chains().compactMap { stored in
      guard let partition = partitions[stored.number.partition], stored.received.sequence > 0 else { return nil }
      let chain = ChainKey(partition: partition, replica: stored.replica)
      // Where it forks, the branches are told apart above the last change that is on all of them.
      let mark = stored.holdReason == nil ? stored.received : stored.accepted
      var hash = mark.hash
      if mark.sequence != stored.accepted.sequence {
        hash = try hashIfReadable(of: stored.number, at: mark.sequence, in: partition, store) ?? hash
      }
      return Held(
        number: stored.number, received: stored.received.sequence,
        question: ChainQuestion(chain: chain, sequence: mark.sequence, hash: hash))
    }
  }

  /// Chain hash of a stored chain; on some branch where it forks. Where the run there does not read, the one behind it tells.
  func hash(
    of chain: ChainNumber, at sequence: UInt64, in partition: PartitionID, _ store: StoreReader
  ) throws -> Digest? {
    guard sequence > 0 else { return nil }
    do {
      guard let run = try run(of: chain, at: sequence, in: partition, store) else { return nil }
      let index = Int(sequence - run.first)
      return run.hashes.indices.contains(index) ? run.hashes[index] : nil
    } catch let failure where DamagedLog.isOfOneRow(failure) {
      guard let behind = try run(of: chain, at: sequence + 1, in: partition, store), behind.first == sequence + 1 else {
        throw failure
      }
      return behind.hashBefore
    }
  }

  private func hashIfReadable(
    of chain: ChainNumber, at sequence: UInt64, in partition: PartitionID, _ store: StoreReader
  ) throws -> Digest? {
    do { return try hash(of: chain, at: sequence, in: partition, store) } catch let failure
      where DamagedLog.isOfOneRow(failure)
    { return nil }
  }

  private func run(
    of chain: ChainNumber, at sequence: UInt64, in partition: PartitionID, _ store: StoreReader
  ) throws -> DecodedRun? {
    let runs = try store.runs(of: chain, after: sequence - 1, byteLimit: 1)
    guard let run = runs.first, run.first <= sequence, run.last >= sequence else { return nil }
    return try RunCodec.decode(run.body[...], fleet: source.fleet, partition: partition, hash: source.hash)
  }
}
