import Engine
import Foundation
import Identity
import Replication
import Storage
import Testing
import Transport

@testable import Seamesh

@Suite(.serialized) struct CloneTests {
  private let partition: PartitionName

  init() throws { partition = try PartitionName("agency=Galapagos") }

  @Test("a cloned directory that ran twice: every acknowledged write of both copies stands, on all nodes")
  func clone() throws {
    let (fleet, copy) = try clonedFleet()
    let alone = fleet.configuration([]) { _ in }
    for (path, id) in [(fleet.path(of: 1), "first"), (copy, "second")] {
      let node = try Node.start(directory: path, configuration: alone)
      for index in 0..<3 { try node.put(partition, "reports", Text("\(id)\(index)"), body(["n": .int(Int64(index))])) }
      node.stop()
    }

    let address = try fleet.peerAddress(of: fleet.nodes[0])
    let meeting = fleet.configuration([address]) { _ in }
    let first = try Node.start(directory: fleet.path(of: 1), configuration: meeting)
    defer { first.stop() }
    try eventually { try fleet.nodes[0].find(partition, "reports", FindRequest()).count == 4 }
    let second = try Node.start(directory: copy, configuration: meeting)
    defer { second.stop() }
    for node in [fleet.nodes[0], first, second] {
      try eventually(within: 30, "seven documents on every node") {
        try node.find(partition, "reports", FindRequest()).count == 7
      }
    }
    try eventually { try Set([fleet.nodes[0], first, second].map { try $0.digest(partition) }).count == 1 }
    // Both go on under replicas of their own.
    try first.put(partition, "reports", "after1", body(["n": .int(1)]))
    try second.put(partition, "reports", "after2", body(["n": .int(2)]))
    for node in [fleet.nodes[0], first, second] {
      try eventually { try node.find(partition, "reports", FindRequest()).count == 9 }
    }
    #expect(try first.status().replica != second.status().replica)
  }

  @Test("what a fork put aside is issued again once the disk takes it, and a failed attempt leaves no trace")
  func reissueOnFullDisk() throws {
    let (fleet, copy) = try clonedFleet()
    let copies = try start(fleet, copy)
    defer { for node in copies { node.stop() } }
    for (index, node) in copies.enumerated() {
      try node.put(partition, "reports", Text("own\(index)"), body(["n": .int(1)]))
      try node.execute(
        "CREATE TEMP TRIGGER refuse BEFORE INSERT ON reissues BEGIN SELECT RAISE(ABORT, 'no room'); END")
    }

    try dial(fleet.nodes[0], from: copies)
    let loser = try loser(of: copies)
    // Refused for want of room, each of them; then there is room again.
    try loser.put(partition, "reports", "meanwhile", body(["n": .int(2)]))
    for node in copies { try node.execute("DROP TRIGGER refuse") }
    try loser.put(partition, "reports", "later", body(["n": .int(3)]))
    for node in [fleet.nodes[0]] + copies {
      try eventually("five documents on every node") {
        try node.find(partition, "reports", FindRequest()).count == 5
      }
    }
  }

  /// Two nodes that hold one document, of which the second has stopped, and a copy of its directory. Both look alike to
  /// themselves: same machine, and an inode that the copy's sidecar names.
  private func clonedFleet() throws -> (fleet: TestFleet, copy: String) {
    let fleet = try TestFleet(2)
    for node in fleet.nodes { try node.subscribe("agency=*") }
    try fleet.nodes[1].put(partition, "reports", "before", body(["n": .int(0)]))
    try eventually { try fleet.nodes[0].read(partition, "reports", id: .string("before")) != nil }
    fleet.nodes[1].stop()
    let copy = try fleet.directory()
    try FileManager.default.removeItem(atPath: copy)
    try FileManager.default.copyItem(atPath: fleet.path(of: 1), toPath: copy)
    try nameInode(ofDatabaseIn: copy)
    return (fleet, copy)
  }

  /// The second node and its copy, both without anybody to talk to yet.
  private func start(_ fleet: TestFleet, _ copy: String) throws -> [Node] {
    try [fleet.path(of: 1), copy].map {
      try Node.start(directory: $0, configuration: fleet.configuration([]) { _ in })
    }
  }

  private func dial(_ node: Node, from copies: [Node]) throws {
    let address = PeerAddress.socket(try #require(node.endpoints.listen.first))
    for copy in copies { copy.engine.inbox.put(.event(.sighting(.configured([address])))) }
  }

  /// The copy whose branch was put aside.
  private func loser(of copies: [Node]) throws -> Node {
    var found: Node?
    try eventually {
      found = try copies.first { node in
        try node.engine.ask { engine in
          engine.state.mesh.partitions.values.contains { partition in
            !partition.log.lostChanges {
              engine.state.mesh.authority.signer(of: $0) == engine.state.identity.device
            }.isEmpty
          }
        }
      }
      return found != nil
    }
    return try #require(found)
  }

  private func nameInode(ofDatabaseIn path: String) throws {
    let directory = try DataDirectory(existing: path)
    guard case .present(var sidecar) = try ReplicaSidecar.load(from: directory) else {
      Issue.record("the copy has no sidecar that reads")
      return
    }
    sidecar.host = try HostFacts.current(database: path + "/seamesh.db")
    try sidecar.save(to: directory)
  }

  @Test("of two copies of a data directory that run side by side the doctor says so, on both, and where the other is")
  func sideBySide() throws {
    let (fleet, copy) = try clonedFleet()
    let copies = try start(fleet, copy)
    defer { for node in copies { node.stop() } }
    for node in copies { #expect(try !node.doctor().contains { $0.code == "key-used-twice" }) }
    try dial(copies[0], from: [copies[1]])
    for node in copies {
      try eventually { try node.doctor().contains { $0.code == "key-used-twice" && $0.level == .problem } }
    }
    let listen = try #require(copies[0].endpoints.listen.first)
    let finding = try #require(try copies[1].doctor().first { $0.code == "key-used-twice" })
    #expect(finding.message.contains("was met at 127.0.0.1:\(listen.port)"), "\(finding.message)")
    #expect(try !fleet.nodes[0].doctor().contains { $0.code == "key-used-twice" })
  }

  @Test("of a copy that was never met the doctor tells once two histories of what the device wrote are found")
  func seenByFork() throws {
    let (fleet, copy) = try clonedFleet()
    let copies = try start(fleet, copy)
    defer { for node in copies { node.stop() } }
    for (index, node) in copies.enumerated() {
      try node.put(partition, "reports", Text("own\(index)"), body(["n": .int(1)]))
    }
    try dial(fleet.nodes[0], from: copies)
    try eventually {
      try copies.contains { try $0.doctor().contains { $0.code == "key-used-twice" && $0.level == .warning } }
    }
    #expect(try !fleet.nodes[0].doctor().contains { $0.code == "key-used-twice" })
  }

  @Test("large documents on both branches of a clone reach every node")
  func large() throws {
    let (fleet, copy) = try clonedFleet()
    let copies = try start(fleet, copy)
    defer { for node in copies { node.stop() } }
    for (index, node) in copies.enumerated() {
      try node.put(
        partition, "reports", Text("own\(index)"), body(["n": .bytes([UInt8](repeating: UInt8(index), count: 40_000))]))
    }
    try dial(fleet.nodes[0], from: copies)
    for node in [fleet.nodes[0]] + copies {
      try eventually("three documents on every node") {
        try node.find(partition, "reports", FindRequest()).count == 3
      }
    }
  }
}
