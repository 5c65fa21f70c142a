import Identity
import Replication
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh

@Suite(
  "What a real PostgreSQL says of its documents", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct DocumentNewsTests {
  private let partition = PartitionID(Digest(words: (1, 2, 3, 4)))

  private let statement = Digest(words: (5, 5, 5, 5))

  private func place(_ id: UInt8) -> DocumentPlace {
    DocumentPlace(partition: partition, key: DocumentKey(collection: "c", id: [id]))
  }

  private func batch(_ ids: [UInt8], knowing statements: [Digest] = [], step: LedgerBatch.Step? = nil) throws
    -> LedgerBatch
  {
    var batch = LedgerBatch()
    batch.partitions[partition] = try PartitionName("agency=G")
    batch.documents = ids.map { id in
      var document = LedgerBatch.Document(place(id))
      (document.isAlive, document.generation, document.state) = (true, 1, [7])
      (document.id, document.body) = ("\"\(id)\"", "{}")
      return document
    }
    (batch.knownStatements, batch.step) = (StatementSum.of(statements, SHA256.hash), step)
    return batch
  }

  private func backend(_ server: TestPostgreSQL, _ fleet: FleetID, _ relay: UInt64) throws -> PostgreSQLBackend {
    let backend = try PostgreSQLBackend(
      PostgreSQLAddress(url: server.relayURL()), fleet: fleet, relay: DeviceID(Digest(words: (relay, 9, 9, 9))),
      environment: [:])
    try backend.connect()
    return backend
  }

  private func step(_ writer: String, _ number: UInt64, after before: UInt64) -> LedgerBatch.Step {
    LedgerBatch.Step(writer: writer, number: number, before: before)
  }

  @Test("a batch goes on from the one before it of its process, or is refused as one that leaves a gap")
  func steps() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let backend = try backend(server, relay.node.fleet, 1)
    _ = try backend.append(batch([1], step: step("p", 1, after: 0)))
    _ = try backend.append(batch([1, 2], step: step("p", 4, after: 1)))
    #expect(try backend.documentNews(of: "p").step == 4)
    // Of a process that took its place, and of one that takes it back.
    _ = try backend.append(batch([2], step: step("q", 1, after: 0)))
    #expect(try backend.documentNews(of: "q").step == 1)
    #expect(try backend.documentStart(of: "p").step == 4)
    // As it was after the first.
    _ = try server.owner().query("UPDATE seamesh.document_steps SET step = 1 WHERE process = 'p'")
    let problem = #expect(throws: BackendProblem.self) {
      try backend.append(batch([3], step: step("p", 5, after: 4)))
    }
    #expect(problem?.kind == .gap)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.documents") == 2)
    try backend.connect()
    _ = try backend.append(batch([3], step: step("p", 5, after: 1)))
    #expect(try backend.documentNews(of: "p").step == 5)
  }

  @Test("a document of a relay that lacks something is told to others, until one writes it that lacks nothing")
  func unsure() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let (knowing, lacking) = try (backend(server, relay.node.fleet, 1), backend(server, relay.node.fleet, 2))
    var first = try batch([1], knowing: [statement])
    first.statements = [LedgerBatch.Statement(id: statement, encoded: [1])]
    _ = try knowing.append(first)
    _ = try lacking.append(batch([1, 2, 3]))
    #expect(try knowing.documentNews(of: "p").unsure == [place(2), place(3)])
    // Its own as well: it may have learnt what it lacked.
    #expect(try lacking.documentNews(of: "p").unsure == [place(2), place(3)])
    // What is gone is so for certain then.
    var gone = try batch([2], knowing: [statement])
    gone.ranges = [
      LedgerBatch.DocumentRange(partition: partition, after: place(1).key, through: nil)
    ]
    _ = try knowing.append(gone)
    #expect(try knowing.documentNews(of: "p").unsure == [])
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.documents WHERE alive AND NOT unsure") == 2)
    #expect(try lacking.documentNews(of: "p").unsure == [])
  }

  @Test("who knows other statements than the ledger has, though as many, leaves another relay's document alone")
  func otherStatements() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let (knowing, lacking) = try (backend(server, relay.node.fleet, 1), backend(server, relay.node.fleet, 2))
    var first = try batch([1], knowing: [statement])
    first.statements = [LedgerBatch.Statement(id: statement, encoded: [1])]
    _ = try knowing.append(first)
    var older = try batch([1], knowing: [Digest(words: (6, 6, 6, 6))])
    older.documents[0].state = [8]
    #expect(try lacking.append(older).staleDocuments == [0])
    older.knownStatements = StatementSum.of([statement], SHA256.hash)
    #expect(try lacking.append(older).staleDocuments.isEmpty)
  }

  @Test("a ledger says which statements it has, by their ids in any order, and how many batches of all relays")
  func ledgerState() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let (a, b) = try (backend(server, relay.node.fleet, 1), backend(server, relay.node.fleet, 2))
    #expect(try a.documentStart(of: "p").ledger.statements == StatementSum.of([], SHA256.hash))
    let ids = [3, 1, .max, 1 << 63, 2].map { Digest(words: ($0, 7, 7, 7)) }
    var batch = try batch([], step: step("p", 3, after: 0))
    batch.statements = ids.map { LedgerBatch.Statement(id: $0, encoded: [1]) }
    _ = try a.append(batch)
    batch.step = step("q", 2, after: 0)
    _ = try b.append(batch)
    let state = try a.documentNews(of: "p").ledger
    #expect(state.statements == StatementSum.of(ids.reversed(), SHA256.hash) && state.batches == 5)
  }

  @Test("of statements that are there it says where they stand, and nothing of what they say")
  func heads() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let backend = try backend(server, relay.node.fleet, 1)
    let signer = StatementSigner(fleet: relay.node.fleet, key: SigningKey())
    let creation = try signer.sign(.room(Statement.Room(by: .zero)))
    let invitation = Statement.Body.invitation(Statement.Invitation(by: .zero, user: "ann", seen: []))
    var said = [creation]
    for _ in 0..<30 { said.append(try signer.sign(invitation, after: said.last, scope: creation.scope)) }
    let garbage: [[UInt8]] = [
      [], [0x89], [0x89, 1, 0x5b, 0xff], Array(repeating: 0x7b, count: 400), [0x89, 0x98, 0xff],
    ]
    var batch = try batch([])
    batch.statements =
      said.map { LedgerBatch.Statement(id: $0.id, encoded: $0.encoded) }
      + garbage.enumerated().map { LedgerBatch.Statement(id: Digest(words: (UInt64($0), 0, 0, 0)), encoded: $1) }
    _ = try backend.append(batch)
    let asked = batch.statements.map(\.id) + [Digest(words: (99, 0, 0, 0))]
    let heads = try Dictionary(uniqueKeysWithValues: backend.statementHeads(of: asked).map { ($0.id, $0.head) })
    #expect(heads.count == batch.statements.count)
    for statement in said {
      let head = try #require(heads[statement.id])
      let place = StatementPlace(
        issuer: statement.issuer, scope: statement.scope, sequence: statement.sequence, id: statement.id)
      #expect(try StatementCodec.place(of: statement.id, encoded: head[...]) == place)
      #expect(statement.encoded.starts(with: head))
      #expect(throws: StatementError.self) {
        try StatementCodec.place(of: statement.id, encoded: head.dropLast()[...])
      }
    }
    #expect((0..<garbage.count).allSatisfy { heads[Digest(words: (UInt64($0), 0, 0, 0))] == [] })
  }

  @Test("of many that are unsure each answer has some, by turns")
  func turns() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let backend = try backend(server, relay.node.fleet, 1)
    let count = DocumentNews.limit + 3
    _ = try server.owner().query(
      """
      INSERT INTO seamesh.documents (partition, collection, id, alive, generation, state, judge, unsure)
      SELECT decode(repeat('07', 32), 'hex'), 'c', decode(lpad(to_hex(n), 8, '0'), 'hex'), true, 1, '', '\\x01', true
      FROM generate_series(1, \(count)) n
      """)
    let turns = try (0..<3).map { _ in try backend.documentNews(of: "p").unsure }
    #expect(turns.map(\.count) == [DocumentNews.limit, 3, DocumentNews.limit])
    #expect(Set(turns[0] + turns[1]).count == count && turns[2] == turns[0])
  }
}
