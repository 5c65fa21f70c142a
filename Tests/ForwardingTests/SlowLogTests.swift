import Dispatch
import Replication
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Forwarding

/// Who asks how a forwarder does, as `status` and `doctor` do, while the node's disk does not answer.
@Suite("A log that does not answer")
struct SlowLogTests {
  @Test(
    "is not waited for, and how long changes have waited is shown once it has said so", .timeLimit(.minutes(1)))
  func report() throws {
    let source = StuckSource(try HeldLog(changes: 3, counting: 3, arrived: 1_000))
    let service = ForwardingService(source: source, backend: NoBackend())
    try service.start()
    defer { service.stop() }
    let isAnswered = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      #expect(waitUntil { service.report.lag.changes == 3 })
      for _ in 0..<5 { #expect(service.report.lag.changes == 3 && service.report.lagMilliseconds == 0) }
      isAnswered.signal()
    }
    let isInTime = isAnswered.wait(timeout: .now() + .seconds(20)) == .success
    // Those who asked in vain did not each look once more.
    #expect(source.looks.withLock { $0 } == 1)
    source.letGo()
    #expect(isInTime)
    #expect(waitUntil { service.report.lagMilliseconds == StuckSource.now - 1_000 })
  }
}

/// A node's log, of which whoever asks beside the forwarder hears nothing until it is let go.
private final class StuckSource: HeldLogSource {
  static let now: Int64 = 61_000

  let log: HeldLog
  private let gate = DispatchSemaphore(value: 0)
  let looks = Mutex(0)

  init(_ log: HeldLog) { self.log = log }

  func letGo() { gate.signal() }

  func readIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? {
    looks.withLock { $0 += 1 }
    gate.wait()
    gate.signal()
    return try log.read(body)
  }

  func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result { try log.read(body) }
  var wallMilliseconds: Int64 { StuckSource.now }
}

/// Cannot be reached.
private final class NoBackend: Backend {
  var name: String { "nowhere" }
  var ledgerID: String { "none" }
  func connect() throws(BackendProblem) { throw BackendProblem(.noRoute, "nobody is there") }
  func disconnect() {}
  func interrupt() {}
  func statementIDs() -> Set<Digest> { [] }
  func statementHeads(of ids: [Digest]) -> [(id: Digest, head: [UInt8])] { [] }
  func answers(to questions: [ChainQuestion]) -> [ChainAnswer] { [] }
  func documentStart(of process: String) -> DocumentStart { DocumentStart() }
  func documentNews(of process: String) -> DocumentNews { DocumentNews() }
  func append(_ batch: LedgerBatch) -> AppendOutcome { AppendOutcome() }
}
