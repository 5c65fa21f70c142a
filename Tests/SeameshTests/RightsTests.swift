import Foundation
import Identity
import Replication
import Storage
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// Rights in use: granted, lowered, ended and raised on real nodes, with devices away and back.
@Suite("Rights in use", .serialized)
struct RightsInUseTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("room=1") }

  private func level(_ node: Node, of label: String, in partition: PartitionName) throws -> String? {
    try node.permissions(partition, who: "device:\(label)").members.first?.level
  }

  private func grant(
    _ node: Node, _ who: String, _ level: String, _ pattern: Text, isDryRun: Bool = false
  ) throws -> RightsOutcome {
    try node.change(RightsChange(.grant(who: who, level: level, pattern: pattern), isDryRun: isDryRun))
  }

  private func shows(_ node: Node, _ id: Text) throws -> Bool {
    try node.read(partition, "c", id: .string(id)) != nil
  }

  @Test("an admin grants, by its own device's key, and whom it reaches may write where it is heard")
  func granting() throws {
    let fleet = try TestFleet(2, isClosed: true)
    let refused = #expect(throws: NodeError.self) { try fleet.nodes[1].put(partition, "c", "a", body(["n": .int(1)])) }
    #expect(refused?.code == .notPermitted)
    #expect(refused?.message.contains("nothing gives it any right there") == true)
    let outcome = try grant(fleet.nodes[0], "role:officer", "write", "room=*")
    #expect(outcome.isSigned && outcome.signer == "this device" && !outcome.isNarrowing)
    try eventually { try level(fleet.nodes[1], of: "node 1", in: partition) == "write" }
    try fleet.nodes[1].put(partition, "c", "a", body(["n": .int(1)]))
    try fleet.nodes[0].subscribe("room=*")
    try eventually { try shows(fleet.nodes[0], "a") }
    // Said twice is said once.
    #expect(try grant(fleet.nodes[0], "role:officer", "write", "room=*").statements.isEmpty)
    let rights = try fleet.nodes[1].permissions(partition, who: "device:node 1").members.first?.rights ?? []
    #expect(
      rights.map(\.id) == outcome.statements && rights.allSatisfy { $0.sinceBy == "arrival" && $0.issuer == "node 0" })
  }

  @Test("who grants less than others give is told by what more is given, whether that signs anything or not")
  func grantedBeside() throws {
    let fleet = try TestFleet(2)
    let none = try grant(fleet.nodes[0], "user:user1@test.example", "none", "room=1")
    #expect(none.statements.isEmpty && none.notes.count == 1 && none.notes[0].contains("everyone write *"))
    let less = try grant(fleet.nodes[0], "role:officer", "read", "room=*")
    #expect(less.isSigned && less.notes.count == 1 && less.notes[0].contains("everyone write *"))
    // Nothing more is given than what is granted, or to somebody else.
    let more = try grant(fleet.nodes[0], "role:officer", "write", "room=1")
    #expect(more.notes.isEmpty, "\(more.notes)")
    #expect(try grant(fleet.nodes[0], "everyone", "none", "*").notes.isEmpty)
  }

  @Test("closing an open fleet takes away what the root gave; what was written stays, here and elsewhere")
  func closing() throws {
    let fleet = try TestFleet(2)
    try fleet.nodes[0].subscribe("room=*")
    try fleet.nodes[1].put(partition, "c", "a", body(["n": .int(1)]))
    try eventually { try shows(fleet.nodes[0], "a") }
    let dry = try grant(fleet.nodes[0], "everyone", "read", "*", isDryRun: true)
    #expect(!dry.isSigned && dry.isNarrowing && dry.falls.allSatisfy { $0.lostChanges == 0 })
    #expect(try level(fleet.nodes[0], of: "node 1", in: partition) == "write")
    let outcome = try grant(fleet.nodes[0], "everyone", "read", "*")
    // A grant of the admin's own, and an end of the root's.
    #expect(outcome.isSigned && outcome.statements.count == 2 && outcome.signer == "this device")
    try eventually { try level(fleet.nodes[1], of: "node 1", in: partition) == "read" }
    let refused = #expect(throws: NodeError.self) { try fleet.nodes[1].put(partition, "c", "b", body(["n": .int(1)])) }
    #expect(refused?.message.contains("it may only read there, by the grant everyone read *") == true)
    for node in fleet.nodes { #expect(try shows(node, "a")) }
    #expect(try fleet.nodes.allSatisfy { try $0.status().held.isEmpty })
  }

  @Test("whoever may not decide signs nothing, and hears one sentence")
  func noRight() throws {
    let fleet = try TestFleet(2)
    let before = try fleet.nodes[1].statementCount()
    func refusal(_ node: Node, _ action: RightsChange.Action) -> NodeError? {
      #expect(throws: NodeError.self) { try node.change(RightsChange(action, isConfirmed: true)) }
    }
    let member = fleet.nodes[1]
    for action: RightsChange.Action in [
      .grant(who: "everyone", level: "manage", pattern: "*"), .retire(device: "node 0"),
      .revoke(device: "node 1", isCompromised: false, at: nil),
    ] {
      #expect(refusal(member, action)?.code == .notPermitted)
    }
    #expect(refusal(member, .promote(device: "node 1"))?.message.contains("root key") == true)
    let founder = fleet.nodes[0]
    #expect(refusal(founder, .revoke(device: "nobody", isCompromised: false, at: nil))?.code == .notFound)
    #expect(refusal(founder, .grant(who: "bob", level: "read", pattern: "*"))?.message.contains("names nobody") == true)
    #expect(refusal(founder, .grant(who: "everyone", level: "all", pattern: "*"))?.message.contains("no level") == true)
    for pattern: Text in ["", "a*b", "**", "a\nb"] {
      #expect(
        refusal(founder, .grant(who: "everyone", level: "read", pattern: pattern))?.message.contains("no pattern")
          == true)
    }
    #expect(
      refusal(founder, .revoke(device: "node 1", isCompromised: true, at: "noon"))?.message.contains("no time") == true)
    #expect(try member.statementCount() == before && founder.statementCount() == before)
    let unknown = try grant(founder, "user:carol@test.example", "read", "room=*")
    #expect(
      unknown.isSigned && unknown.notes.contains { $0.contains("no device of user:carol@test.example is known yet") })
  }
}

extension Node {
  func statementCount() throws -> Int { try engine.ask { $0.state.mesh.authority.count } }
}
