import Foundation
import Replication
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Forwarding

@Suite("Pages are read ahead")
struct ReadingAheadTests {
  @Test(
    "while a batch of a backlog is on its way the next page is read, and sent as it was read", .timeLimit(.minutes(1)))
  func overlaps() throws {
    let source = CountingSource(try HeldLog(changes: 30, counting: 30))
    let backend = WaitingBackend(source)
    var limits = ForwarderLimits()
    limits.batchChanges = 5
    let service = ForwardingService(source: source, backend: backend, limits: limits)
    try service.start()
    defer { service.stop() }
    // Who asks how it does reads the log as well, so nobody does before the backlog is in.
    try #require(waitUntil { backend.batches.withLock { $0.contains { $0.batch.runs.last?.last == 30 } } })
    try #require(waitUntil { service.report.state == .caughtUp })
    let batches = backend.batches.withLock { $0 }
    #expect(batches.flatMap { $0.batch.runs.map(\.last) } == Array(1...30).map(UInt64.init))
    #expect(batches.filter { $0.batch.runs.count == 5 }.count >= 5)
    // Behind the last that is of the backlog nothing is known to be left.
    #expect(batches.prefix(5).allSatisfy { $0.wasReadMeanwhile })
  }

  @Test("what was read for a batch that did not get in is not sent", .timeLimit(.minutes(1)))
  func refused() throws {
    let source = CountingSource(try HeldLog(changes: 30, counting: 30))
    let backend = WaitingBackend(source)
    backend.rejected.withLock { $0 = 12 }
    var limits = ForwarderLimits()
    limits.batchChanges = 5
    let service = ForwardingService(source: source, backend: backend, limits: limits)
    try service.start()
    defer { service.stop() }
    try #require(waitUntil { service.report.state == .lagging && service.report.aside.count == 1 })
    try #require(waitUntil { service.report.lag.changes == 19 })
    #expect(backend.batches.withLock { $0 }.flatMap { $0.batch.runs.map(\.last) } == Array(1...11).map(UInt64.init))
  }
}

/// Counts how often a log was read by another thread than the forwarder's: ahead, where nobody asks how it does.
private final class CountingSource: HeldLogSource {
  let log: HeldLog
  let reads = Mutex(0)
  /// The thread that calls the backend.
  let forwarder = Mutex(pthread_self())

  init(_ log: HeldLog) { self.log = log }

  func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result {
    defer { if forwarder.withLock({ $0 }) != pthread_self() { reads.withLock { $0 += 1 } } }
    return try log.read(body)
  }
  func readIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? { try log.read(body) }
  var wallMilliseconds: Int64 { 0 }
}

/// Answers a batch once its relay has read on, or after a second.
private final class WaitingBackend: Backend, @unchecked Sendable {
  struct Taken {
    let batch: LedgerBatch
    let wasReadMeanwhile: Bool
  }

  private let source: CountingSource
  let batches = Mutex<[Taken]>([])
  /// The number of a change that it refuses.
  let rejected = Mutex<UInt64>(0)
  private let kept = Mutex(DocumentNews())
  private let appended = Mutex(0)

  init(_ source: CountingSource) { self.source = source }

  var name: String { "waiting" }
  var ledgerID: String { "one" }
  func connect() { source.forwarder.withLock { $0 = pthread_self() } }
  func disconnect() {}
  func interrupt() {}
  func statementIDs() -> Set<Digest> { [] }
  func statementHeads(of ids: [Digest]) -> [(id: Digest, head: [UInt8])] { [] }

  func answers(to questions: [ChainQuestion]) -> [ChainAnswer] {
    let last = batches.withLock { $0 }.flatMap(\.batch.runs).last
    return questions.map { question in
      var answer = ChainAnswer()
      answer.highest = last?.last ?? 0
      answer.hashes = last.map { [$0.hash] } ?? []
      answer.hasChange = question.hash == last?.hash
      return answer
    }
  }

  func documentStart(of process: String) -> DocumentStart {
    var start = DocumentStart()
    (start.step, start.position) = kept.withLock { ($0.step, $0.position) }
    return start
  }

  func documentNews(of process: String) -> DocumentNews { kept.withLock { $0 } }

  func append(_ batch: LedgerBatch) throws(BackendProblem) -> AppendOutcome {
    // The page may have been read before the batch was on its way at all.
    let number = appended.withLock { appended in
      appended += 1
      return appended
    }
    let wasRead = waitUntil(within: 1) { source.reads.withLock { $0 } >= number }
    let refused = rejected.withLock { $0 }
    if batch.runs.contains(where: { ($0.first...$0.last).contains(refused) }) {
      throw BackendProblem(.rejected, "not this one")
    }
    batches.withLock { $0.append(Taken(batch: batch, wasReadMeanwhile: wasRead)) }
    kept.withLock { kept in
      kept.step = batch.step?.number ?? kept.step
      if !batch.documentPosition.isEmpty { kept.position = batch.documentPosition }
    }
    return AppendOutcome()
  }
}
