import Forwarding
import Replication

/// The tables of a backend, as plainly as they can be kept: rows are added and never taken away, but for marks, documents and
/// what became of edits. A value, so that a copy of it is a dump.
struct ModelLedger {
  struct Mark: Equatable {
    let position: ChainPosition
    let judge: DeviceID
  }

  struct RunKey: Hashable {
    let chain: ChainKey
    let last: UInt64
    let hash: Digest
  }

  struct PayloadKey: Hashable {
    let partition: PartitionID
    let hash: Digest
  }

  /// Tells this ledger, and its copies, from any other.
  let id: String
  var partitions: [PartitionID: PartitionName] = [:]
  var statements: [Digest: [UInt8]] = [:]
  var payloads: [PayloadKey: [UInt8]] = [:]
  var runs: [RunKey: LedgerBatch.Run] = [:]
  /// Chain hashes of the changes, by their numbers: several where the chain has branches.
  var changes: [ChainKey: [UInt64: [Digest]]] = [:]
  var marks: [ChainKey: Mark] = [:]
  var documents: [DocumentPlace: ModelDocument] = [:]
  /// Of each relay's log, up to where it brought documents.
  var positions: [DeviceID: String] = [:]
  /// Of each process of a relay, the last batch.
  var steps: [DeviceID: [String: UInt64]] = [:]
  /// Of each relay, the process that speaks for it.
  var holds: [DeviceID: RelayHold] = [:]
  var office = ModelOffice()
  /// Of some documents it does not take the body.
  private let rejectsSome: Bool

  /// Nil: it keeps its promises.
  let bug: PlantedBug?

  init(id: String, rejectsSome: Bool, bug: PlantedBug?) {
    (self.id, self.rejectsSome, self.bug) = (id, rejectsSome, bug)
  }

  /// - Parameter state: digest of the document's merge state.
  func rejects(_ state: Digest) -> Bool { rejectsSome && state.words.0 % 5 == 0 }

  func has(_ hash: Digest, at sequence: UInt64, of chain: ChainKey) -> Bool {
    changes[chain]?[sequence]?.contains(hash) ?? false
  }

  func has(_ tip: TipHash, at sequence: UInt64, of chain: ChainKey) -> Bool {
    changes[chain]?[sequence]?.contains { $0.tip == tip } ?? false
  }

  func highest(of chain: ChainKey) -> UInt64 { changes[chain]?.keys.max() ?? 0 }

  func isForked(_ chain: ChainKey) -> Bool { changes[chain]?.values.contains { $0.count > 1 } ?? false }

  var chains: [ChainKey] { changes.keys.sorted() }

  var state: LedgerSums {
    var state = LedgerSums()
    state.statements = StatementSum.of(statements.keys, FakeCryptography.hash)
    state.batches = steps.values.reduce(0) { $0 + $1.values.reduce(0, +) }
    return state
  }

  /// How many changes it has, on whatever branch.
  var changeCount: Int { changes.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + $1.count } } }

  // MARK: Questions

  func answer(to question: ChainQuestion) -> ChainAnswer {
    var answer = ChainAnswer()
    answer.hasChange = has(question.hash, at: question.sequence, of: question.chain)
    answer.highest = highest(of: question.chain)
    answer.hashes = changes[question.chain]?[answer.highest] ?? []
    answer.mark = marks[question.chain]?.position
    return answer
  }

  // MARK: A batch

  /// All of it, or nothing where it throws.
  mutating func append(_ batch: LedgerBatch, by relay: DeviceID) throws(BackendProblem) -> AppendOutcome {
    var next = self
    try next.addRows(of: batch)
    var outcome = AppendOutcome()
    try next.write(batch.marks, of: batch, by: relay, &outcome)
    try next.writeDocuments(of: batch, by: relay, &outcome)
    next.office.note(batch)
    self = next
    return outcome
  }

  private mutating func addRows(of batch: LedgerBatch) throws(BackendProblem) {
    partitions.merge(batch.partitions) { old, _ in old }
    for statement in batch.statements { statements[statement.id] = statements[statement.id] ?? statement.encoded }
    for payload in batch.payloads {
      let key = PayloadKey(partition: payload.partition, hash: payload.hash)
      payloads[key] = payloads[key] ?? payload.bytes
    }
    for run in batch.runs {
      let key = RunKey(chain: run.chain, last: run.last, hash: run.hash)
      runs[key] = runs[key] ?? run
      for (index, change) in run.changes.enumerated() {
        let sequence = run.first + UInt64(index)
        guard !has(change.hash, at: sequence, of: run.chain) else { continue }
        changes[run.chain, default: [:]][sequence, default: []].append(change.hash)
      }
    }
    for run in batch.runs where run.first > 1 && !has(run.hashBefore, at: run.first - 1, of: run.chain) {
      throw BackendProblem(.gap, "a run without the one before it", isOfRow: true)
    }
  }

  // MARK: Whose word stands

  /// The ledger has something of the partition that the batch's relay does not say to know.
  func isAhead(of batch: LedgerBatch, in partition: PartitionID) -> Bool {
    guard bug != .olderWordWins else { return false }
    guard batch.knownStatements == state.statements else { return true }
    return changes.keys.contains { chain in
      guard chain.partition == partition else { return false }
      let head = batch.heads.first { $0.chain == chain }
      return head?.highest ?? 0 < highest(of: chain) || isForked(chain) && head?.isForked != true
    }
  }

  private mutating func write(
    _ given: [LedgerBatch.Mark], of batch: LedgerBatch, by relay: DeviceID, _ outcome: inout AppendOutcome
  ) throws(BackendProblem) {
    for mark in given where mark.position.sequence > 0 {
      guard has(mark.position.tip, at: mark.position.sequence, of: mark.chain) else {
        throw BackendProblem(.gap, "a mark without its change", isOfRow: true)
      }
    }
    for (index, mark) in given.enumerated() {
      let old = marks[mark.chain]
      guard old?.position != mark.position else { continue }
      if let old, old.judge != relay, isAhead(of: batch, in: mark.chain.partition) {
        outcome.staleMarks.append(index)
      } else {
        marks[mark.chain] = Mark(position: mark.position, judge: relay)
      }
    }
  }
}
