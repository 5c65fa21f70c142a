import Foundation
import LocalAPI
import Replication
import Seamesh

@testable import SeameshCommand

/// A node as it is shipped, with its local interface, in the process of the tests: stopped and removed when this goes.
final class WholeNode {
  let directory = NSTemporaryDirectory() + "seamesh-node-" + String(UUID().uuidString.prefix(8))
  let node: Node
  let server: TestedServer

  init() throws {
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    _ = try NodeSetup.found(
      directory, fleetName: "patrol", user: "ann@test.example", label: "bridge", profile: ValueMap())
    let options = ["listen": ["127.0.0.1:0"], "no-discovery": [""], "log-level": ["error"]]
    node = try Node.start(
      directory: directory, configuration: nodeConfiguration(Invocation(verb: "run", options: options)))
    server = try TestedServer(node)
  }

  deinit {
    server.server.stop()
    node.stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  func seamesh(_ arguments: String..., input: String = "") throws -> CommandResult {
    try server.run(arguments, input: input)
  }

  /// Changes in the log.
  func changes() throws -> Int64 { try node.status().changes }
}
