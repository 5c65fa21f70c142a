import Replication
import Storage
import Testing

@testable import Seamesh

@Suite struct SubscriptionTests {
  @Test("a subscription that cannot be stored is refused, and nothing is wanted or forgotten by it")
  func refused() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    try node.subscribe("kept")
    for event in ["INSERT", "DELETE"] {
      try node.execute(
        "CREATE TEMP TRIGGER refuse\(event) BEFORE \(event) ON subscriptions BEGIN SELECT RAISE(ABORT, 'no room'); END")
    }
    #expect(throws: NodeError.self) { try node.subscribe("new") }
    #expect(throws: NodeError.self) { try node.unsubscribe("kept") }
    #expect(try node.subscriptions() == ["kept"])
    try fleet.restart(0)
    #expect(try fleet.nodes[0].subscriptions() == ["kept"])
  }

  @Test("who unsubscribes from a part of what is wanted is told what wants it")
  func wantedByMore() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    for pattern in ["agency=*", "room=1"] as [Text] { try node.subscribe(pattern) }
    for part in ["agency=Galapagos", "agency=G*"] as [Text] {
      let refused = #expect(throws: NodeError.self) { try node.unsubscribe(part) }
      #expect(refused?.code == .notFound && refused?.message.contains("wanted by agency=*; unsubscribe") == true)
    }
    let absent = #expect(throws: NodeError.self) { try node.unsubscribe("room=2") }
    #expect(absent?.message == "there is no subscription to room=2")
    #expect(try node.subscriptions() == ["agency=*", "room=1"])
  }
}
