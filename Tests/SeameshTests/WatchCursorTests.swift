import Foundation
import Replication
import Testing

@testable import Seamesh

@Suite(.serialized) struct WatchCursorTests {
  let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  private func cursor(_ node: Node, _ request: FindRequest = FindRequest()) throws -> String? {
    let watch = try node.watch(partition, "reports", request)
    defer { watch.cancel() }
    guard case .snapshot(_, let cursor)? = try watch.next(timeoutMilliseconds: 1_000) else { return nil }
    return cursor
  }

  @Test("a cursor names a result: equal after a restart as long as nothing changed, another once something has")
  func cursorsNameResults() throws {
    let fleet = try TestFleet(1)
    try fleet.nodes[0].put(partition, "reports", "r1", body(["n": .int(1)]))
    let first = try #require(try cursor(fleet.nodes[0]))
    try fleet.restart(0)
    try #expect(cursor(fleet.nodes[0]) == first)
    try fleet.restart(0)
    try fleet.nodes[0].put(partition, "reports", "r1", body(["n": .int(2)]))
    try #expect(cursor(fleet.nodes[0]) != first)
    let shown = FindRequest(filter: ValueMap(), sort: [], limit: nil, skip: 0, projection: body(["n": .int(1)]))
    try #expect(cursor(fleet.nodes[0], shown) != cursor(fleet.nodes[0]))
  }

  @Test("each event has the cursor of the result that it leads to")
  func eventsLeadToTheResult() throws {
    let fleet = try TestFleet(1)
    let watch = try fleet.nodes[0].watch(partition, "reports", FindRequest(limit: 1))
    defer { watch.cancel() }
    try fleet.nodes[0].put(partition, "reports", "r2", body(["n": .int(1)]))
    _ = try watch.next(timeoutMilliseconds: 1_000)
    try fleet.nodes[0].put(partition, "reports", "r1", body(["n": .int(1)]))
    var cursors: [String] = []
    try eventually {
      switch try watch.next(timeoutMilliseconds: 100) {
      case .delete(_, _, let cursor)?, .insert(_, _, let cursor)?: cursors.append(cursor)
      default: break
      }
      return cursors.count == 2
    }
    let present = try cursor(fleet.nodes[0], FindRequest(limit: 1))
    #expect(cursors.last == present && cursors.first != present)
  }

  @Test("a result that was followed and one that is read anew have one cursor")
  func followed() throws {
    let fleet = try TestFleet(1)
    let watch = try fleet.nodes[0].watch(partition, "reports", FindRequest(filter: body(["n": .int(1)])))
    defer { watch.cancel() }
    guard case .snapshot(_, var last)? = try watch.next(timeoutMilliseconds: 1_000) else {
      Issue.record("there is no snapshot")
      return
    }
    for (id, n) in [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", 3), ("b", 1), ("a", 1)] as [(Text, Int64)] {
      try fleet.nodes[0].put(partition, "reports", id, body(["n": .int(n), "id": .string(id)]))
      let present = try cursor(fleet.nodes[0], FindRequest(filter: body(["n": .int(1)])))
      try eventually(within: 5) {
        switch try watch.next(timeoutMilliseconds: 100) {
        case .delete(_, _, let cursor)?, .insert(_, _, let cursor)?, .update(_, _, _, let cursor)?: last = cursor
        default: break
        }
        return last == present
      }
    }
  }
}
