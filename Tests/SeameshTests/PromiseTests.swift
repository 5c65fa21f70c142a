import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Seamesh

/// Promises of the node that hold against a member who breaks the rules: real nodes, keys and TLS. Node 1 is the member.
@Suite(.serialized) struct PromiseTests {
  private let partition: PartitionName
  private let fleet: TestFleet
  private var honest: Node { fleet.nodes[0] }
  private var member: Node { fleet.nodes[1] }

  init() throws {
    partition = try PartitionName("agency=Galapagos")
    fleet = try TestFleet(2)
    for node in fleet.nodes { try node.subscribe("agency=*") }
    try member.put(partition, "c", "before", body(["n": .int(1)]))
    try eventually { [fleet, partition] in
      try fleet.nodes[0].read(partition, "c", id: .string("before")) != nil
    }
  }

  /// What the member may do from now on.
  private func right(_ level: AccessLevel, _ pattern: Text = "*", ends: [Statement.ChainEnd] = []) throws -> Statement {
    try fleet.statement(
      .grant(
        Statement.Grant(
          subject: .device(member.files.deviceKey.publicKey), level: level, pattern: pattern, ends: ends)))
  }

  // MARK: The member's tools

  /// Says something over the member's connection, behind its engine's back. Answers how the honest node calls it.
  private func utter(_ message: Message) throws -> SessionID {
    let session = try #require(try honest.onEngine { $0.links.table.links.keys.first })
    let isSent = try member.onEngine { engine in
      guard let id = engine.links.table.links.keys.first else { return false }
      if case .queued = engine.links.port.send(MessageCodec.encode(message), on: id) { return true }
      return false
    }
    try #require(isSent)
    return session
  }

  private func isConnected(_ session: SessionID) throws -> Bool {
    try honest.onEngine { $0.links.table.links[session] != nil }
  }

  // MARK: The promises

  @Test("a statement whose signature is not its issuer's ends the connection and changes nothing (I12)")
  func forgedStatement() throws {
    let genuine = try right(.read, "room=*")
    var turned = genuine.encoded
    turned[turned.count - 1] ^= 1
    let session = try utter(.statements([turned]))
    try eventually("the connection ends") { try !isConnected(session) }
    let count = try honest.onEngine { $0.state.mesh.authority.count }
    #expect(try honest.onEngine { $0.state.mesh.authority[genuine.id] == nil })
    // In the root's name, by the member's hand.
    let key = member.files.deviceKey
    let unsigned = try StatementCodec.unsigned(
      fleet: honest.files.fleet, issuer: genuine.issuer, sequence: 2_000, body: genuine.body)
    let forged = try StatementCodec.assemble(unsigned: unsigned, signature: key.sign(unsigned), SHA256.hash)
    try fleet.restart(1)
    try eventually { [honest] in
      try honest.onEngine { !$0.links.table.links.isEmpty && $0.state.mesh.sessions.count == 1 }
    }
    let second = try utter(.statements([forged.encoded]))
    try eventually("the connection ends") { try !isConnected(second) }
    #expect(try honest.onEngine { $0.state.mesh.authority.count } == count)
    try fleet.restart(1)
    try eventually { [honest] in
      try honest.onEngine { !$0.links.table.links.isEmpty && $0.state.mesh.sessions.count == 1 }
    }
    _ = try utter(.statements([genuine.encoded]))
    try eventually("the genuine one is taken") { [honest] in
      try honest.onEngine { $0.state.mesh.authority[genuine.id] != nil }
    }
  }

  @Test("what a kill leaves has every write that was acknowledged, and none that was refused (I2)")
  func acknowledged() throws {
    var acknowledged: Set<Value> = [.string("before")]
    for number in 0..<12 {
      let isRefused = number % 3 == 2
      if isRefused {
        try honest.execute("CREATE TEMP TRIGGER refuse BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no room'); END")
      }
      let id = Text("w\(number)")
      do {
        try honest.put(partition, "c", id, body(["n": .int(1)]))
        acknowledged.insert(.string(id))
      } catch {
        #expect(isRefused, "\(error)")
      }
      if isRefused { try honest.execute("DROP TRIGGER refuse") }
    }
    #expect(acknowledged.count == 9)
    let copy = try fleet.directory()
    try remove(copy)
    try NodeImage(of: fleet.path(of: 0)).write(to: copy, namesInode: true)
    let node = try Node.start(directory: copy, configuration: fleet.configuration([]) { _ in })
    defer { node.stop() }
    #expect(try Set(node.find(partition, "c", FindRequest()).map(\.id)) == acknowledged)
  }
}
