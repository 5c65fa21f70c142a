import Replication
import Testing

@testable import Seamesh

@Suite(.serialized) struct SyncTests {
  let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  @Test("a document written on one node is read on the other")
  func oneDocument() throws {
    let fleet = try TestFleet(2)
    try fleet.nodes[1].subscribe("agency=*")
    try fleet.nodes[0].put(partition, "reports", "r1", body(["vessel": .string("Aurora"), "crew": .int(4)]))
    try eventually { try fleet.nodes[1].read(partition, "reports", id: .string("r1")) != nil }
    let document = try #require(try fleet.nodes[1].read(partition, "reports", id: .string("r1")))
    #expect(document.body == body(["vessel": .string("Aurora"), "crew": .int(4)]))
    #expect(try fleet.nodes[0].digest(partition) == fleet.nodes[1].digest(partition))
  }

  @Test("edits of different fields on two nodes both stand after they meet")
  func concurrentFields() throws {
    let fleet = try TestFleet(2)
    try fleet.nodes[1].subscribe("agency=*")
    try fleet.nodes[0].put(partition, "reports", "r1", body(["a": .int(1), "b": .int(1)]))
    try eventually { try fleet.nodes[1].read(partition, "reports", id: .string("r1")) != nil }
    try fleet.nodes[0].put(partition, "reports", "r1", body(["a": .int(2)]), keepAbsent: true)
    try fleet.nodes[1].put(partition, "reports", "r1", body(["b": .int(2)]), keepAbsent: true)
    let wanted = body(["a": .int(2), "b": .int(2)])
    for node in fleet.nodes {
      try eventually { try node.read(partition, "reports", id: .string("r1"))?.body == wanted }
    }
  }

  @Test("what comes to be wanted on a standing session comes at once, and again after it was not wanted")
  func wantedLater() throws {
    let fleet = try TestFleet(2)
    try fleet.nodes[0].put(partition, "reports", "r1", body(["n": .int(1)]))
    try eventually { try fleet.nodes[0].peers().contains { $0.state == .connected } }
    // Well below the interval at which summaries are compared, which would repair it.
    try fleet.nodes[1].subscribe("agency=Galapagos")
    try eventually(within: 10) { try fleet.nodes[1].read(partition, "reports", id: .string("r1")) != nil }
    try fleet.nodes[1].unsubscribe("agency=Galapagos")
    try fleet.nodes[0].put(partition, "reports", "r2", body(["n": .int(2)]))
    try fleet.nodes[1].subscribe("agency=Galapagos")
    try eventually(within: 10) { try fleet.nodes[1].read(partition, "reports", id: .string("r2")) != nil }
  }

  @Test("a third node gets through the second what the first wrote")
  func multihop() throws {
    let fleet = try TestFleet(2)
    for node in fleet.nodes { try node.subscribe("agency=*") }
    let code = try fleet.nodes[0].invite(
      InviteRequest(user: "third@test.example", role: "officer", profile: ValueMap())
    ).code
    let path = try fleet.directory()
    let middle = try fleet.peerAddress(of: fleet.nodes[1])
    _ = try NodeSetup.join(path, code: code, label: "third", peers: [], usesDiscovery: false)
    let third = try Node.start(directory: path, configuration: fleet.configuration([middle]) { _ in })
    defer { third.stop() }
    try third.subscribe("agency=*")
    for index in 0..<200 {
      try fleet.nodes[0].put(partition, "reports", Text("r\(index)"), body(["n": .int(Int64(index))]))
    }
    try eventually { try third.digest(partition) == fleet.nodes[0].digest(partition) }
    #expect(try third.find(partition, "reports", FindRequest()).count == 200)
  }
}
