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
    try node.change(
      RightsChange(.grant(who: who, level: level, pattern: pattern), isDryRun: isDryRun, isConfirmed: true))
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

  @Test("rules that give more are named, too, and grants to users of a role that is given less")
  func givenByOthers() throws {
    let fleet = try TestFleet(2, isClosed: true, profile: body(["agency": .string("W")]))
    let founder = fleet.nodes[0]
    for (who, pattern, rule): (String, Text, String) in [
      ("role:officer", "agency=W", "the rule agency="), ("role:officer", "agency=*", "the rule agency="),
      ("everyone", "user=user1@test.example", "the rule user="), ("everyone", "user=*", "the rule user="),
      ("role:officer", "all-users=1", "the rule all-users="), ("role:officer", "all-users=*", "the rule all-users="),
    ] {
      let notes = try grant(founder, who, "none", pattern, isDryRun: true).notes
      #expect(notes.count == 1 && notes[0].hasPrefix("more is given there by \(rule) ("), "\(pattern): \(notes)")
    }
    #expect(try grant(founder, "role:officer", "none", "agency=V", isDryRun: true).notes.isEmpty)
    #expect(try grant(founder, "role:officer", "write", "agency=W", isDryRun: true).notes.isEmpty)
    _ = try grant(founder, "user:user1@test.example", "write", "room=1")
    let notes = try grant(founder, "role:officer", "none", "room=1", isDryRun: true).notes
    #expect(notes.count == 1 && notes[0].contains("user:user1@test.example write room=1"), "\(notes)")
  }

  @Test("a preview says who may write no longer, and who still may and by what, partition by partition")
  func effects() throws {
    let fleet = try TestFleet(3, profile: body(["agency": .string("W")]))
    let founder = fleet.nodes[0]
    for name: Text in ["agency=W", "room=1", "room=2", "user=user1@test.example"] {
      try founder.subscribe(name)
      if !name.string.hasPrefix("user=") { try founder.put(PartitionName(name), "c", "a", body(["n": .int(1)])) }
    }
    let closing = try grant(founder, "everyone", "read", "*", isDryRun: true).effects
    #expect(closing.count == 3, "\(closing)")
    #expect(closing.contains("from then on node 0 (this device) may no longer write in agency=W, only read"))
    #expect(
      closing.contains(
        "from then on node 0 (this device), node 1 and node 2 may no longer write in room=1 and room=2, only read"))
    #expect(closing.contains { $0.hasPrefix("node 1 and node 2 may still write in agency=W, by the rule agency= (") })
    let ended = try founder.change(RightsChange(.retire(device: "node 1"), isDryRun: true)).effects
    #expect(ended.contains { $0.hasPrefix("from then on node 1 may no longer write in agency=W, ") }, "\(ended)")
    #expect(ended.allSatisfy { $0.hasSuffix(", nor do anything else there") })
    let given = try grant(founder, "role:officer", "manage", "room=1", isDryRun: true).effects
    #expect(
      given.count == 1 && given[0].hasPrefix("from then on node 1 and node 2 may manage room=1, by the grant role:"))
    #expect(try grant(founder, "everyone", "read", "*").effects.isEmpty)
    #expect(LevelSentences.list((1...13).map { "n\($0)" }).hasSuffix("n9, n10 and 3 others"))
  }

  @Test("a preview of an admin's end names those who lose what that admin gave them")
  func effectsOfAnEnd() throws {
    let fleet = try TestFleet(3, isClosed: true)
    let (founder, room) = (fleet.nodes[0], try PartitionName("room=1"))
    try founder.put(room, "c", "a", body(["n": .int(1)]))
    _ = try founder.change(RightsChange(.promote(device: "node 1")))
    try eventually { (try? grant(fleet.nodes[1], "user:user2@test.example", "write", "room=1"))?.isSigned == true }
    try eventually { try level(founder, of: "node 2", in: room) == "write" }
    let end = RightsChange.Action.revoke(device: "node 1", isCompromised: true, at: "2020-01-01T00:00:00Z")
    let effects = try founder.change(RightsChange(end, isDryRun: true)).effects
    #expect(effects.contains { $0.contains("node 2") && $0.contains("may no longer write in room=1") }, "\(effects)")
    _ = try founder.change(RightsChange(end, isConfirmed: true))
    #expect(try level(founder, of: "node 2", in: room) == "none")
    let back = try founder.change(RightsChange(.raise("node 1"), isDryRun: true)).effects
    #expect(back.contains { $0.contains("node 2") && $0.contains("may write in room=1") }, "\(back)")
  }

  @Test("a dry run names whom a device that manages no more, and is ended, had granted something")
  func effectsOfAFormerManager() throws {
    let fleet = try TestFleet(3, isClosed: true)
    let (founder, room) = (fleet.nodes[0], try PartitionName("room=1"))
    try founder.put(room, "c", "a", body(["n": .int(1)]))
    _ = try grant(founder, "device:node 1", "manage", "room=1")
    try eventually { (try? grant(fleet.nodes[1], "user:user2@test.example", "write", "room=1"))?.isSigned == true }
    try eventually { try level(founder, of: "node 2", in: room) == "write" }
    _ = try grant(founder, "device:node 1", "write", "room=1")
    #expect(try level(founder, of: "node 2", in: room) == "write")
    let end = RightsChange.Action.revoke(device: "node 1", isCompromised: true, at: "2020-01-01T00:00:00Z")
    let effects = try founder.change(RightsChange(end, isDryRun: true)).effects
    #expect(effects.contains { $0.contains("node 2") && $0.contains("may no longer write in room=1") }, "\(effects)")
  }

  @Test("four digits of a key name its device, fewer do not")
  func fewDigits() throws {
    let fleet = try TestFleet(2)
    let key = try #require(try fleet.nodes[0].devices().first { $0.label == "node 1" }?.device)
    for count in [4, 5, 12] {
      let change = RightsChange(.retire(device: String(key.prefix(count))), isDryRun: true)
      let says = try fleet.nodes[0].change(change).says
      #expect(says.count == 1 && says[0].contains("node 1"), "\(count): \(says)")
    }
    let refused = #expect(throws: NodeError.self) {
      try fleet.nodes[0].change(RightsChange(.retire(device: String(key.prefix(3))), isDryRun: true))
    }
    #expect(refused?.code == .notFound)
  }

  @Test("whoever invites with a role that nobody has and nobody granted anything to is told so")
  func unknownRole() throws {
    let fleet = try TestFleet(2, isClosed: true)
    let node = fleet.nodes[0]
    func notes(_ role: Text) throws -> [String] {
      try node.invite(InviteRequest(user: "eve", role: role, profile: ValueMap())).notes
    }
    #expect(try notes("amdin").count == 1 && notes("amdin")[0].contains("has the role amdin yet"))
    for role in ["", "relay", "officer"] as [Text] { #expect(try notes(role).isEmpty, "\(role)") }
    #expect(try notes("captain").count == 1)
    _ = try grant(node, "role:captain", "write", "room=*")
    #expect(try notes("captain").isEmpty)
  }

  @Test("what takes something away is signed only where it is confirmed, what only gives is signed as it is asked for")
  func confirming() throws {
    let fleet = try TestFleet(2)
    let founder = fleet.nodes[0]
    let before = try founder.statementCount()
    let closing = RightsChange.Action.grant(who: "everyone", level: "read", pattern: "*")
    for action: RightsChange.Action in [
      closing, .retire(device: "node 1"), .revoke(device: "node 1", isCompromised: false, at: nil),
    ] {
      let refused = #expect(throws: NodeError.self) { try founder.change(RightsChange(action)) }
      #expect(refused?.code == .unprocessable)
      #expect(
        refused?.message.hasPrefix(#"this takes something away: nothing was signed; confirm it with "yes": true"#)
          == true)
    }
    #expect(try founder.statementCount() == before)
    let giving = RightsChange.Action.grant(who: "role:officer", level: "manage", pattern: "room=*")
    #expect(try founder.change(RightsChange(giving)).isSigned)
    #expect(try founder.change(RightsChange(closing, isConfirmed: true)).isSigned)
    // Said twice it takes nothing away.
    #expect(try founder.change(RightsChange(closing)).statements.isEmpty)
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
