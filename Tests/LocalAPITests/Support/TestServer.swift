import Foundation
import Glibc
import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import TestSupport
import Testing

/// Waits until `condition` holds; records an issue after ten seconds.
func eventually(_ what: Comment, _ condition: () -> Bool) {
  if !waitUntil(within: 10, condition) { Issue.record(what) }
}

/// A server over a fake node, in a directory of its own that goes with it.
final class TestServer {
  let node = FakeNode()
  let directory: String
  let server: LocalServer

  init(
    loopback: LoopbackAddress? = nil, name: String = UUID().uuidString, runtimeDirectory: String? = nil,
    patience: LocalServerConfiguration.Patience = .init()
  ) throws {
    directory = NSTemporaryDirectory() + "/seamesh-api-" + name
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    var configuration = LocalServerConfiguration(
      directory: directory, loopback: loopback, runtimeDirectory: runtimeDirectory)
    configuration.patience = patience
    server = try LocalServer.start(node: node, configuration: configuration)
  }

  deinit {
    server.stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  var token: String {
    (try? String(contentsOfFile: directory + "/api.token", encoding: .utf8).trimmingCharacters(in: .newlines)) ?? ""
  }

  var port: UInt16 { server.endpoints.url.flatMap { UInt16($0.split(separator: ":").last ?? "") } ?? 0 }

  /// One request over the Unix socket.
  func ask(
    _ method: String, _ target: String, _ body: String? = nil, type: String = "application/json",
    headers: [String] = []
  ) throws -> Answer {
    let connection = try Connection(unixSocket: server.endpoints.socket)
    return try connection.ask(method, target, body.map { Array($0.utf8) }, type: type, headers: headers)
  }

  /// One request over TCP, with the right Host and token unless `headers` has others.
  func askLoopback(
    _ method: String, _ target: String, _ body: String? = nil, host: String? = nil, token: String? = nil,
    headers: [String] = []
  ) throws -> Answer {
    let connection = try Connection(port: port)
    let all = ["Authorization: Bearer \(token ?? self.token)"] + headers
    return try connection.ask(
      method, target, body.map { Array($0.utf8) }, type: "application/json", host: host ?? "127.0.0.1:\(port)",
      headers: all)
  }

  func put(_ partition: PartitionName, _ collection: Text, id: Value, _ body: ValueMap) throws {
    _ = try node.write(
      partition, [DocumentRequest(collection: collection, id: id, action: .put(body: body))])
  }
}
