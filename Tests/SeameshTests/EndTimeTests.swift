import Foundation
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

@Suite("Times of ends", .serialized)
struct EndTimeTests {
  private func end(_ node: Node) throws -> RightStatus? {
    try node.devices().first { $0.label == "node 1" }?.endedBy.first
  }

  @Test(
    "an end keeps the time it was issued at, on all nodes and for good, and its arrival over restarts, but not over a lost store"
  )
  func times() throws {
    let fleet = try TestFleet(3)
    let before = WallClock.milliseconds
    #expect(try fleet.nodes[0].change(RightsChange(.retire(device: "node 1"), isConfirmed: true)).isSigned)
    for node in fleet.nodes { try eventually { try end(node) != nil } }
    let shown = try fleet.nodes.map { try #require(try end($0)) }
    let issued = try #require(shown[0].issuedAt)
    #expect(before...WallClock.milliseconds ~= issued && shown.allSatisfy { $0.issuedAt == issued })
    #expect(shown.allSatisfy { $0.sinceBy == "arrival" && ($0.since ?? 0) >= before })
    for index in fleet.nodes.indices {
      try fleet.restart(index)
      #expect(try end(fleet.nodes[index]) == shown[index])
    }
    let fetched = WallClock.milliseconds
    fleet.nodes[2].stop()
    for name in ["seamesh.db", "seamesh.db-wal", "seamesh.db-shm"] {
      try? FileManager.default.removeItem(atPath: fleet.path(of: 2) + "/" + name)
    }
    try fleet.restart(2)
    let again = try #require(try end(fleet.nodes[2]))
    #expect(again.issuedAt == issued && (again.since ?? 0) >= fetched)
  }
}
