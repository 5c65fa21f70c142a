import Foundation
import Identity
import Replication
import Storage
import TestSupport
import Testing
import Transport

@testable import Engine
@testable import Seamesh

/// Nodes of one fleet in temporary directories on loopback, without discovery.
final class TestFleet {
  private(set) var nodes: [Node] = []
  private var directories: [String] = []
  private var lastOfRoot: Statement?

  /// The founder is node 0; the others join by its code and know its address.
  init(
    _ count: Int, isClosed: Bool = false, role: Text = "officer", profile: ValueMap = ValueMap(),
    configure: (inout NodeConfiguration) -> Void = { _ in }
  ) throws {
    let first = try directory()
    _ = try NodeSetup.found(
      first, fleetName: "test", user: "founder@test.example", label: "node 0", profile: ValueMap(),
      isClosed ? .closed : .open)
    nodes.append(try Node.start(directory: first, configuration: configuration([], configure)))
    for index in 1..<max(count, 1) {
      let address = try peerAddress(of: nodes[0])
      let code = try nodes[0].invite(
        InviteRequest(user: Text("user\(index)@test.example"), role: role, profile: profile))
      let path = try directory()
      // Without discovery: the D-Bus library keeps the first address it sees for the whole process of the tests.
      _ = try NodeSetup.join(
        path, code: code.code, label: Text("node \(index)"), peers: [address], usesDiscovery: false)
      nodes.append(try Node.start(directory: path, configuration: configuration([address], configure)))
    }
  }

  deinit {
    for node in nodes { node.stop() }
    for path in directories { try? FileManager.default.removeItem(atPath: path) }
  }

  func configuration(_ peers: [PeerAddress], _ configure: (inout NodeConfiguration) -> Void) -> NodeConfiguration {
    var configuration = NodeConfiguration()
    configuration.listenHost = .ipv4(0x7f00_0001)
    configuration.usesDiscovery = false
    configuration.peers = peers
    configuration.logLevel = .error
    configure(&configuration)
    return configuration
  }

  func directory() throws -> String {
    let path = NSTemporaryDirectory() + "seamesh-test-\(UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    directories.append(path)
    return path
  }

  /// Signed with the fleet's root key, which the founder's directory has.
  func statement(_ body: Statement.Body) throws -> Statement {
    let root = try KeyFile.fleetRoot.loadKey(in: DataDirectory(existing: path(of: 0)))
    let founding = try nodes[0].engine.ask { engine -> Statement? in
      let authority = engine.state.mesh.authority
      return authority.lastStatement(of: root.publicKey).flatMap { authority[$0.id] }
    }
    let statement = try StatementSigner(fleet: nodes[0].files.fleet, key: root)
      .sign(body, after: lastOfRoot ?? founding)
    lastOfRoot = statement
    return statement
  }

  /// What everyone may do everywhere from now on. Chains that end count up to there.
  func grant(_ level: AccessLevel, ends: [Statement.PartitionEnds] = []) throws -> Statement {
    try statement(
      .grant(
        Statement.Grant(subject: .everyone, level: level, pattern: "*", listing: Statement.Listing(ends: ends))))
  }

  func peerAddress(of node: Node) throws -> PeerAddress { .socket(try #require(node.endpoints.listen.first)) }

  func path(of index: Int) -> String { directories[index] }

  /// Stops a node and starts it again on the same directory and with the same peers.
  func restart(_ index: Int, peers: [PeerAddress]? = nil) throws {
    nodes[index].stop()
    let peers = try peers ?? (index == 0 ? [] : [peerAddress(of: nodes[0])])
    nodes[index] = try Node.start(directory: directories[index], configuration: configuration(peers) { _ in })
  }
}

/// Waits until `condition` holds; fails at the deadline.
func eventually(
  within seconds: Double = 20, _ what: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation,
  _ condition: () throws -> Bool
) throws {
  guard try !waitUntil(within: seconds, condition) else { return }
  Issue.record(what ?? "the condition did not come to hold", sourceLocation: sourceLocation)
}

func body(_ entries: KeyValuePairs<Text, Value>) -> ValueMap {
  ValueMap(entries.map { ValueMap.Entry(key: $0.key, value: $0.value) }) ?? ValueMap()
}

extension Node {
  /// Taken in here, as if somebody had brought it.
  func say(_ statement: Statement) throws {
    _ = try engine.ask { $0.add([statement]) }
    // Another question waits for the commit.
    try engine.ask { _ in }
  }

  /// The end of a chain of this node's own at one of its changes.
  func chainEnd(_ partition: PartitionName, at sequence: UInt64) throws -> Statement.PartitionEnds {
    try engine.ask { engine in
      Result {
        let replica = try #require(engine.state.own.replica?.id)
        let id = engine.state.identity.id(of: partition)
        let runs = try LogReader(engine.state).summaries(id, replica, from: 1)
        let run = try #require(runs.first { $0.first <= sequence && $0.last >= sequence })
        let position = ChainPosition(sequence: sequence, tip: run.hashes[Int(sequence - run.first)].tip)
        return Statement.PartitionEnds(
          partition: partition.text, chains: [Statement.ChainEnd(replica: replica, position: position)])
      }.mapError { $0 as any Error }
    }.get()
  }

  func put(
    _ partition: PartitionName, _ collection: Text, _ id: Text, _ map: ValueMap, keepAbsent: Bool = false
  ) throws {
    let action = DocumentRequest.Action.put(body: map, keepAbsent: keepAbsent)
    _ = try write(partition, [DocumentRequest(collection: collection, id: .string(id), action: action)])
  }

  /// Behind the engine's back, on its own connection to the database.
  func execute(_ sql: String) throws { try onStore { try $0.database.execute(sql) } }

  func onStore(_ body: @escaping @Sendable (Store) throws -> Void) throws {
    let outcome = try engine.ask { engine in
      Result { if let store = engine.state.store as? Store { try body(store) } }.mapError { $0 as any Error }
    }
    try outcome.get()
  }

  /// Waits until it is computed; nil where the partition is not there.
  func digest(_ partition: PartitionName) throws -> String? {
    var row: PartitionStatus?
    try eventually("the digest is computed") {
      row = try partitions(withDigests: true).first { $0.name == partition.text.string }
      return row == nil || row?.digest != nil
    }
    return row?.digest
  }
}
