import Foundation
import Replication
import Synchronization
import TestSupport
import Testing

@testable import Forwarding

@Suite("The forwarder's thread")
struct ForwardingServiceTests {
  @Test("news that comes while somebody asks to send now is not lost", .timeLimit(.minutes(1)))
  func newsBesideSendNow() throws {
    let log = try HeldLog(changes: 3, counting: 1)
    let service = ForwardingService(source: log, backend: log.ledger)
    try service.start()
    defer { service.stop() }
    try #require(waitUntil { log.ledger.mark.withLock { $0?.sequence } == 1 })
    try log.count(3)
    let vectors = try log.accepted().vectors
    let isTold = Mutex(false)
    log.nextNews.withLock {
      $0 = {
        let isFirst = isTold.withLock { told in
          defer { told = true }
          return !told
        }
        guard isFirst else { return .nothing }
        service.sendNow()
        return .moved(vectors, at: "")
      }
    }
    #expect(waitUntil { log.ledger.mark.withLock { $0?.sequence } == 3 })
  }
}
