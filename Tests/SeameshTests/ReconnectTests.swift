import Replication
import Testing
import Transport

@testable import Engine
@testable import Seamesh

@Suite(.serialized) struct ReconnectTests {
  private static let collection: Text = "c"

  /// One document in each of so many partitions, held by both.
  private func fill(_ fleet: TestFleet, _ numbers: Range<Int>) throws {
    let requests = try numbers.map { number in
      (
        try PartitionName(Text("room=\(number)")),
        DocumentRequest(collection: Self.collection, id: .int(1), action: .insert(body: body(["n": .int(1)])))
      )
    }
    for result in try fleet.nodes[0].writeEach(requests) { _ = try result.get() }
    try eventually { try fleet.nodes[1].status().documents == numbers.upperBound }
  }

  /// Bytes of messages that each end has sent on the present connection, once neither has more to say.
  private func silence(_ fleet: TestFleet) throws -> [Int64] {
    var sent: [Int64] = []
    try eventually {
      let peers = try fleet.nodes.map { try $0.peers().filter { $0.state == .connected } }
      guard peers.allSatisfy({ $0.count == 1 }), peers[0][0].sentBytes > 0 else { return false }
      sent = peers.map { $0[0].sentBytes }
      return sent == [peers[1][0].receivedBytes, peers[0][0].receivedBytes]
    }
    return sent
  }

  private func reconnect(_ fleet: TestFleet) throws -> [Int64] {
    _ = try silence(fleet)
    let sessions = try fleet.nodes[0].engine.ask { Array($0.links.table.links.keys) }
    for session in sessions { try fleet.nodes[0].engine.ask { $0.links.close(session) } }
    try eventually { try fleet.nodes.allSatisfy { try !$0.peers().contains { $0.state == .connected } } }
    return try silence(fleet)
  }

  @Test("a reconnect with nothing new names no partition: two hellos and two summaries, however many there are")
  func nothingNew() throws {
    let fleet = try TestFleet(2)
    for node in fleet.nodes { try node.subscribe("room=*") }
    try fill(fleet, 0..<1)
    let one = try reconnect(fleet)
    try fill(fleet, 1..<1_000)
    let many = try reconnect(fleet)
    #expect(many.reduce(0, +) < 2_560, "\(many), beside about 1,200 bytes of TLS handshake")
    // The empty buckets of one partition are a byte each; those of a thousand are nine.
    for (few, all) in zip(one, many) { #expect(all - few <= 64 * 8, "\(one) \(many)") }
  }
}
