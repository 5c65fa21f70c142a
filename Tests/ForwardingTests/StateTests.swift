import Foundation
import Replication
import TestSupport
import Testing
import Wire

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

@Suite(
  "What stands in the way of forwarding is named", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct StateTests {
  /// One state: told by the running node everywhere, and by `forward --check` with its exit status.
  private func expect(
    _ state: ForwardingState, _ exit: CommandStatus, _ words: String, _ relay: ForwardingNode, _ url: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let secret = URLComponents(string: url)?.password ?? "no password"
    let command = try check(relay, url)
    #expect(command.status == exit.rawValue, "\(command)", sourceLocation: sourceLocation)
    let found = try ExtendedJSON.parseMap(Array(command.output.utf8))
    #expect(found["state"] == .string(Text(state.rawValue)), "\(command)", sourceLocation: sourceLocation)
    #expect(found["reason"]?.shownText.contains(words) == true, "\(command.output)", sourceLocation: sourceLocation)
    #expect(isOneSentence(found["reason"]?.shownText ?? ""), "\(command.output)", sourceLocation: sourceLocation)
    #expect(command.error.split(separator: "\n").count == 1, "\(command)", sourceLocation: sourceLocation)
    #expect(!(command.output + command.error).contains(secret), sourceLocation: sourceLocation)
    try relay.forward(to: url)
    try relay.waitForState(state, sourceLocation: sourceLocation)
    let status = try #require(try relay.node.status().forwarding)
    #expect(status.reason.contains(words) && !"\(status)".contains(secret), sourceLocation: sourceLocation)
    let metrics = try relay.node.metrics()
    #expect(metrics.contains("seamesh_forward_state{state=\"\(state.rawValue)\"} 1"), sourceLocation: sourceLocation)
    let finding = try relay.node.doctor().first { $0.code == "forward-\(state.rawValue)" }
    #expect(finding?.level == .problem && finding?.remedy.isEmpty == false, sourceLocation: sourceLocation)
    #expect(finding?.message.contains(words) == true, sourceLocation: sourceLocation)
    let log = (try? String(contentsOfFile: relay.node.configuration.logPath ?? "", encoding: .utf8)) ?? ""
    #expect(!log.contains(secret), sourceLocation: sourceLocation)
  }

  /// For a person: no severities, codes or places in somebody's sources, and nothing behind it.
  private func isOneSentence(_ text: String) -> Bool {
    let noise = ["\n", "ERROR", "FATAL", "LINE ", "LOCATION", ". "]
    return !text.isEmpty && !noise.contains(where: text.contains) && PostgreSQLProblems.sqlState(in: text) == nil
  }

  private func check(_ relay: ForwardingNode, _ url: String, _ environment: [String: String] = [:]) throws
    -> CommandResult
  {
    try run(["forward", "--check", "--json", "--forward=\(url)"], relay, environment)
  }

  private func run(
    _ arguments: [String], _ relay: ForwardingNode, _ environment: [String: String] = [:]
  ) throws -> CommandResult {
    try runCommand(arguments, in: relay.directory, environment)
  }

  @Test("a server that follows another one, and one that is set to be read only")
  func readOnly() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.put("agency=G", "r")
    try server.owner("postgres").script("ALTER DATABASE fleet SET default_transaction_read_only = on")
    try expect(.refused, .unreachable, "takes no changes", relay, server.relayURL())
    try server.owner("postgres").script("ALTER DATABASE fleet RESET default_transaction_read_only")
    server.stop(SIGINT)
    try server.write("", server.directory + "/data/standby.signal")
    try server.start()
    try expect(.refused, .unreachable, "takes no changes", relay, server.relayURL())
    // What is only read is told there as well.
    let letters = try run(["forward", "--dead-letters", "--forward=\(server.relayURL())"], relay)
    #expect(letters.status == 0, "\(letters)")
  }

  @Test("no way to the server, and nobody there")
  func unreachable() throws {
    let relay = try ForwardingNode()
    let nowhere = "postgresql://relay:s3cret@nowhere.invalid/fleet?sslmode=require"
    try expect(.noRoute, .unreachable, "its name is not known", relay, nowhere)
    let nobody = "postgresql://relay:s3cret@127.0.0.1:1/fleet?sslmode=require"
    try expect(.refused, .unreachable, "nothing takes connections", relay, nobody)
  }

  @Test("a wrong password, and none")
  func password() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try expect(.auth, .notPermitted, "the password for", relay, server.relayURL(password: "s3cret"))
    let none = server.relayURL().replacingOccurrences(of: ":" + server.relayPassword, with: "")
    try expect(.auth, .notPermitted, "none was given", relay, none)
  }

  @Test("a server without TLS, a certificate for another name, and one that nobody here trusts")
  func security() throws {
    let relay = try ForwardingNode()
    let server = try TestPostgreSQL()
    try relay.setUp(server)
    try expect(.tls, .notPermitted, "another name", relay, server.relayURL(host: "127.0.0.1"))
    try expect(
      .tls, .notPermitted, "no root certificate", relay, server.relayURL(options: "sslrootcert=/nonexistent/x"))
    let stranger = try TestPostgreSQL()
    let options = "sslrootcert=\(stranger.directory)/root.crt"
    try expect(.tls, .notPermitted, "not signed by the root", relay, server.relayURL(options: options))
    let open = try TestPostgreSQL(isSecure: false)
    try expect(.tls, .notPermitted, "does not speak TLS", relay, open.relayURL(options: options))
  }

  @Test("no tables, missing rights, a newer format, and another fleet's tables")
  func tables() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try expect(.schema, .failed, "there is no ledger", relay, server.relayURL())
    try relay.setUp(server, grantingTo: nil)
    try expect(.schema, .notPermitted, "lacks a right", relay, server.relayURL())
    try relay.setUp(server)
    try server.owner().script("REVOKE EXECUTE ON FUNCTION seamesh.append FROM relay")
    try expect(.schema, .notPermitted, "seamesh.append", relay, server.relayURL())
    try relay.setUp(server)
    try server.owner().script("INSERT INTO seamesh.migrations (number) VALUES (99)")
    try expect(.schema, .failed, "a newer seamesh", relay, server.relayURL())
    #expect(throws: BackendProblem.self) { try relay.setUp(server) }
    try server.owner().script("DELETE FROM seamesh.migrations WHERE number = 99")
    let stranger = try ForwardingNode()
    try expect(.schema, .failed, "another fleet", stranger, server.relayURL())
    #expect(throws: BackendProblem.self) { try stranger.setUp(server) }
  }

  /// In a state that no backend is needed for.
  private final class FixedForwarder: NodeForwarder {
    let status: ForwardingStatus
    init(_ status: ForwardingStatus) { self.status = status }
    func refused(most count: Int) -> [RefusedChain] { [] }
    func refusedStatements(most count: Int) -> [RefusedStatementStatus] { [] }
    func sendNow() {}
  }

  @Test("each state is shown by status, metrics, doctor and the exit of --check")
  func everyState() throws {
    #expect(ForwardingState.allCases.map(\.rawValue) == ForwardingStatus.State.allCases.map(\.rawValue))
    #expect(ForwardingState.allCases.map { ForwardingStatus.State($0) } == ForwardingStatus.State.allCases)
    let exits: [ForwardingStatus.State: CommandStatus] = [
      .noRoute: .unreachable, .refused: .unreachable, .auth: .notPermitted, .tls: .notPermitted, .schema: .failed,
      .lagging: .behind, .caughtUp: .done,
    ]
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let interface = try LocalAPIServer(relay)
    defer { interface.stop() }
    let backend = try PostgreSQLAddress(url: server.relayURL()).shown
    for state in ForwardingStatus.State.allCases {
      let name = state.rawValue
      var status = ForwardingStatus()
      (status.backend, status.state, status.lagChanges) = (backend, state, state == .caughtUp ? 0 : 7)
      let forwarder = FixedForwarder(status)
      relay.node.attach(forwarder)
      #expect(try run(["status"], relay).output.contains("\(name): \(backend)"), "\(name)")
      let metrics = try relay.node.metrics().split(separator: "\n").filter { $0.hasPrefix("seamesh_forward_state{") }
      let expected = ForwardingStatus.State.allCases.map {
        "seamesh_forward_state{state=\"\($0.rawValue)\"} \($0 == state ? 1 : 0)"
      }
      #expect(metrics.map(String.init) == expected, "\(name)")
      let doctor = try run(["doctor", "--json"], relay)
      #expect(doctor.output.contains("\"forward-\(name)\""), "\(doctor)")
      #expect((doctor.status == 0) == (state == .caughtUp || state == .lagging), "\(doctor)")
      let check = try check(relay, server.relayURL())
      #expect(check.status == exits[state]?.rawValue, "\(check)")
      #expect(try ExtendedJSON.parseMap(Array(check.output.utf8))["state"] == .string(Text(name)), "\(check)")
      relay.node.attach(nil)
    }
  }

  @Test("what a link keeps back is no refusal: doctor says that the backend lags, and why")
  func heldBackByLink() throws {
    var status = ForwardingStatus()
    (status.state, status.lagChanges, status.reason) = (.lagging, 3, "the link does not carry all partitions")
    let findings = Doctor.findings(status)
    #expect(findings.map(\.code) == ["forward-lagging"] && findings.map(\.level) == [.ok])
    #expect(findings.first?.message.contains("lacks 3 changes: the link does not carry") == true)
  }

  @Test("lagging tells by how much and how long, until it has caught up; the mesh does not wait")
  func lag() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.forward(to: server.relayURL())
    try relay.waitForState(.caughtUp)
    let blocker = try server.owner()
    try blocker.script("BEGIN; LOCK TABLE seamesh.runs IN EXCLUSIVE MODE")
    for index in 0..<10 { try relay.put("agency=G", "r\(index)") }
    let lags = waitUntil {
      let status = relay.forwarding?.status
      return status?.state == .lagging && status?.lagChanges == 10 && status?.lagMilliseconds ?? 0 > 1_000
    }
    #expect(lags)
    #expect(relay.forwarding?.status.lagBytes ?? 0 > 0)
    let server2 = try LocalAPIServer(relay)
    let command = try check(relay, server.relayURL())
    #expect(command.status == CommandStatus.behind.rawValue, "\(command)")
    let status = try run(["status"], relay).output
    #expect(
      status.contains("lagging: postgresql://relay@localhost") && status.contains("it lacks 10 changes ("), "\(status)")
    #expect(status.contains(", the oldest for "), "\(status)")
    let metrics = try relay.node.metrics().split(separator: "\n")
    for (name, least) in [("changes", 10), ("bytes", 1_000), ("seconds", 1)] {
      let line = metrics.first { $0.hasPrefix("seamesh_forward_lag_\(name) ") }
      #expect(
        line?.split(separator: " ").last.flatMap { Double($0) } ?? 0 >= Double(least), "\(String(describing: line))")
    }
    #expect(metrics.contains("seamesh_forward_state{state=\"lagging\"} 1"))
    let behind = try run(["doctor", "--json"], relay)
    #expect(behind.output.contains("\"forward-lagging\"") && behind.output.contains("lacks 10 changes"), "\(behind)")
    try blocker.script("COMMIT")
    let waited = try run(["forward", "--wait"], relay)
    #expect(waited.status == 0 && waited.output.hasPrefix("caught-up: "), "\(waited)")
    try relay.waitForLedger(server)
    #expect(try check(relay, server.relayURL()).status == CommandStatus.done.rawValue)
    #expect(try run(["status"], relay).output.contains("caught-up: postgresql://relay@localhost"))
    let caughtUp = try relay.node.metrics().split(separator: "\n")
    for line in ["state{state=\"caught-up\"} 1", "state{state=\"lagging\"} 0", "lag_changes 0", "lag_bytes 0"] {
      #expect(caughtUp.contains { $0 == "seamesh_forward_\(line)" }, "\(line)")
    }
    #expect(try run(["doctor", "--json"], relay).output.contains("\"forward-caught-up\""))
    server2.stop()
  }

  @Test("run takes its backend from seamesh.json, stays where that refuses it, and tells the password nowhere")
  func configured() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.put("agency=G", "r")
    relay.stop()
    let (configuration, log) = (relay.directory + "/seamesh.json", relay.directory + "/run.log")
    func start(_ password: String) throws -> Process {
      let text = "{\"forward\": \"\(server.relayURL(password: password))\"}"
      _ = FileManager.default.createFile(
        atPath: configuration, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
      let words = ["run", "--listen=127.0.0.1:0", "--no-discovery", "--log-file=\(log)"]
      let process = try startCommand(words, in: relay.directory)
      let isThere = try waitUntil { try run(["status"], relay).status == 0 }
      #expect(isThere)
      return process
    }
    for (password, exit) in [("s3cret", CommandStatus.notPermitted), (server.relayPassword, .done)] {
      let process = try start(password)
      let came = try waitUntil { try run(["forward"], relay).status == exit.rawValue }
      #expect(came)
      let told = try run(["status", "--json"], relay).output + run(["doctor", "--json"], relay).output
      #expect(told.contains("forward-") && !told.contains(password))
      process.terminate()
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
      let written = try String(contentsOfFile: log, encoding: .utf8)
      #expect(written.contains("forwarding") && !written.contains(password), "\(written)")
    }
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.changes") == 1)
  }

  @Test(
    "while the server is away the lag grows by what is written, in changes, bytes and seconds, and is told everywhere")
  func lagWhileAway() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.put("agency=G", "before")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    server.stop(SIGINT)
    try relay.waitForState(.refused)
    for index in 0..<5 { try relay.put("agency=G", "r\(index)") }
    let grows = waitUntil {
      let status = relay.forwarding?.status
      return status?.state == .refused && status?.lagChanges == 5 && status?.lagMilliseconds ?? 0 >= 1_000
    }
    #expect(grows, "\(String(describing: relay.forwarding?.status))")
    #expect(relay.forwarding?.status.lagBytes ?? 0 > 500)
    let away = try #require(relay.forwarding?.status)
    let interface = try LocalAPIServer(relay)
    let status = try run(["status"], relay).output
    #expect(
      status.contains("refused: ") && status.contains("it lacks 5 changes (") && status.contains("the oldest for"),
      "\(status)")
    #expect(try relay.node.metrics().contains("seamesh_forward_lag_changes 5\n"))
    #expect(try run(["doctor", "--json"], relay).output.contains("which lacks 5 changes: "))
    interface.stop()
    // Also behind a restart, by what was remembered.
    try relay.restart()
    try relay.forward(to: server.relayURL())
    try relay.put("agency=G", "more")
    try relay.waitForState(.refused)
    // It may have been refused before it looked at the last write.
    _ = waitUntil { relay.forwarding?.status.lagChanges == 6 }
    let again = try #require(relay.forwarding?.status)
    #expect(again.lagChanges == 6 && again.logChanges == 7 && again.backendChanges == 1, "\(again)")
    #expect(again.lagBytes > away.lagBytes && again.lagMilliseconds >= away.lagMilliseconds, "\(again)")
    let other = try LocalAPIServer(relay)
    defer { other.stop() }
    try server.start()
    _ = try run(["forward", "--now"], relay)
    #expect(try run(["forward", "--wait"], relay).output.hasPrefix("caught-up: "))
    #expect(try server.owner().number("SELECT count(*) FROM seamesh.changes") == 7)
  }

  @Test("to a backend that was never reached all of the log is lacking")
  func neverReached() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    for index in 0..<3 { try relay.put("agency=G", "r\(index)") }
    server.stop(SIGINT)
    try relay.forward(to: server.relayURL())
    try relay.waitForState(.refused)
    let status = try #require(relay.forwarding?.status)
    #expect(status.lagChanges == 3 && status.logChanges == 3 && status.backendChanges == 0, "\(status)")
    try server.start()
    relay.forwarding?.sendNow()
    try relay.waitForLedger(server)
  }

  @Test("dead letters are listed by the command, and views are made by it")
  func documentVerbs() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.put("agency=G", "bad", "a\0b")
    try relay.put("agency=G", "good")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let listed = try run(["forward", "--dead-letters", "--forward=\(server.relayURL())"], relay)
    #expect(listed.status == 0 && listed.output.hasPrefix("agency=G reports \"bad\": "), "\(listed)")
    #expect(listed.output.contains("U+0000") && !listed.output.contains("good"), "\(listed)")
    let views = try run(["forward", "--views", "--forward=\(server.relayURL())"], relay)
    #expect(views.status == 0 && views.output == "seamesh_views.reports: reports\n", "\(views)")
    #expect(try server.owner().number("SELECT count(*) FROM seamesh_views.reports WHERE text = 'x'") == 1)
  }

  @Test("a password is taken from its file, the environment and PGPASSFILE, and from no file that others can read")
  func passwordSources() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let bare = server.relayURL().replacingOccurrences(of: ":" + server.relayPassword, with: "")
    func file(_ name: String, _ content: String, _ mode: Int) throws -> String {
      let path = relay.directory + "/" + name
      _ = FileManager.default.createFile(
        atPath: path, contents: Data(content.utf8), attributes: [.posixPermissions: mode])
      return path
    }
    #expect(try check(relay, bare).status == CommandStatus.notPermitted.rawValue)
    #expect(try check(relay, bare, ["PGPASSWORD": server.relayPassword]).status == 0)
    let passfile = try file("pgpass", "localhost:*:*:relay:\(server.relayPassword)\n", 0o600)
    #expect(try check(relay, bare, ["PGPASSFILE": passfile]).status == 0)
    let own = try file("forward.password", server.relayPassword + "\n", 0o644)
    let refused = try check(relay, bare)
    #expect(refused.status == 1 && refused.error.contains("forward.password"), "\(refused)")
    #expect(!refused.error.contains(server.relayPassword))
    #expect(chmod(own, 0o600) == 0)
    #expect(try check(relay, bare).status == 0)
    _ = unlink(own)
    // In the configuration file it is as secret as that.
    let configuration = try file("seamesh.json", "{\"forward\":\"\(server.relayURL())\"}", 0o644)
    let readable = try run(["forward", "--check"], relay)
    #expect(readable.status == 1 && readable.error.contains("chmod 600"), "\(readable)")
    #expect(!readable.error.contains(server.relayPassword))
    #expect(chmod(configuration, 0o600) == 0)
    #expect(try run(["forward", "--check"], relay).status == 0)
  }

  /// A file of the data directory that its owner alone reads.
  private func write(_ text: String, _ name: String, _ relay: ForwardingNode, mode: Int = 0o600) {
    _ = FileManager.default.createFile(
      atPath: relay.directory + "/" + name, contents: Data(text.utf8), attributes: [.posixPermissions: mode])
  }

  @Test("PGPASSWORD goes before forward.password, which is the password of the backend in seamesh.json and of no other")
  func passwordOrder() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    let bare = server.relayURL().replacingOccurrences(of: ":" + server.relayPassword, with: "")
    write("wrong\n", "forward.password", relay)
    #expect(try check(relay, bare).status == CommandStatus.notPermitted.rawValue)
    #expect(try check(relay, bare, ["PGPASSWORD": server.relayPassword]).status == 0)
    // One that nobody else may read is not asked for where it is not needed.
    write("wrong\n", "forward.password", relay, mode: 0o644)
    #expect(try check(relay, server.relayURL()).status == 0)
    write("wrong\n", "forward.password", relay)
    // Another backend's: the file of the configured one is not taken for it.
    let passfile = relay.directory + "/pgpass"
    write("localhost:*:*:relay:\(server.relayPassword)\n", "pgpass", relay)
    #expect(try check(relay, bare, ["PGPASSFILE": passfile]).status == CommandStatus.notPermitted.rawValue)
    write(#"{"forward": "postgresql://relay@db.example/fleet"}"#, "seamesh.json", relay, mode: 0o644)
    #expect(try check(relay, bare, ["PGPASSFILE": passfile]).status == 0)
    // A password on the command line is no flaw of the configuration file.
    let own = try check(relay, server.relayURL())
    #expect(own.status == 0 && !own.error.contains("chmod"), "\(own)")
  }

  @Test("a relay that was refused takes the password that stands in its file by then, without a restart")
  func changedPassword() throws {
    let (server, relay) = try (TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.put("agency=G", "r")
    let bare = server.relayURL().replacingOccurrences(of: ":" + server.relayPassword, with: "")
    write("wrong\n", "forward.password", relay)
    let invocation = Invocation(verb: "run", options: ["forward": [bare]])
    let named = try #require(try namedBackend(invocation, directory: relay.directory))
    try relay.forward(to: bare, password: named.password)
    try relay.waitForState(.auth)
    write(server.relayPassword + "\n", "forward.password", relay)
    relay.forwarding?.sendNow()
    try relay.waitForLedger(server)
    // And one that nobody can use is told as such.
    server.stop(SIGINT)
    write(server.relayPassword + "\n", "forward.password", relay, mode: 0o644)
    try server.start()
    relay.forwarding?.sendNow()
    try relay.waitForState(.auth)
    #expect(relay.forwarding?.status.reason.contains("forward.password") == true)
  }

  @Test("who names another backend is told of that one by --check, and of none by what asks the running node")
  func otherBackend() throws {
    let (server, other, relay) = try (TestPostgreSQL(), TestPostgreSQL(), ForwardingNode())
    try relay.setUp(server)
    try relay.setUp(other)
    try relay.put("agency=G", "r")
    try relay.forward(to: server.relayURL())
    try relay.waitForLedger(server)
    let interface = try LocalAPIServer(relay)
    defer { interface.stop() }
    let own = try check(relay, server.relayURL())
    #expect(own.status == 0 && own.output.contains("caught-up"), "\(own)")
    let another = try check(relay, other.relayURL())
    #expect(another.status == 0 && another.output.contains(#""state":"ready""#), "\(another)")
    #expect(another.output.contains("forwards to postgresql://relay@localhost:\(server.port)/fleet"), "\(another)")
    for words in [["forward"], ["forward", "--now"], ["forward", "--wait"]] {
      let refused = try run(words + ["--forward=\(other.relayURL())"], relay)
      #expect(refused.status == 2 && refused.error.contains("--check tells of another backend"), "\(refused)")
    }
    #expect(try run(["forward", "--wait", "--forward=\(server.relayURL())"], relay).status == 0)
  }
}
