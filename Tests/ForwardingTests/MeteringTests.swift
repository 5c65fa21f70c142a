import Links
import Testing
import Transport

@testable import Forwarding

@Suite(
  "What a backend's connection costs on its link", .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason),
  .serialized)
struct MeteringTests {
  private let meter = RecordingMeter()

  private func connect(_ server: TestPostgreSQL) throws -> PostgreSQLConnection {
    try connect(PostgreSQLAddress(url: server.relayURL()))
  }

  private func connect(_ address: PostgreSQLAddress) throws -> PostgreSQLConnection {
    try PostgreSQLConnection(address, environment: [:], stop: StopPipe(), meter: MeteredSockets(meter))
  }

  @Test("what goes to the server and what comes from it is charged, with TLS and headers and little more")
  func bothWays() throws {
    let server = try TestPostgreSQL()
    do {
      let connection = try connect(server)
      #expect((3_000...12_000).contains(meter.charged), "of the handshake: \(meter.charged)")
      let rows = try connection.query(
        "SELECT repeat($1, 2)", [.text(String(repeating: "x", count: 1_000_000))]
      ).rows
      #expect(rows.first?.first??.count == 2_000_000)
      #expect((3_000_000...3_100_000).contains(meter.charged), "\(meter.charged)")
    }
    #expect(meter.charges.last.map { (250...600).contains($0) } == true, "of the end: \(meter.charges)")
  }

  @Test("while an answer is waited for, what was sent is charged already")
  func whileWaiting() throws {
    let server = try TestPostgreSQL()
    let connection = try connect(server)
    let long = String(repeating: "x", count: 1_000_000)
    _ = try connection.query("SELECT length($1), pg_sleep(1.5)", [.text(long)])
    #expect(meter.charged > 1_000_000)
    #expect(meter.charges.last.map { $0 < 10_000 } == true, "\(meter.charges)")
  }

  @Test("a connection over a socket of this machine costs nothing")
  func unixSocket() throws {
    let server = try TestPostgreSQL()
    let connection = try connect(try server.ownerAddress())
    try connection.script("SELECT 1")
    #expect(meter.charged == 0)
  }

  @Test("over a link of class none there is no connection, and one that stands ends while it waits")
  func closed() throws {
    let server = try TestPostgreSQL()
    let standing = try connect(server)
    try standing.script("SELECT 1")
    meter.close()
    let problems = [
      #expect(throws: BackendProblem.self) { _ = try connect(server) },
      #expect(throws: BackendProblem.self) { _ = try standing.query("SELECT pg_sleep(20)", milliseconds: 10_000) },
    ]
    for problem in problems {
      #expect(problem?.kind == .noRoute)
      #expect(problem?.sentence.hasSuffix("is closed (class none)") == true)
    }
  }
}
