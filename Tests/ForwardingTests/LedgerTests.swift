import Engine
import Foundation
import Identity
import Replication
import TestSupport
import Testing
import Transport
import Wire

@testable import Forwarding
@testable import Seamesh
@testable import Storage

@Suite("The ledger in a real PostgreSQL", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct LedgerTests {
  @Test("what a node holds stands in the ledger byte for byte: statements, runs with contexts, large payloads, changes")
  func ledgerIsTheLog() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for index in 0..<40 { try relay.put("agency=\(index % 3)", "r\(index)") }
    try relay.put("agency=0", "large", String(repeating: "a long report ", count: 5_000))
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    // And what comes later.
    for index in 0..<20 { try relay.put("agency=\(index % 4)", "later\(index)") }
    try relay.waitForLedger(server)
    try expectLedger(server, equals: relay.node)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.payloads") == 1)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.marked_changes WHERE NOT accepted") == 0)
  }

  @Test("both branches of a fork stay in the ledger, and one of them is marked")
  func fork() throws {
    let server = try TestPostgreSQL()
    let relay = try ForwardingNode()
    try relay.setUp(server)
    try relay.node.subscribe("agency=*")
    try relay.forward(to: server.relayURL())
    let (original, copy) = try relay.clonedMember()
    defer { for path in [original, copy] { try? FileManager.default.removeItem(atPath: path) } }
    for (path, name) in [(original, "first"), (copy, "second")] {
      let alone = try ForwardingNode(directory: path)
      for index in 0..<3 { try alone.put("agency=G", "\(name)\(index)") }
      alone.stop()
      let meeting = try ForwardingNode(directory: path, peers: [relay.address])
      let partition = try PartitionName("agency=G")
      let came = try waitUntil { try relay.node.read(partition, "reports", id: .string(Text("\(name)2"))) != nil }
      #expect(came)
      meeting.stop()
    }
    try relay.waitForLedger(server)
    let connection = try server.owner()
    let twice =
      "SELECT count(*) FROM (SELECT FROM seamesh.changes GROUP BY partition, replica, sequence HAVING count(*) > 1) t"
    #expect(try connection.number(twice) >= 1)
    #expect(try connection.number("SELECT count(*) FROM seamesh.forks") == 1)
    try expectLedger(server, equals: relay.node)
    try expectMarks(server, equal: relay.node)
  }

  @Test("a server killed in the middle of commits, again and again, has each change once in the end")
  func killedServer() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    var (random, written) = (SplitMix64(seed: 8), 0)
    for _ in 0..<5 {
      for _ in 0..<Int.random(in: 20...60, using: &random) {
        try relay.put("agency=\(written % 2)", "r\(written)")
        written += 1
      }
      server.stop(SIGKILL)
      try relay.put("agency=0", "r\(written)")
      written += 1
      try server.start()
      relay.forwarding?.sendNow()
    }
    _ = waitUntil(within: 5) { relay.forwarding?.status.state == .caughtUp }
    relay.forwarding?.sendNow()
    try relay.waitForLedger(server)
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.changes") == Int64(written))
    try expectLedger(server, equals: relay.node)
  }

  @Test("a relay that starts again goes on from what the ledger has")
  func restart() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    for index in 0..<30 { try relay.put("agency=\(index % 2)", "r\(index)") }
    try relay.waitForLedger(server)
    try relay.restart()
    for index in 0..<5 { try relay.put("agency=0", "again\(index)") }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(relay.forwarding?.status.forwardedChanges == 5)
    try expectLedger(server, equals: relay.node)
  }

  @Test(
    "in the middle of a backlog the ledger is a beginning of the log, in its order, and what it has of it is marked")
  func backlog() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for index in 0..<300 { try relay.put("agency=\(index % 3)", "r\(index)") }
    let connection = try server.owner()
    // The database refuses the rest of one chain, so that what came before stays to be seen.
    try connection.script(
      "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF (SELECT count(*) FROM seamesh.changes) >= 120 "
        + "THEN RAISE EXCEPTION 'enough' USING ERRCODE = '53000'; END IF; RETURN new; END $$;"
        + "CREATE TRIGGER stop BEFORE INSERT ON seamesh.changes FOR EACH STATEMENT EXECUTE FUNCTION stop()")
    var limits = ForwarderLimits()
    limits.batchChanges = 20
    try relay.forward(to: server.relayURL(), limits: limits)
    try relay.waitForState(.refused)
    #expect(try connection.number("SELECT count(*) FROM seamesh.changes") == 120)
    #expect(try connection.number("SELECT count(*) FROM seamesh.marked_changes WHERE accepted") == 120)
    let expected = try relay.node.readStore { store in
      try store.runs(cameAfter: 0, within: ArrivalLimits(bytes: .max, changes: 120)) { _, _, _, _ in true }
        .runs.map(\.run.body)
    }
    let there = try connection.query("SELECT body FROM seamesh.runs").rows.compactMap { $0[0] }
    #expect(Set(there) == Set(expected))
    try connection.script("DROP TRIGGER stop ON seamesh.changes")
    try relay.node.sendForwardingNow()
    try relay.waitForLedger(server)
    try expectLedger(server, equals: relay.node)
  }

  @Test("two relays of one fleet forward at once while one is stopped again and again: each change is there once")
  func twoRelays() throws {
    let (server, first) = try (TestPostgreSQL(), ForwardingNode())
    try first.setUp(server)
    try first.node.subscribe("agency=*")
    let path = NSTemporaryDirectory() + "seamesh-relay-" + String(UUID().uuidString.prefix(8))
    defer { try? FileManager.default.removeItem(atPath: path) }
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let code = try first.node.invite(InviteRequest(user: "bob@test.example", role: "officer", profile: ValueMap()))
    _ = try NodeSetup.join(path, code: code.code, label: "other", peers: [first.address], usesDiscovery: false)
    let second = try ForwardingNode(directory: path, peers: [first.address])
    defer { second.stop() }
    try second.node.subscribe("agency=*")
    try first.forward(to: server.relayURL())
    for round in 0..<6 {
      try second.forward(to: server.relayURL())
      for index in 0..<25 {
        try first.put("agency=G", "a\(round)-\(index)")
        try second.put("agency=G", "b\(round)-\(index)")
      }
    }
    let both = try waitUntil { try [first, second].allSatisfy { try $0.node.status().changes == 300 } }
    #expect(both)
    try first.waitForLedger(server)
    try second.waitForLedger(server)
    try expectLedger(server, equals: first.node)
    // A relay that lacked something when it sent its marks sends them again once it has it.
    let connection = try server.owner()
    let marked = try waitUntil(within: 40) {
      try connection.number("SELECT count(*) FROM seamesh.marked_changes WHERE accepted") == 300
    }
    #expect(marked)
    try expectMarks(server, equal: first.node)
  }

  @Test("a ledger that was put back from an older copy is filled again, and that is told")
  func restored() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    for index in 0..<10 { try relay.put("agency=G", "r\(index)") }
    try relay.waitForLedger(server)
    // As an older copy has it.
    try server.owner().script("DELETE FROM seamesh.changes WHERE sequence > 4; DELETE FROM seamesh.runs WHERE last > 4")
    try relay.put("agency=G", "next")
    // The ledger says that something is missing, and is asked anew.
    let noticed = waitUntil { relay.forwarding?.status.lostChanges == 6 }
    #expect(noticed)
    try relay.waitForLedger(server)
    try expectLedger(server, equals: relay.node)
    let finding = try relay.node.doctor().first { $0.code == "forward-restored" }
    #expect(finding?.message.contains("6 changes") == true)
  }

  @Test("a ledger that was put back while the relay was stopped is told of at its next start; a new ledger is not")
  func restoredMeanwhile() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for index in 0..<10 { try relay.put("agency=G", "r\(index)") }
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    try relay.restart()
    try relay.put("agency=G", "meanwhile")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(relay.forwarding?.status.lostChanges == 0)
    try relay.restart()
    try server.owner().script("DELETE FROM seamesh.changes WHERE sequence > 4; DELETE FROM seamesh.runs WHERE last > 4")
    try relay.put("agency=G", "next")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(relay.forwarding?.status.lostChanges == 7)
    #expect(try relay.node.doctor().contains { $0.code == "forward-restored" && $0.message.contains("7 changes") })
    try expectLedger(server, equals: relay.node)
    // One that was made anew has lost nothing.
    try relay.restart()
    try server.owner().script("DROP SCHEMA seamesh CASCADE; DROP SCHEMA seamesh_views CASCADE")
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    #expect(relay.forwarding?.status.lostChanges == 0)
  }

  @Test("statements that come without any change are forwarded at once")
  func statementsAlone() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let member = try relay.member()
    defer { member.remove() }
    try relay.put("agency=G", "r")
    var limits = ForwarderLimits()
    limits.lookMilliseconds = 3_600_000
    try relay.forward(to: server.relayURL(), limits: limits)
    try relay.waitForLedger(server)
    let connection = try server.owner()
    let before = try connection.number("SELECT count(*) FROM seamesh.statements")
    _ = try relay.node.change(RightsChange(.promote(device: "vessel")))
    let came = try waitUntil(within: 20) {
      try connection.number("SELECT count(*) FROM seamesh.statements") > before
    }
    #expect(came)
  }

  @Test("a run that the tables refuse is put aside with its chain, the others arrive, and it goes in once it may")
  func refusedRow() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let connection = try server.owner()
    try relay.put("agency=A", "first")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    try connection.script("ALTER TABLE seamesh.changes ADD CONSTRAINT small CHECK (payload_bytes < 1000)")
    try relay.put("agency=A", "tooLarge", String(repeating: "x", count: 2_000))
    for index in 0..<10 { try relay.put("agency=B", "b\(index)") }
    let came = try waitUntil { try connection.number("SELECT count(*) FROM seamesh.changes") == 11 }
    #expect(came)
    let told = waitUntil { relay.forwarding?.status.putAside == 1 && relay.forwarding?.status.lagChanges == 1 }
    #expect(told)
    #expect(relay.forwarding?.status.state == .lagging)
    #expect(try relay.node.doctor().contains { $0.code == "forward-put-aside" && $0.message.contains("small") })
    let refused = try relay.node.refusedRuns()
    #expect(refused.map(\.partition) == ["agency=A"] && refused.map(\.first) == [2] && refused.map(\.last) == [2])
    #expect(
      refused.first?.replica == (try relay.node.status().replica) && refused.first?.reason.contains("small") == true)
    let interface = try LocalAPIServer(relay)
    defer { interface.stop() }
    func listed() throws -> CommandResult {
      try runCommand(["forward", "--dead-letters", "--forward=\(server.relayURL())"], in: relay.directory)
    }
    let list = try listed()
    #expect(list.status == 0 && list.output.hasPrefix("agency=A ") && list.output.contains(" change 2: "), "\(list)")
    #expect(
      list.output.contains("small") && list.output.split(separator: "\n").count == 1 && list.error.isEmpty, "\(list)")
    // What is in no ledger keeps the store from being wiped, and nothing else does.
    let lost = try waitUntil { try relay.node.safeToWipe(WipeRules(), asking: false).lostChanges == 1 }
    #expect(lost)
    let wipe = try runCommand(["safe-to-wipe"], in: relay.directory)
    #expect(wipe.status == 1 && wipe.output.contains("not safe: 1 change of agency=A"), "\(wipe)")
    try connection.script("ALTER TABLE seamesh.changes DROP CONSTRAINT small")
    _ = try runCommand(["forward", "--now"], in: relay.directory)
    try relay.waitForLedger(server)
    try expectLedger(server, equals: relay.node)
    #expect(try relay.node.refusedRuns().isEmpty && listed().output.contains("refuses no changes"))
    let isSafe = try waitUntil { try relay.node.safeToWipe(WipeRules(), asking: false).isSafe }
    #expect(isSafe)
  }

  @Test("a statement that the tables refuse is listed by the node and by the command, and goes in once it may")
  func refusedStatement() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let connection = try server.owner()
    try relay.put("agency=A", "first")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let held = try connection.number("SELECT count(*) FROM seamesh.statements")
    try connection.script("ALTER TABLE seamesh.statements ADD CONSTRAINT few CHECK (id IS NULL) NOT VALID")
    let outcome = try relay.node.change(RightsChange(.grant(who: "everyone", level: "read", pattern: "agency=*")))
    #expect(outcome.isSigned)
    try relay.put("agency=A", "second")
    let told = waitUntil { relay.forwarding?.status.putAside ?? 0 > 0 && relay.forwarding?.status.state == .lagging }
    #expect(told, "\(String(describing: relay.forwarding?.status))")
    // What does not need it goes on.
    let came = try waitUntil { try connection.number("SELECT count(*) FROM seamesh.changes") == 2 }
    #expect(came)
    let refused = try relay.node.refusedStatements()
    #expect(refused.count == Int(relay.forwarding?.status.putAside ?? 0))
    let first = try #require(refused.first)
    #expect(first.reason.contains("few") && first.number > 1 && first.room.isEmpty && first.id.count == 64)
    #expect(first.issuer == hexadecimal(relay.node.device.digest.bytes))
    #expect(try relay.node.refusedRuns().isEmpty)
    #expect(try relay.node.doctor().contains { $0.code == "forward-put-aside" && $0.message.contains("few") })
    let interface = try LocalAPIServer(relay)
    defer { interface.stop() }
    func listed(_ options: String...) throws -> CommandResult {
      try runCommand(["forward", "--dead-letters", "--forward=\(server.relayURL())"] + options, in: relay.directory)
    }
    let list = try listed()
    #expect(
      list.status == 0 && list.output.contains("fleet statement \(first.number) of device \(first.issuer)"), "\(list)")
    #expect(list.output.contains(first.id) && list.output.contains("few") && list.error.isEmpty, "\(list)")
    let json = try listed("--json")
    #expect(json.output.contains(#""kind":"statement""#) && json.output.contains(first.id), "\(json)")
    // By the verb, not before.
    try connection.script("ALTER TABLE seamesh.statements DROP CONSTRAINT few")
    #expect(try connection.number("SELECT count(*) FROM seamesh.statements") == held)
    _ = try runCommand(["forward", "--now"], in: relay.directory)
    try relay.waitForState(.caughtUp)
    #expect(try connection.number("SELECT count(*) FROM seamesh.statements") == held + Int64(refused.count))
    #expect(try relay.node.refusedStatements().isEmpty && listed().output.contains("and no statements"))
  }

  @Test("an error without words of its own reaches nobody as Swift prints it")
  func unforeseen() {
    struct Unforeseen: Error { let secret = 7 }
    let problem = BackendProblem(unreadableLog: Unforeseen())
    #expect(problem.sentence == "the log cannot be read: something failed that should not")
  }

  @Test("the role that forwards may call its functions, and neither read, change nor delete any table")
  func leastRights() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    try relay.put("agency=G", "r")
    try relay.waitForLedger(server)
    let connection = try PostgreSQLConnection(
      PostgreSQLAddress(url: server.relayURL()), environment: [:], stop: StopPipe())
    for sql in [
      "SELECT * FROM seamesh.runs", "DELETE FROM seamesh.changes", "UPDATE seamesh.accepted SET sequence = 0",
      "INSERT INTO seamesh.partitions VALUES ('a', 'b')", "TRUNCATE seamesh.statements",
      "CREATE TABLE seamesh.mine (a int)",
      "SELECT * FROM seamesh.marked_changes", "SELECT * FROM seamesh.documents",
      "UPDATE seamesh.documents SET body = NULL", "SELECT * FROM seamesh.document_positions",
    ] {
      #expect(throws: BackendProblem.self, "\(sql)") { _ = try connection.query(sql) }
    }
  }

  // MARK: Comparing

  func expectLedger(
    _ server: TestPostgreSQL, equals node: Node, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let connection = try server.owner()
    var runs: [Digest: (context: VersionVector, body: [UInt8])] = [:]
    var hashes: Set<Digest> = []
    try node.readStore { store in
      let all = try store.runs(cameAfter: 0, within: ArrivalLimits(bytes: .max, changes: .max)) { _, _, _, _ in true }
      for arrived in all.runs {
        let run = try RunCodec.decode(
          arrived.run.body[...], fleet: node.fleet, partition: arrived.partition, hash: SHA256.hash)
        runs[run.hashAtLast] = (arrived.run.context, arrived.run.body)
        hashes.formUnion(run.hashes)
        if let payload = try RunCodec.apartPayload(of: arrived.run.body[...]) {
          let rows = try connection.query(
            "SELECT bytes FROM seamesh.payloads WHERE partition = $1 AND hash = $2",
            [.bytes(arrived.partition.digest.bytes), .bytes(payload.bytes)]
          ).rows
          #expect(try rows.first?.first == store.largePayload(payload), sourceLocation: sourceLocation)
        }
      }
      let statements = Set(try store.statements().map(\.encoded))
      let there = Set(try connection.query("SELECT encoded FROM seamesh.statements").rows.compactMap { $0[0] })
      #expect(statements == there, sourceLocation: sourceLocation)
    }
    let changes = try connection.query("SELECT hash FROM seamesh.changes").rows.compactMap { $0[0] }.compactMap {
      Digest($0)
    }
    #expect(Set(changes) == hashes && changes.count == hashes.count, sourceLocation: sourceLocation)
    try expectRuns(connection, runs, sourceLocation)
  }

  /// A context may refer to that of the run before it, which is found by its hash.
  private func expectRuns(
    _ connection: PostgreSQLConnection, _ runs: [Digest: (context: VersionVector, body: [UInt8])],
    _ sourceLocation: SourceLocation
  ) throws {
    let rows = try connection.query("SELECT hash, hash_before, context, body FROM seamesh.runs ORDER BY last").rows
    #expect(rows.count == runs.count, sourceLocation: sourceLocation)
    var contexts: [Digest: VersionVector] = [:]
    for row in rows {
      let hash = try #require(row[0].flatMap { Digest($0) })
      let before = try #require(row[1].flatMap { Digest($0) })
      let context = try ContextCodec.decode((row[2] ?? [])[...], base: contexts[before] ?? VersionVector())
      contexts[hash] = context
      #expect(context == runs[hash]?.context && row[3] == runs[hash]?.body, sourceLocation: sourceLocation)
    }
  }

  /// Of each chain those changes are marked that count, and no others.
  func expectMarks(_ server: TestPostgreSQL, equal node: Node) throws {
    let rows = try server.owner().query(
      "SELECT partition, replica, max(sequence) FILTER (WHERE accepted), count(*) FILTER (WHERE accepted) "
        + "FROM seamesh.marked_changes GROUP BY 1, 2"
    ).rows
    let accepted = try node.accepted().vectors
    for row in rows {
      let partition = PartitionID(try #require(row[0].flatMap { Digest($0) }))
      let replica = try #require(row[1].flatMap { ReplicaID($0) })
      let position = accepted[partition]?[replica]
      #expect(PostgreSQLRows.integer(row[2]) == position.map { Int64($0.sequence) })
      #expect(PostgreSQLRows.integer(row[3]) == position.map { Int64($0.sequence) } ?? 0)
      guard let position else { continue }
      let tips = try server.owner().query(
        "SELECT hash FROM seamesh.marked_changes WHERE accepted AND replica = $1 ORDER BY sequence DESC LIMIT 1",
        [.bytes(replica.bytes)]
      ).rows
      #expect(tips.first?.first.flatMap { $0 }.flatMap { Digest($0) }?.tip == position.tip)
    }
  }
}
