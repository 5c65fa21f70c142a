import Foundation
import LocalAPI
import LocalAPITestSupport
import Seamesh
import TestSupport
import Testing

@testable import SeameshCommand

/// The command, built beside the tests.
let commandPath = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
  .appendingPathComponent("seamesh").path

/// A local interface over a node, in a directory that goes with it.
final class TestedServer {
  let directory: String
  let server: LocalServer

  init(_ node: some NodeInterface) throws {
    directory = NSTemporaryDirectory() + "/seamesh-command-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    server = try LocalServer.start(node: node, configuration: LocalServerConfiguration(directory: directory))
  }

  deinit {
    server.stop()
    try? FileManager.default.removeItem(atPath: directory)
  }
}

extension TestedServer {
  /// The command on this node, in an environment that has nothing of the machine's.
  func run(_ arguments: [String], input: String = "", environment: [String: String] = [:]) throws -> CommandResult {
    let own = ["SEAMESH_DATA": directory, "PATH": "/usr/bin:/bin", "HOME": directory]
    return try SeameshCommandTests.run(
      commandPath, arguments, input: input, environment: own.merging(environment) { $1 })
  }

  /// A file in the data directory; its path.
  func file(_ name: String, _ content: String) throws -> String {
    let path = directory + "/" + name
    try content.write(toFile: path, atomically: false, encoding: .utf8)
    return path
  }

  /// The same command with a terminal at its output and error, which then come together.
  func runOnTerminal(
    _ line: String, input: String = "", environment: [String: String] = [:]
  ) throws -> CommandResult {
    let own = ["SEAMESH_DATA": directory, "PATH": "/usr/bin:/bin", "HOME": directory, "TERM": "xterm"]
    let result = try SeameshCommandTests.run(
      "/usr/bin/script", ["-qec", "\(commandPath) \(line)", "/dev/null"], input: input,
      environment: own.merging(environment) { $1 })
    // A terminal's lines end with CR LF.
    return CommandResult(
      status: result.status, output: result.output.replacing("\r\n", with: "\n"), error: result.error)
  }

  static var onTerminal: ConditionTrait {
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "not run: no command script here")
  }
}

struct CommandResult {
  let status: Int32
  let output: String
  let error: String
}

/// Runs a program to its end.
func run(
  _ path: String, _ arguments: [String], input: String = "", environment: [String: String]? = nil
) throws -> CommandResult {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: path)
  process.arguments = arguments
  if let environment { process.environment = environment }
  let directory = NSTemporaryDirectory() + "/run-" + UUID().uuidString
  try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: directory) }
  // Files instead of pipes: neither side can block on a full one.
  func handle(_ name: String, _ content: String) throws -> FileHandle {
    try content.write(toFile: "\(directory)/\(name)", atomically: false, encoding: .utf8)
    return try FileHandle(forUpdating: URL(fileURLWithPath: "\(directory)/\(name)"))
  }
  process.standardInput = try handle("in", input)
  process.standardOutput = try handle("out", "")
  process.standardError = try handle("err", "")
  try process.run()
  process.waitUntilExit()
  return CommandResult(
    status: process.terminationStatus,
    output: try String(contentsOfFile: "\(directory)/out", encoding: .utf8),
    error: try String(contentsOfFile: "\(directory)/err", encoding: .utf8))
}

/// Whether the command was built: it is, unless the tests alone were.
var isCommandBuilt: Bool { FileManager.default.isExecutableFile(atPath: commandPath) }

extension CommandResult {
  var lines: [String] { output.split(separator: "\n").map(String.init) }
  var errors: [String] { error.split(separator: "\n").map(String.init) }
  var isRefusal: Bool { status != 0 && output.isEmpty && errors.count == 1 && error.hasPrefix("seamesh: ") }
}
