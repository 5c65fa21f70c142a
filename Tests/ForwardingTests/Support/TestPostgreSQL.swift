import Foundation
import Testing

@testable import Forwarding

/// A PostgreSQL server of a test's own: on a socket and a loopback port that nobody else has, with a certificate for
/// `localhost` that it made. Gone with the test.
final class TestPostgreSQL {
  let directory = "/tmp/seamesh-pg-" + String(UUID().uuidString.prefix(8))
  private(set) var port = 0
  let relayPassword = "relay-\(UUID().uuidString.prefix(8))"
  private var server: Process?
  private var lifeline = Pipe()

  static let programs = "/usr/lib/postgresql/15/bin"
  /// Where these are missing, tests that want a server do not run.
  static var isThere: Bool {
    ["\(programs)/initdb", "\(programs)/postgres", "/usr/bin/openssl"].allSatisfy {
      FileManager.default.isExecutableFile(atPath: $0)
    } && (getuid() != 0 || FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv"))
  }
  static let reason: Comment = "not run: PostgreSQL 15 or openssl is not here"

  init(isSecure: Bool = true) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    if getuid() == 0 { try shell("chown", "postgres:", directory) }
    try asServer(
      "\(TestPostgreSQL.programs)/initdb", "-D", data, "-A", "trust", "-U", "owner", "--no-sync", "-E", "UTF8",
      "--locale=C.UTF-8")
    if isSecure { try makeCertificates() }
    let access = """
      local all owner trust
      local all relay scram-sha-256
      host all all 127.0.0.1/32 scram-sha-256
      """
    try write(access, "\(data)/pg_hba.conf")
    port = try freePort()
    try write(
      """
      listen_addresses = '127.0.0.1'
      port = \(port)
      unix_socket_directories = '\(directory)'
      max_connections = 20
      shared_buffers = 16MB
      ssl = \(isSecure ? "on" : "off")
      ssl_cert_file = '\(directory)/server.crt'
      ssl_key_file = '\(directory)/server.key'
      password_encryption = 'scram-sha-256'
      fsync = off
      full_page_writes = off

      """, "\(data)/postgresql.conf")
    try start()
    try owner("postgres").script("CREATE ROLE relay LOGIN PASSWORD '\(relayPassword)'")
    try owner("postgres").script("CREATE ROLE auditor LOGIN")
    try owner("postgres").script("CREATE DATABASE fleet")
  }

  deinit {
    stop(SIGQUIT)
    try? FileManager.default.removeItem(atPath: directory)
  }

  private var data: String { directory + "/data" }

  // MARK: The server

  func start() throws {
    let process = Process()
    let command = asServerCommand("\(TestPostgreSQL.programs)/postgres", "-D", data)
    // Its input ends with this process, however that ends; then the server does.
    let watch = "\"$@\" < /dev/null & server=$!; cat > /dev/null; kill -QUIT $server 2> /dev/null; wait $server"
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", watch, "sh"] + command
    process.standardInput = lifeline
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    let log = directory + "/log"
    _ = FileManager.default.createFile(atPath: log, contents: nil)
    process.standardOutput = FileHandle(forWritingAtPath: log)
    process.standardError = FileHandle(forWritingAtPath: log)
    try process.run()
    server = process
    let deadline = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < deadline {
      if (try? owner("postgres").script("SELECT 1")) != nil { return }
      _ = poll(nil, 0, 10)
    }
    throw ServerFailure(what: (try? String(contentsOfFile: log, encoding: .utf8)) ?? "no log")
  }

  func stop(_ signal: Int32) {
    guard let server else { return }
    let text = (try? String(contentsOfFile: "\(data)/postmaster.pid", encoding: .utf8)) ?? ""
    if let first = text.split(separator: "\n").first, let process = Int32(first) { end(process, signal) }
    try? lifeline.fileHandleForWriting.close()
    server.waitUntilExit()
    (self.server, lifeline) = (nil, Pipe())
  }

  private func end(_ process: Int32, _ signal: Int32) {
    // All of it at once, as a cut of power ends it.
    if signal == SIGKILL { for child in children(of: process) { kill(child, SIGKILL) } }
    kill(process, signal)
  }

  private func children(of process: Int32) -> [Int32] {
    let path = "/proc/\(process)/task/\(process)/children"
    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    return text.split(separator: " ").compactMap { Int32($0) }
  }

  /// By a connection of its own, over the socket.
  func owner(_ database: String = "fleet") throws -> PostgreSQLConnection {
    try PostgreSQLConnection(ownerAddress(database), environment: [:], stop: StopPipe())
  }

  func ownerAddress(_ database: String = "fleet") throws -> PostgreSQLAddress {
    try PostgreSQLAddress(url: ownerURL(database))
  }

  func ownerURL(_ database: String = "fleet") -> String {
    "postgresql://owner@/\(database)?host=\(directory)&port=\(port)"
  }

  /// Over TLS, with the certificate verified.
  func relayURL(host: String = "localhost", password: String? = nil, options: String? = nil) -> String {
    let options = options ?? "sslrootcert=\(directory)/root.crt"
    return "postgresql://relay:\(password ?? relayPassword)@\(host):\(port)/fleet?\(options)"
  }

  /// What `pg_dump` writes of the database of the fleet.
  func dump(_ options: String...) throws -> [UInt8] {
    let file = directory + "/dump-\(UUID().uuidString.prefix(8))"
    defer { try? FileManager.default.removeItem(atPath: file) }
    try shell(
      "\(TestPostgreSQL.programs)/pg_dump",
      ["--host=\(directory)", "--port=\(port)", "--username=owner", "--file=\(file)"] + options + ["fleet"])
    return Array(try Data(contentsOf: URL(fileURLWithPath: file)))
  }

  /// Puts what `pg_dump` wrote into the database of the fleet: all of it, or nothing.
  func load(_ dump: [UInt8]) throws {
    let file = directory + "/load-\(UUID().uuidString.prefix(8))"
    defer { try? FileManager.default.removeItem(atPath: file) }
    try Data(dump).write(to: URL(fileURLWithPath: file))
    try shell(
      "\(TestPostgreSQL.programs)/psql",
      [
        "--host=\(directory)", "--port=\(port)", "--username=owner", "--no-psqlrc", "--set=ON_ERROR_STOP=1",
        "--single-transaction", "--quiet", "--file=\(file)", "fleet",
      ])
  }

  // MARK: Making it

  private func makeCertificates() throws {
    func openssl(_ arguments: String...) throws { try shell("/usr/bin/openssl", arguments) }
    let (root, key) = (directory + "/root", directory + "/server")
    try openssl(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
      "/CN=test root", "-keyout", root + ".key", "-out", root + ".crt")
    try openssl(
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-keyout",
      key + ".key", "-out", key + ".csr")
    try write("subjectAltName=DNS:localhost\n", directory + "/names")
    try openssl(
      "x509", "-req", "-in", key + ".csr", "-CA", root + ".crt", "-CAkey", root + ".key", "-days", "2", "-set_serial",
      "1",
      "-extfile", directory + "/names", "-out", key + ".crt")
    if getuid() == 0 { try shell("chown", "postgres:", key + ".key") }
    try shell("chmod", "600", key + ".key")
  }

  func freePort() throws -> Int {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(socket, address, length) == 0 ? getsockname(socket, address, &length) : -1
      }
    }
    guard status == 0 else { throw ServerFailure(what: "no port is free") }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  func write(_ text: String, _ path: String) throws {
    try text.write(toFile: path, atomically: false, encoding: .utf8)
  }

  func asServerCommand(_ command: String...) -> [String] { asServerCommand(command) }

  /// PostgreSQL does not run as root.
  private func asServerCommand(_ command: [String]) -> [String] {
    guard getuid() == 0 else { return command }
    return ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] + command
  }

  private func asServer(_ command: String...) throws {
    let whole = asServerCommand(command)
    try shell(whole[0], Array(whole.dropFirst()))
  }

  private func shell(_ program: String, _ arguments: String...) throws { try shell(program, arguments) }

  private func shell(_ program: String, _ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    let output = Pipe()
    (process.standardOutput, process.standardError) = (output, output)
    try process.run()
    let said = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw ServerFailure(what: String(decoding: said, as: UTF8.self)) }
  }
}

struct ServerFailure: Error, CustomStringConvertible {
  let what: String
  var description: String { what }
}

extension PostgreSQLConnection {
  func number(_ sql: String) throws -> Int64 { PostgreSQLRows.integer(try query(sql).rows.first?.first ?? nil) ?? -1 }
}
