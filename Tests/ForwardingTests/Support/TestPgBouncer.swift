import Foundation

/// A pooler in front of a test's server, on a loopback port that nobody else has: each transaction may get another of the
/// server's processes. Gone with the test.
final class TestPgBouncer {
  static let program = "/usr/sbin/pgbouncer"
  static var isThere: Bool { TestPostgreSQL.isThere && FileManager.default.isExecutableFile(atPath: program) }

  let port: Int
  private let server: TestPostgreSQL
  private let process = Process()
  private let lifeline = Pipe()

  init(_ server: TestPostgreSQL, poolSize: Int) throws {
    self.server = server
    port = try server.freePort()
    let directory = server.directory
    try server.write("\"relay\" \"\(server.relayPassword)\"\n", directory + "/users")
    try server.write(
      """
      [databases]
      fleet = host=\(directory) port=\(server.port) dbname=fleet
      [pgbouncer]
      listen_addr = 127.0.0.1
      listen_port = \(port)
      unix_socket_dir =
      auth_type = scram-sha-256
      auth_file = \(directory)/users
      client_tls_sslmode = require
      client_tls_key_file = \(directory)/server.key
      client_tls_cert_file = \(directory)/server.crt
      pool_mode = transaction
      default_pool_size = \(poolSize)
      server_round_robin = 1

      """, directory + "/pgbouncer.ini")
    try start(server.asServerCommand(TestPgBouncer.program, directory + "/pgbouncer.ini"))
  }

  deinit {
    try? lifeline.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  private func start(_ command: [String]) throws {
    // Its input ends with this process, however that ends; then the pooler does. It was born with most signals blocked, as the
    // threads of the test are, and does not open them.
    let watch = "\"$@\" < /dev/null & pooler=$!; cat > /dev/null; kill -KILL $pooler 2> /dev/null; wait $pooler"
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", watch, "sh"] + command
    process.standardInput = lifeline
    let log = server.directory + "/pgbouncer.log"
    _ = FileManager.default.createFile(atPath: log, contents: nil)
    process.standardOutput = FileHandle(forWritingAtPath: log)
    process.standardError = FileHandle(forWritingAtPath: log)
    try process.run()
    let deadline = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < deadline {
      if ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").contains("process up") { return }
      _ = poll(nil, 0, 10)
    }
    throw ServerFailure(what: (try? String(contentsOfFile: log, encoding: .utf8)) ?? "no log")
  }

  /// So often somebody connected.
  var logins: Int {
    let log = (try? String(contentsOfFile: server.directory + "/pgbouncer.log", encoding: .utf8)) ?? ""
    return log.split(separator: "\n").count { $0.contains("login attempt") }
  }

  /// Over TLS, with the certificate verified.
  var relayURL: String {
    server.relayURL().replacingOccurrences(of: ":\(server.port)/", with: ":\(port)/")
  }
}
