import Testing

@testable import Forwarding

@Suite("Addresses of backends")
struct AddressTests {
  @Test(
    "what is shown of an address has no secret in it",
    arguments: [
      ("postgresql://relay:s3cret@db.example:5433/fleet?sslmode=require", "postgresql://relay@db.example:5433/fleet"),
      ("postgres://db.example/fleet?user=relay&password=s3cret", "postgresql://relay@db.example/fleet"),
      ("postgresql:///fleet?host=/run/postgresql&sslpassword=s3cret", "postgresql:///run/postgresql/fleet"),
    ])
  func shown(_ url: String, _ shown: String) throws {
    let address = try PostgreSQLAddress(url: url)
    #expect(address.shown == shown)
    #expect(!address.redacted("no entry for s3cret").contains("s3cret") || !address.hasPassword)
  }

  @Test(
    "an address that cannot be read is refused without repeating it",
    arguments: [
      "postgresql://relay:s3cret@db/fleet?nonsense=s3cret",
      "postgresql://relay:s3cret%zz@db/fleet", "mongodb://relay:s3cret@db", "s3cret", "",
    ])
  func refused(_ url: String) {
    #expect {
      _ = try PostgreSQLAddress(url: url)
    } throws: { error in
      let problem = error as? BackendProblem
      return problem?.sentence.contains("s3cret") == false && problem?.remedy.contains("s3cret") == false
    }
  }

  @Test("a server's name is verified unless the address or the environment says otherwise")
  func verification() throws {
    func mode(_ url: String, _ environment: [String: String] = [:]) throws -> String? {
      try PostgreSQLAddress(url: url).connectionParameters(environment: environment)["sslmode"]
    }
    #expect(try mode("postgresql://db.example/fleet") == "verify-full")
    #expect(try mode("postgresql://127.0.0.1/fleet") == "verify-full")
    #expect(try mode("postgresql://db.example/fleet?sslmode=require") == "require")
    #expect(try mode("postgresql://db.example/fleet", ["PGSSLMODE": "require"]) == nil)
    #expect(try mode("postgresql:///fleet?host=/run/postgresql") == nil)
  }

  @Test("a password elsewhere is taken, unless the address has one")
  func passwords() throws {
    let bare = try PostgreSQLAddress(url: "postgresql://relay@db/fleet")
    #expect(bare.withPassword("a").parameters["password"] == "a")
    #expect(try PostgreSQLAddress(url: "postgresql://relay:b@db/fleet").withPassword("a").parameters["password"] == "b")
    #expect(bare.withPassword(nil) == bare)
  }

  @Test("of what a server says no more than a sentence is kept, however much that is")
  func manyWords() throws {
    let address = try PostgreSQLAddress(url: "postgresql://relay@db/fleet")
    let said = PostgreSQLProblems.sentence("ERROR:  23514: " + String(repeating: "row ", count: 100_000), address)
    #expect(said.hasPrefix("row row ") && said.hasSuffix("…") && said.count == PostgreSQLProblems.wordLimit + 1)
  }

  @Test(
    "what a server did not come to the end of is refused with a remedy, and sent again",
    arguments: ["57014", "55P03"])
  func endedByServer(_ state: String) throws {
    let address = try PostgreSQLAddress(url: "postgresql://relay@db/fleet")
    let problem = PostgreSQLProblems.answered(state, "canceling statement due to statement timeout", address)
    #expect(problem.kind == .refused && problem.remedy.contains("statement_timeout"))
    // Less at once helps against the first alone.
    #expect(problem.isLackOfTime == (state == "57014"))
  }

  @Test(
    "why a connection failed is told by a state",
    arguments: [
      (
        "connection to server at \"db\" (10.0.0.1), port 5432 failed: FATAL:  28P01: password authentication failed for user \"relay\"\nLOCATION:  auth_failed, auth.c:326",
        .auth
      ),
      ("could not translate host name \"db\" to address: Name or service not known", .noRoute),
      ("connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running?", .refused),
      ("connection to server at \"10.9.9.9\", port 5432 failed: timeout expired", .noRoute),
      ("connection to server at \"10.9.9.9\", port 5432 failed: No route to host", .noRoute),
      ("connection to server at \"db\", port 5432 failed: server does not support SSL, but SSL was required", .tls),
      (
        "connection to server at \"db\", port 5432 failed: server certificate for \"x\" does not match host name \"db\"",
        .tls
      ),
      ("connection to server at \"db\", port 5432 failed: SSL error: certificate verify failed", .tls),
      ("connection to server at \"db\", port 5432 failed: fe_sendauth: no password supplied", .auth),
      ("connection to server at \"db\", port 5432 failed: FATAL:  3D000: database \"x\" does not exist", .schema),
      ("connection to server at \"db\", port 5432 failed: FATAL:  57P03: the database system is starting up", .refused),
    ] as [(String, BackendProblem.Kind)])
  func problems(_ message: String, _ kind: BackendProblem.Kind) throws {
    let address = try PostgreSQLAddress(url: "postgresql://relay@db/fleet")
    let problem = PostgreSQLProblems.connecting(message, to: address)
    #expect(problem.kind == kind)
    #expect(!problem.sentence.contains("LOCATION") && !problem.sentence.contains("\n"))
  }
}
