import Foundation
import Replication
import Testing

@testable import Seamesh

@Suite(.serialized) struct CloneTests {
  @Test("a cloned directory that ran twice: every acknowledged write of both copies stands, on all nodes")
  func clone() throws {
    let partition = try PartitionName("agency=Galapagos")
    let fleet = try TestFleet(2)
    for node in fleet.nodes { try node.subscribe("agency=*") }
    try fleet.nodes[1].put(partition, "reports", "before", body(["n": .int(0)]))
    try eventually { try fleet.nodes[0].read(partition, "reports", id: .string("before")) != nil }

    // Both copies look alike to themselves: same machine, and an inode that the test's copy of the sidecar names.
    fleet.nodes[1].stop()
    let copy = try fleet.directory()
    try FileManager.default.removeItem(atPath: copy)
    try FileManager.default.copyItem(atPath: fleet.path(of: 1), toPath: copy)
    try nameInode(ofDatabaseIn: copy)
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

  private func nameInode(ofDatabaseIn directory: String) throws {
    let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/seamesh.db")
    let inode = try #require(attributes[.systemFileNumber] as? NSNumber)
    let path = directory + "/replica.state"
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.hasPrefix("inode") ? String(line.prefix { !$0.isNumber }) + inode.stringValue : String(line)
    }
    try lines.joined(separator: "\n").write(toFile: path, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }
}
