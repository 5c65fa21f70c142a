import Foundation
import Replication
import Synchronization
import TestSupport
import Testing
import Transport

@testable import Seamesh

@Suite(.serialized) struct StopTests {
  @Test("who asks a node at the moment of its stop is answered, and waits for nobody who has gone")
  func askedTooLate() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    // The engine's stop without the caller's part in it: as when that comes between the caller's look and its request.
    node.engine.inbox.put(.stop)
    let partition = try PartitionName("room=1")
    let answers = Mutex(0)
    for _ in 0..<100 {
      Thread.detachNewThread {
        _ = try? node.put(partition, "c", "a", body(["n": .int(1)]))
        _ = try? node.peers()
        answers.withLock { $0 += 1 }
      }
    }
    try eventually(within: 10, "all are answered") { answers.withLock { $0 } == 100 }
  }

  @Test("of a node that was stopped and let go nothing stays: no connections' descriptors, no thread of its log")
  func letGo() throws {
    weak var transport: SecureTransport?
    weak var log: NodeLog?
    do {
      let fleet = try TestFleet(2)
      (log, transport) = (fleet.nodes[0].log, fleet.nodes[0].gauges.transport)
      try eventually(within: 10, "both are linked") {
        try fleet.nodes.allSatisfy { try $0.peers().contains { $0.state == .connected } }
      }
      #expect(log != nil && transport != nil)
    }
    try eventually(within: 10, "they are gone") { log == nil && transport == nil }
  }
}
