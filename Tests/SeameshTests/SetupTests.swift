import Foundation
import Replication
import Testing

@testable import Seamesh

@Suite struct SetupTests {
  /// As a copy made without its permissions leaves it.
  @Test("a directory whose fleet file may not be read as it stands is a node's all the same, and keeps keys and store")
  func unreadableFleetFile() throws {
    let fleet = try TestFleet(1)
    let path = fleet.path(of: 0)
    fleet.nodes[0].stop()
    let names = ["device.key", "fleet-root.key", "admission.secret", "seamesh.db"]
    let before = try names.map { try Data(contentsOf: URL(fileURLWithPath: "\(path)/\($0)")) }
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path + "/fleet.id")

    #expect(NodeSetup.isSetUp(path))
    #expect(throws: NodeError.self) {
      try NodeSetup.found(path, fleetName: "again", user: "a@b.example", label: "again", profile: ValueMap())
    }
    #expect(try names.map { try Data(contentsOf: URL(fileURLWithPath: "\(path)/\($0)")) } == before)
  }
}
