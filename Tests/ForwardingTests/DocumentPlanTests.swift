import Identity
import Replication
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh

@Suite(
  "Documents by their keys, in a real PostgreSQL", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct DocumentPlanTests {
  @Test("batches read no table from end to end, with plans as old as the connection")
  func plans() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    for round in 0..<4 {
      for index in 0..<4 { try relay.put("agency=G", "r\(index)", "round \(round)") }
      try relay.waitForLedger(server)
      try relay.waitForState(.caughtUp)
    }
    relay.stop()
    let statistics =
      "FROM pg_stat_user_tables WHERE schemaname = 'seamesh' AND relname IN ('documents', 'changes', 'runs')"
    // They come when a connection ends.
    let came = try waitUntil { try server.owner().number("SELECT min(n_tup_ins) \(statistics)") >= 4 }
    #expect(came)
    // The test's own questions after the ledger read `changes` alone.
    let read = "SELECT sum(seq_tup_read)::bigint \(statistics) AND relname <> 'changes'"
    #expect(try server.owner().number(read) == 0)
  }

  private let partition = PartitionID(Digest(words: (1, 2, 3, 4)))

  private func key(_ collection: Text, _ id: UInt8) -> DocumentKey { DocumentKey(collection: collection, id: [id]) }

  private func batch(
    _ keys: [DocumentKey], _ ranges: [(after: DocumentKey?, through: DocumentKey?)]
  ) throws -> LedgerBatch {
    var batch = LedgerBatch()
    batch.partitions[partition] = try PartitionName("agency=G")
    batch.documents = keys.map { key in
      var document = LedgerBatch.Document(DocumentPlace(partition: partition, key: key))
      (document.isAlive, document.generation, document.state) = (true, 1, [7])
      (document.id, document.body) = ("\"\(key.id.first ?? 0)\"", "{}")
      return document
    }
    batch.ranges = ranges.map { LedgerBatch.DocumentRange(partition: partition, after: $0.after, through: $0.through) }
    return batch
  }

  @Test("a range takes away what lives between its ends and is not in the batch, and nothing else")
  func ranges() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let backend = try PostgreSQLBackend(
      PostgreSQLAddress(url: server.relayURL()), fleet: relay.node.fleet,
      relay: DeviceID(Digest(words: (9, 9, 9, 9))), environment: [:])
    try backend.connect()
    func living() throws -> [String] {
      try server.owner().query(
        "SELECT collection || get_byte(id, 0) FROM seamesh.documents WHERE alive AND body IS NOT NULL ORDER BY 1"
      ).rows.map { PostgreSQLRows.text($0[0]) }
    }
    let all = (1...4).flatMap { [key("A", $0), key("b", $0)] }
    _ = try backend.append(batch(all, []))
    #expect(try living().count == 8)
    // Bytes are compared, so `b` comes behind `A`. Of ends the first is not in the range, and the last is.
    _ = try backend.append(batch([key("A", 3)], [(after: key("A", 1), through: key("b", 1))]))
    #expect(try living() == ["A1", "A3", "b2", "b3", "b4"])
    _ = try backend.append(batch([key("b", 4)], [(after: key("b", 2), through: nil)]))
    #expect(try living() == ["A1", "A3", "b2", "b4"])
    _ = try backend.append(batch([key("A", 2)], [(after: nil, through: key("A", 3))]))
    #expect(try living() == ["A2", "b2", "b4"])
    _ = try backend.append(batch([], [(after: nil, through: nil)]))
    #expect(try living().isEmpty)
  }
}
