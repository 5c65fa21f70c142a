import Foundation
import Identity
import Replication
import Testing
import Transport

@testable import Seamesh

@Suite struct SetupTests {
  /// As a copy made without its permissions leaves it.
  @Test("a directory whose fleet file may not be read as it stands is a node's all the same, and keeps keys and store")
  func unreadableFleetFile() throws {
    let fleet = try TestFleet(1)
    let path = fleet.path(of: 0)
    fleet.nodes[0].stop()
    let names = ["device.key", "fleet-root.key", "seamesh.db"]
    let before = try names.map { try Data(contentsOf: URL(fileURLWithPath: "\(path)/\($0)")) }
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path + "/fleet.id")

    #expect(NodeSetup.isSetUp(path))
    #expect(throws: NodeError.self) {
      try NodeSetup.found(path, fleetName: "again", user: "a@b.example", label: "again", profile: ValueMap())
    }
    #expect(try names.map { try Data(contentsOf: URL(fileURLWithPath: "\(path)/\($0)")) } == before)
  }

  private func found(_ path: String) throws {
    _ = try NodeSetup.found(path, fleetName: "F", user: "a@b.example", label: "d", profile: ValueMap())
  }

  @Test("a join that fails leaves its mark: run founds no fleet there, a second join goes on with the same key")
  func failedJoin() throws {
    let fleet = try TestFleet(1)
    let path = try fleet.directory()
    let code = try fleet.nodes[0].invite(InviteRequest(user: "u@b.example", role: "officer", profile: ValueMap())).code
    func join(_ peers: [PeerAddress]) throws -> NodeSetup.Joined {
      try NodeSetup.join(path, code: code, label: "d", peers: peers, usesDiscovery: false)
    }
    let address = try fleet.peerAddress(of: fleet.nodes[0])
    fleet.nodes[0].stop()
    #expect(throws: NodeError.self) { try join([]) }
    let key = try #require(content(path + "/device.key"))
    let refused = try #require(throws: NodeError.self) { try NodeSetup.start(of: path) }
    #expect(
      refused.message == "\(path) was to enter a fleet and has not yet: run seamesh join CODE --data \(path) again, or "
        + "seamesh init --data \(path) for a new fleet")
    #expect(throws: refused) { try Node.start(directory: path) }
    #expect(content(path + "/device.key") == key)

    try fleet.restart(0)
    let again = try fleet.peerAddress(of: fleet.nodes[0])
    #expect(again != address)
    #expect(try join([again]).aside == nil)
    #expect(content(path + "/device.key") == key)
    #expect(!isThere(path + "/setup.partial"))
    #expect(try NodeSetup.start(of: path) == .node)
    #expect(!isThere(path + "/seamesh.db-wal"))
  }

  @Test("a fleet that was founded by half is begun again, by run too, and its keys are set aside")
  func halfFounded() throws {
    let fleet = try TestFleet(1)
    let path = try fleet.directory()
    try found(path)
    let names = ["device.key", "fleet-root.key", "seamesh.db"]
    let before = names.map { content("\(path)/\($0)") }
    let files = try NodeFiles.load(DataDirectory(existing: path))
    try remove(path + "/fleet.id")
    try SetupMarker(.found, fleet: files.fleet, device: files.device, begun: "20260131T235959Z")
      .save(to: files.directory)
    let refused = #expect(throws: NodeError.self) { try Node.start(directory: path) }
    #expect(refused?.message == "the set-up of \(path) was cut off: run seamesh init --data \(path) again")
    #expect(try NodeSetup.start(of: path) == .newFleet)
    try found(path)
    #expect(names.map { content("\(path)/setup-aside-20260131T235959Z/\($0)") } == before)
    #expect(try NodeFiles.load(DataDirectory(existing: path)).device != files.device)
  }

  @Test("a marker that outlived a finished set-up is of no weight, and goes at the start")
  func staleMarker() throws {
    let fleet = try TestFleet(1)
    fleet.nodes[0].stop()
    let (path, files) = (fleet.path(of: 0), fleet.nodes[0].files)
    try SetupMarker(.found, fleet: files.fleet, device: files.device, begun: "1").save(to: files.directory)
    #expect(throws: NodeError.self) { try found(path) }
    try fleet.restart(0)
    #expect(fleet.nodes[0].files.device == files.device)
    #expect(!isThere(path + "/setup.partial"))
  }

  @Test("a restore that was cut off between the two stores is told by the next start, and gone on with")
  func halfRestored() throws {
    let fleet = try TestFleet(1)
    let path = fleet.path(of: 0)
    try fleet.nodes[0].backup(to: path + "/backup") { _, _ in }
    fleet.nodes[0].stop()
    try FileManager.default.moveItem(atPath: path + "/seamesh.db", toPath: path + "/seamesh.db.before-restore-1")
    try FileManager.default.copyItem(atPath: path + "/backup", toPath: path + "/seamesh.db.restoring")
    let refused = #expect(throws: NodeError.self) { try fleet.restart(0) }
    #expect(refused?.message.hasPrefix("a seamesh restore in \(path) was cut off: run it again") == true)
    #expect(try NodeSetup.restore(path, from: path + "/backup") { _, _ in } == nil)
    try fleet.restart(0)
  }

  @Test("a path is quoted for a shell where it has to be")
  func quoting() {
    #expect("/data/a-b_c.d".shellQuoted == "/data/a-b_c.d")
    #expect("/data/my boat".shellQuoted == "'/data/my boat'")
    #expect("it's".shellQuoted == "'it'\\''s'" && "".shellQuoted == "''")
  }
}
