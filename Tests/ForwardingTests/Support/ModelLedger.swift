import Identity
import Replication

@testable import Forwarding

/// What a fleet knows, in the plainest form: runs that write documents, and statements that cut chains. The newest statement
/// about a chain says how much of it counts.
struct ModelStore {
  struct Cut: Hashable {
    let number: UInt64
    let chain: ChainKey
    let last: UInt64
    var id: Digest { Digest(words: (number, 0, 0, 9)) }
  }

  /// In the order of arrival.
  var log: [LedgerBatch.Run] = []
  var cuts: [Cut] = []

  mutating func take(_ other: ModelStore) {
    for run in other.log where !log.contains(run) { log.append(run) }
    for cut in other.cuts where !cuts.contains(cut) { cuts.append(cut) }
  }

  func received(_ chain: ChainKey) -> UInt64 { log.last { $0.chain == chain }?.last ?? 0 }

  func accepted(_ chain: ChainKey) -> ChainPosition {
    let newest = cuts.filter { $0.chain == chain }.max { $0.number < $1.number }
    let last = min(received(chain), newest?.last ?? .max)
    let tip = log.first { $0.chain == chain && $0.last == last }?.hash.tip
    return ChainPosition(sequence: last, tip: tip ?? .zero)
  }

  var chains: [ChainKey] { Set(log.map(\.chain)).sorted() }

  var vectors: [PartitionID: VersionVector] {
    var vectors: [PartitionID: VersionVector] = [:]
    for chain in chains { vectors[chain.partition, default: VersionVector()][chain.replica] = accepted(chain) }
    return vectors
  }

  /// One of three documents of its partition.
  static func place(_ run: LedgerBatch.Run) -> DocumentPlace {
    DocumentPlace(partition: run.chain.partition, key: DocumentKey(collection: "c", id: [UInt8(run.last % 3)]))
  }

  /// Which of its runs count, as bytes; empty: gone.
  func state(_ place: DocumentPlace) -> [UInt8] {
    log.filter { ModelStore.place($0) == place && $0.last <= accepted($0.chain).sequence }
      .map { Array($0.hash.bytes) }.sorted { $0.lexicographicallyPrecedes($1) }.flatMap { $0 }
  }

  func places(_ partition: PartitionID) -> [DocumentPlace] {
    Set(log.map(ModelStore.place)).filter { $0.partition == partition }.sorted()
  }

  var position: String { "\(log.count).\(cuts.count)" }

  static func sum(_ ids: [Digest]) -> Int64 { StatementSum.of(ids, SHA256.hash) }
}

/// A ledger that keeps the backend's promises: all of a batch or nothing, nothing on a gap, an older word never over a newer.
struct ModelLedger {
  struct Row: Equatable {
    var state: [UInt8]
    var refusal: String?
    var judge: Int
    /// Who wrote it lacked something.
    var isUnsure: Bool
  }

  var store = ModelStore()
  var marks: [ChainKey: (position: ChainPosition, judge: Int)] = [:]
  var documents: [DocumentPlace: Row] = [:]
  var positions: [Int: String] = [:]
  /// Of each relay's process, the last batch.
  var steps: [Int: [String: UInt64]] = [:]
  /// Bodies that it does not take.
  var rejects: (DocumentPlace, [UInt8]) -> Bool = { _, _ in false }

  mutating func append(
    _ batch: LedgerBatch, _ cuts: [ModelStore.Cut], by relay: Int
  ) -> Result<AppendOutcome, BackendProblem> {
    var next = self
    for run in batch.runs where !next.store.log.contains(run) {
      guard next.store.received(run.chain) == run.first - 1 else { return .failure(BackendProblem(.gap, "a gap")) }
      next.store.log.append(run)
    }
    for cut in cuts where !next.store.cuts.contains(cut) { next.store.cuts.append(cut) }
    let heads = Dictionary(batch.heads.map { ($0.chain, $0.highest) }) { first, _ in first }
    func isBehind(_ partition: PartitionID) -> Bool {
      batch.knownStatements != next.state.statements
        || next.store.chains.contains { $0.partition == partition && heads[$0] ?? 0 < next.store.received($0) }
    }
    guard batch.documentPosition.isEmpty || batch.documentPositionBefore == next.positions[relay] ?? "" else {
      return .failure(BackendProblem(.gap, "a position that does not go on from the one that is kept"))
    }
    if let step = batch.step {
      guard step.before == next.steps[relay]?[step.writer] ?? 0 else {
        return .failure(BackendProblem(.gap, "documents that do not go on from those that are there"))
      }
      next.steps[relay, default: [:]][step.writer] = step.number
    }
    var outcome = AppendOutcome()
    for (index, mark) in batch.marks.enumerated() {
      if let known = next.marks[mark.chain], known.judge != relay, known.position != mark.position,
        isBehind(mark.chain.partition)
      {
        outcome.staleMarks.append(index)
      } else if next.marks[mark.chain]?.position != mark.position {
        next.marks[mark.chain] = (mark.position, relay)
      }
    }
    for (index, document) in batch.documents.enumerated() {
      if document.isAlive, document.refusal == nil, rejects(document.place, document.state) {
        return .failure(BackendProblem(.rejected, "not this one"))
      }
      let known = next.documents[document.place]
      if let known, known.judge != relay, known.state != document.state, isBehind(document.place.partition) {
        outcome.staleDocuments.append(index)
      } else if known?.state != document.state || known?.refusal != document.refusal
        || known?.isUnsure == true && !isBehind(document.place.partition)
      {
        next.documents[document.place] = Row(
          state: document.state, refusal: document.refusal, judge: relay, isUnsure: isBehind(document.place.partition))
      }
    }
    let behind = Set(batch.ranges.map(\.partition).filter(isBehind))
    next.end(batch, by: relay, behind, &outcome)
    if !batch.documentPosition.isEmpty, outcome.staleDocuments.isEmpty, outcome.staleRanges.isEmpty {
      next.positions[relay] = batch.documentPosition
    }
    self = next
    return .success(outcome)
  }

  /// What lives in the batch's ranges, and is not in it, is gone.
  private mutating func end(
    _ batch: LedgerBatch, by relay: Int, _ behind: Set<PartitionID>, _ outcome: inout AppendOutcome
  ) {
    let sent = Set(batch.documents.map(\.place))
    for (index, range) in batch.ranges.enumerated() {
      for (place, row) in documents where !row.state.isEmpty && range.holds(place) && !sent.contains(place) {
        if row.judge != relay, behind.contains(range.partition) {
          outcome.staleRanges = Array(Set(outcome.staleRanges + [index]))
        } else {
          documents[place] = Row(state: [], refusal: nil, judge: relay, isUnsure: behind.contains(range.partition))
        }
      }
    }
  }

  private var state: LedgerSums {
    var state = LedgerSums()
    state.statements = ModelStore.sum(store.cuts.map(\.id))
    state.batches = steps.values.reduce(0) { $0 + $1.values.reduce(0, +) }
    return state
  }

  func start(of relay: Int, _ process: String) -> DocumentStart {
    var start = DocumentStart()
    (start.position, start.step, start.ledger) = (positions[relay] ?? "", steps[relay]?[process] ?? 0, state)
    start.deadLetters = documents.filter { $0.value.refusal != nil }.map {
      DeadLetter(place: $0.key, partition: nil, reason: $0.value.refusal ?? "")
    }
    return start
  }

  func news(of relay: Int, _ process: String) -> DocumentNews {
    var news = DocumentNews()
    (news.position, news.step, news.ledger) = (positions[relay] ?? "", steps[relay]?[process] ?? 0, state)
    news.unsure = documents.filter(\.value.isUnsure).map(\.key).sorted()
    return news
  }
}

extension LedgerBatch.DocumentRange {
  fileprivate func holds(_ place: DocumentPlace) -> Bool {
    place.partition == partition && (after.map { $0 < place.key } ?? true) && (through.map { place.key <= $0 } ?? true)
  }
}
