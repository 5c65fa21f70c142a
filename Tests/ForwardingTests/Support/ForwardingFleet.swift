import Foundation
import Identity
import Links
import LocalAPI
import Replication
import Storage
import TestSupport
import Testing
import Transport

@testable import Forwarding
@testable import Seamesh
@testable import SeameshCommand

/// A node in a directory that goes with the test, and its forwarding.
final class ForwardingNode {
  let directory: String
  private(set) var node: Node
  private(set) var forwarding: NodeForwarding?
  private let peers: [PeerAddress]
  private let ownsDirectory: Bool

  /// Founds a fleet where `directory` is nil.
  init(directory existing: String? = nil, peers: [PeerAddress] = []) throws {
    directory = existing ?? NSTemporaryDirectory() + "seamesh-forward-" + String(UUID().uuidString.prefix(8))
    (self.peers, ownsDirectory) = (peers, existing == nil)
    if existing == nil {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      _ = try NodeSetup.found(
        directory, fleetName: "patrol", user: "ann@test.example", label: "relay", profile: ValueMap())
    }
    node = try Node.start(directory: directory, configuration: ForwardingNode.configuration(peers, directory))
  }

  /// Another device of the relay's fleet, which takes what it may. ``remove()`` is the caller's.
  convenience init(joining relay: ForwardingNode, role: Text) throws {
    let path = NSTemporaryDirectory() + "seamesh-vessel-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let code = try relay.node.invite(InviteRequest(user: "bob@test.example", role: role, profile: ValueMap()))
    _ = try NodeSetup.join(path, code: code.code, label: "vessel", peers: [relay.address], usesDiscovery: false)
    try self.init(directory: path, peers: [relay.address])
    try node.subscribe("agency=*")
  }

  private static func configuration(_ peers: [PeerAddress], _ directory: String) -> NodeConfiguration {
    var configuration = NodeConfiguration()
    configuration.listenHost = .ipv4(0x7f00_0001)
    configuration.usesDiscovery = false
    configuration.peers = peers
    configuration.logPath = directory + "/node.log"
    return configuration
  }

  deinit {
    stop()
    if ownsDirectory { try? FileManager.default.removeItem(atPath: directory) }
  }

  func stop() {
    forwarding?.stop()
    forwarding = nil
    node.stop()
  }

  func restart(links: [LinkRule] = []) throws {
    stop()
    var configuration = ForwardingNode.configuration(peers, directory)
    configuration.links = links
    node = try Node.start(directory: directory, configuration: configuration)
  }

  func setUp(_ server: TestPostgreSQL, grantingTo role: String? = "relay") throws {
    _ = try PostgreSQLSetUp.perform(
      server.ownerAddress(), fleet: node.fleet, granting: PostgreSQLGrants(relay: role), environment: [:])
  }

  /// - Parameter password: asked before each connection, where the address has none.
  func forward(
    to url: String, limits: ForwarderLimits = ForwarderLimits(), bringsEditsHome: Bool = false,
    password: @escaping PasswordSource = { () throws(BackendProblem) in nil }
  ) throws {
    forwarding?.stop()
    forwarding = try NodeForwarding(
      node, NamedBackend(address: PostgreSQLAddress(url: url), password: password), limits: limits,
      bringsEditsHome: bringsEditsHome)
  }

  func put(_ partition: String, _ id: String, _ text: String = "x") throws {
    let body = ValueMap([ValueMap.Entry(key: "text", value: .string(Text(text)))]) ?? ValueMap()
    let request = DocumentRequest(collection: "reports", id: .string(Text(id)), action: .put(body: body))
    _ = try node.write(PartitionName(Text(partition)), [request])
  }

  /// One more node of this one's fleet; whoever asks for it takes it away by ``remove()``.
  func member(label: Text = "vessel", user: Text = "bob@test.example") throws -> ForwardingNode {
    let path = NSTemporaryDirectory() + "seamesh-member-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let code = try node.invite(InviteRequest(user: user, role: "officer", profile: ValueMap()))
    _ = try NodeSetup.join(path, code: code.code, label: label, peers: [address], usesDiscovery: false)
    let member = try ForwardingNode(directory: path, peers: [address])
    try member.node.subscribe("agency=*")
    return member
  }

  func remove() {
    stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  func holds(_ partition: String, _ id: String) throws -> Bool {
    try node.documents.stored(PartitionName(Text(partition)), "reports", id: .string(Text(id))) != nil
  }

  var address: PeerAddress {
    get throws { .socket(try #require(node.endpoints.listen.first)) }
  }

  /// Until the node says so, and says nothing else any more.
  func waitForState(
    _ state: ForwardingState, within seconds: Double = 30, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let came = waitUntil(within: seconds) { forwarding?.status.state.rawValue == state.rawValue }
    let told = forwarding?.status
    #expect(came, "\(state.rawValue) did not come, but \(String(describing: told))", sourceLocation: sourceLocation)
  }

  /// Until the ledger has as many changes as the log, however many that are now.
  func waitForLedger(_ server: TestPostgreSQL, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let changes = try node.status().changes
    let connection = try server.owner()
    let came = try waitUntil(within: 60) {
      try connection.number("SELECT count(*) FROM seamesh.changes") >= changes
        && forwarding?.status.state == .caughtUp
    }
    let told = forwarding?.status
    #expect(came, "the ledger did not get all: \(String(describing: told))", sourceLocation: sourceLocation)
  }
}

/// The local interface of a node whose own directory it stands in, as `run` makes it.
final class LocalAPIServer {
  private let server: LocalServer

  init(_ relay: ForwardingNode) throws {
    server = try LocalServer.start(
      node: relay.node, configuration: LocalServerConfiguration(directory: relay.directory))
  }

  func stop() { server.stop() }
}

extension ForwardingNode {
  /// A member's directory and a copy of it, both stopped, which take themselves for the same device.
  func clonedMember() throws -> (String, String) {
    let path = NSTemporaryDirectory() + "seamesh-member-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let code = try node.invite(InviteRequest(user: "bob@test.example", role: "officer", profile: ValueMap()))
    _ = try NodeSetup.join(path, code: code.code, label: "vessel", peers: [address], usesDiscovery: false)
    let member = try ForwardingNode(directory: path, peers: [address])
    try member.node.subscribe("agency=*")
    try member.put("agency=G", "before")
    let partition = try PartitionName("agency=G")
    let came = try waitUntil { try node.read(partition, "reports", id: .string("before")) != nil }
    #expect(came)
    member.stop()
    let copy = path + "-copy"
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let directory = try DataDirectory(existing: copy)
    guard case .present(var sidecar) = try ReplicaSidecar.load(from: directory) else {
      throw ServerFailure(what: "no sidecar that reads")
    }
    sidecar.host = try HostFacts.current(database: directory.file(Store.fileName))
    try sidecar.save(to: directory)
    return (path, copy)
  }
}
