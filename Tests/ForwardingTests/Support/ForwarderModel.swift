import Replication
import TestSupport

@testable import Forwarding

/// A log, a ledger and the way between them, all in memory, with whatever can go wrong on it drawn from a seed.
struct ForwarderModel {
  var forwarder: Forwarder
  var random: SplitMix64
  var now = MonotonicTime(milliseconds: 1)
  /// In the order of arrival.
  var log: [LedgerBatch.Run] = []
  /// Runs of the ledger: each once, since a second one is not taken.
  var ledger: [LedgerBatch.Run] = []
  var marks: [ChainKey: ChainPosition] = [:]
  /// Of 100 calls so many fail before they take effect, and as many after it.
  var failuresOf100 = 0
  /// What the backend never takes.
  var rejects: (LedgerBatch.Run) -> Bool = { _ in false }
  /// Of changes as of marks, those of one batch for which the backend has the time.
  var takesAtOnce = Int.max
  /// Marks that another relay set, who knows more.
  var keeps: (LedgerBatch.Mark) -> Bool = { _ in false }
  private(set) var asked: [String] = []
  /// So many calls are a forwarder that does not come to rest.
  static let callLimit = 20_000
  private(set) var largestBatch = 0
  private(set) var batches: [LedgerBatch] = []
  private(set) var readBacks: [ReadBackRequest] = []
  private var lastRead: [ChainKey: UInt64] = [:]

  init(seed: UInt64, limits: ForwarderLimits = ForwarderLimits()) {
    (forwarder, random) = (Forwarder(limits: limits), SplitMix64(seed: seed))
  }

  static func chain(_ number: UInt64) -> ChainKey {
    ChainKey(
      partition: PartitionID(Digest(words: (number % 3, 0, 0, 1))), replica: ReplicaID(high: number, low: 7))
  }

  static let names: [PartitionName] = ["p=0", "p=1", "p=2"].compactMap { try? PartitionName($0) }

  static func name(of partition: PartitionID) -> PartitionName {
    names.enumerated().first { chain(UInt64($0.offset)).partition == partition }?.element ?? names[0]
  }

  mutating func write(chain number: UInt64, changes: Int = 1) {
    let key = ForwarderModel.chain(number)
    let first = (log.last { $0.chain == key }?.last ?? 0) + 1
    let all = (0..<UInt64(changes)).map { offset in
      LedgerBatch.Change(
        hash: Digest(words: (number, first + offset, 0, 0)), timestamp: .zero, wallMilliseconds: 0, payloadByteCount: 1)
    }
    log.append(
      LedgerBatch.Run(
        chain: key, first: first, last: first + UInt64(changes) - 1, hashBefore: .zero, hash: all[changes - 1].hash,
        context: [], body: [UInt8](repeating: 1, count: 10 * changes), changes: all))
  }

  var accepted: [PartitionID: VersionVector] {
    var vectors: [PartitionID: VersionVector] = [:]
    for run in log {
      vectors[run.chain.partition, default: VersionVector()][run.chain.replica] = ChainPosition(
        sequence: run.last, tip: run.hash.tip)
    }
    return vectors
  }

  /// Hands in one event and carries out all that follows, until it waits.
  mutating func tell(_ event: Forwarder.Event) {
    var events = [event]
    while !events.isEmpty, asked.count < ForwarderModel.callLimit {
      for directive in forwarder.handle(events.removeFirst(), now: now, random: &random) {
        if let outcome = perform(directive) { events.append(outcome) }
      }
    }
  }

  /// To the next moment that it waits for.
  mutating func wait() {
    now = max(now, forwarder.nextWake ?? now)
    tell(.timer)
  }

  private mutating func perform(_ directive: Forwarder.Directive) -> Forwarder.Event? {
    switch directive {
    case .disconnect: return nil
    case .connect:
      asked.append("connect")
      return fails() ? .failed(BackendProblem(.noRoute, "no way")) : .connected
    case .readLedger:
      asked.append("read")
      lastRead = [:]
      return fails() ? .failed(BackendProblem(.refused, "lost")) : .ledgerRead(reading())
    case .load(let request): return .loaded(page(request))
    case .commit(let batch):
      asked.append("commit")
      return commit(batch)
    case .readBack(let request):
      readBacks.append(request)
      guard !fails() else { return .failed(BackendProblem(.refused, "lost")) }
      let highest = Dictionary(ledger.map { ($0.chain, $0.last) }) { max($0, $1) }
      defer { lastRead = highest }
      return .readBack(readBack(request, highest))
    }
  }

  private func readBack(_ request: ReadBackRequest, _ highest: [ChainKey: UInt64]) -> ReadBackOutcome {
    var outcome = ReadBackOutcome(wentBack: lastRead.contains { $0.value > highest[$0.key] ?? 0 })
    for chain in Set(log.lazy.map(\.chain)) { outcome.marks[chain] = .some(marks[chain]) }
    if request == .everything { outcome.accepted = accepted }
    return outcome
  }

  private mutating func fails() -> Bool { Int.random(in: 0..<100, using: &random) < failuresOf100 }

  private mutating func commit(_ batch: LedgerBatch) -> Forwarder.Event {
    if fails() { return .failed(BackendProblem(.refused, "lost before")) }
    if max(Int(batch.amount.changes), batch.marks.count) > takesAtOnce {
      return .failed(BackendProblem(.refused, "that takes too long", isLackOfTime: true))
    }
    if batch.runs.contains(where: rejects) { return .failed(BackendProblem(.rejected, "not this one")) }
    for run in batch.runs where !ledger.contains(run) {
      guard run.first == 1 || ledger.contains(where: { $0.chain == run.chain && $0.last == run.first - 1 }) else {
        return .failed(BackendProblem(.gap, "a gap", isOfRow: true))
      }
      ledger.append(run)
    }
    var outcome = AppendOutcome()
    for (index, mark) in batch.marks.enumerated() {
      if keeps(mark) { outcome.staleMarks.append(index) } else { marks[mark.chain] = mark.position }
    }
    largestBatch = max(largestBatch, batch.runs.count)
    batches.append(batch)
    return fails() ? .failed(BackendProblem(.refused, "lost after")) : .committed(outcome)
  }

  private func reading() -> Forwarder.LedgerReading {
    var view = LedgerView()
    for run in ledger {
      view.reached[run.chain] = max(view.reached[run.chain] ?? 0, run.last)
      view.highest[run.chain] = view.reached[run.chain]
    }
    (view.marks, view.readAt) = (marks, Int64(log.count))
    view.amount = amount(of: ledger)
    return Forwarder.LedgerReading(view: view, runsAfter: 0, accepted: accepted, held: amount(of: log))
  }

  private func amount(of runs: [LedgerBatch.Run]) -> LogAmount {
    runs.reduce(into: LogAmount()) { $0 += LogAmount(changes: Int64($1.changes.count), bytes: Int64($1.body.count)) }
  }

  private func page(_ request: Forwarder.LoadRequest) -> Forwarder.Page {
    var page = Forwarder.Page()
    page.held = amount(of: log)
    page.runsEnd = request.runsAfter
    guard !request.isForAuthority else { return page }
    page.isEnd = true
    func isMeant(_ partition: PartitionID) -> Bool { request.filter?.holds(ForwarderModel.name(of: partition)) ?? true }
    for (index, run) in log.enumerated().dropFirst(Int(request.runsAfter)) {
      guard page.batch.amount.changes < request.changes, page.batch.amount.bytes < request.bytes else {
        page.isEnd = false
        break
      }
      page.runsEnd = Int64(index + 1)
      guard isMeant(run.chain.partition) else { continue }
      if request.view.lacks(run.chain, through: run.last, arrival: Int64(index + 1)) { page.batch.runs.append(run) }
    }
    guard page.isEnd else { return page }
    for (partition, vector) in request.unmarked where isMeant(partition) {
      for (replica, position) in vector.sorted {
        let chain = ChainKey(partition: partition, replica: replica)
        guard request.view.marks[chain] != position, request.view.left[chain] != position,
          request.view.aside[chain] == nil
        else { continue }
        guard page.batch.marks.count < request.marks else { return page }
        page.batch.marks.append(LedgerBatch.Mark(chain: chain, position: position))
      }
      page.marked[partition] = vector
    }
    return page
  }
}
