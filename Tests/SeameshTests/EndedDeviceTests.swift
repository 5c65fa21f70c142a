import Identity
import Testing

@testable import Engine
@testable import Replication
@testable import Seamesh

/// What people are told of devices that were ended, let in again, or are called like others.
@Suite("What is said of ended devices", .serialized)
struct EndedDeviceTests {
  private func change(_ node: Node, _ action: RightsChange.Action) throws -> RightsOutcome {
    try node.change(RightsChange(action, isConfirmed: true))
  }

  private func refusal(_ node: Node, _ action: RightsChange.Action, isConfirmed: Bool = false) -> NodeError? {
    #expect(throws: NodeError.self) { try node.change(RightsChange(action, isConfirmed: isConfirmed)) }
  }

  private static let ends: [(RightsChange.Action, String)] = [
    (.retire(device: "node 1"), "retired by node 0, 20"),
    (.revoke(device: "node 1", isCompromised: false, at: nil), "revoked by node 0, 20"),
    (.revoke(device: "node 1", isCompromised: true, at: nil), "revoked as compromised by node 0, 20"),
  ]

  @Test(
    "an ended device is promoted only with a yes, which is asked for with what ended it, by whom and when",
    arguments: 0..<3)
  func promoted(_ which: Int) throws {
    let fleet = try TestFleet(2)
    let (founder, (end, words)) = (fleet.nodes[0], EndedDeviceTests.ends[which])
    _ = try change(founder, end)
    let before = try founder.statementCount()
    let refused = refusal(founder, .promote(device: "node 1"))
    #expect(refused?.code == .unprocessable)
    #expect(refused?.message.contains("is no member any more: it was \(words)") == true, "\(refused?.message ?? "")")
    #expect(refused?.message.contains(#"nothing was signed; confirm it with "yes": true"#) == true)
    #expect(try founder.statementCount() == before)
    let preview = try founder.change(RightsChange(.promote(device: "node 1"), isDryRun: true))
    #expect(preview.warnings.count == 1 && preview.warnings[0].contains(words), "\(preview.warnings)")
    #expect(try change(founder, .promote(device: "node 1")).isSigned)
    #expect(try founder.devices().first { $0.label == "node 1" }?.roles == ["admin"])
    // It is an admin already: nothing is to be confirmed.
    #expect(try founder.change(RightsChange(.promote(device: "node 1"))).warnings.isEmpty)
  }

  @Test("a member that was never ended is promoted as it is asked for, without a warning")
  func promotedMember() throws {
    let fleet = try TestFleet(2)
    let outcome = try fleet.nodes[0].change(RightsChange(.promote(device: "node 1")))
    #expect(outcome.isSigned && outcome.warnings.isEmpty && outcome.notes.isEmpty)
  }

  @Test("a device has all roles of its memberships on every node, whichever was signed or heard of first")
  func roles() throws {
    let fleet = try TestFleet(2)
    let founder = fleet.nodes[0]
    // Numbers of statements are each issuer's own: these put the founder's above the root's.
    for number in 0..<20 {
      _ = try change(founder, .grant(who: "user:u\(number)", level: "read", pattern: "room=1"))
    }
    _ = try join("late", fleet)
    for label in ["node 1", "late"] { _ = try change(founder, .promote(device: label)) }
    for node in fleet.nodes {
      try eventually { try node.devices().count { $0.roles == ["admin", "officer"] } == 2 }
      #expect(try node.devices().map(\.role) == ["admin", "admin", "admin"])
      #expect(
        try node.permissions(PartitionName("room=1"), who: nil).members.map(\.role) == ["admin", "admin", "admin"])
    }
    try checkOrders(founder)
  }

  private func checkOrders(_ node: Node) throws {
    let authority = try node.engine.ask { $0.state.mesh.authority }
    let all = authority.fleetStatements
    let (roots, others) = (all.filter { $0.issuer == authority.root }, all.filter { $0.issuer != authority.root })
    // The promotions are what the root signed last: heard of before everything of the others, and behind it.
    for order in [roots + others, roots.dropLast(2) + others + roots.suffix(2)] {
      var grown = Authority(root: authority.root, statements: [], hash: SHA256.hash)
      for statement in order { grown = grown.adding([statement]) }
      for member in authority.allMembers {
        #expect(grown.roles(of: member.device) == authority.roles(of: member.device))
      }
    }
  }

  /// Lets another device in, and does not start it; its key as `devices` shows it.
  private func join(_ label: Text, _ fleet: TestFleet) throws -> String {
    let founder = fleet.nodes[0]
    let before = Set(try founder.devices().map(\.device))
    let code = try founder.invite(InviteRequest(user: "again@test.example", role: "officer", profile: ValueMap())).code
    _ = try NodeSetup.join(
      try fleet.directory(), code: code, label: label, peers: [try fleet.peerAddress(of: founder)], usesDiscovery: false
    )
    return try #require(try founder.devices().map(\.device).first { !before.contains($0) })
  }

  @Test("an ended device's status says so, by whom and as what, and its peers mark it, also when it is silent")
  func status() throws {
    let fleet = try TestFleet(3)
    try eventually { try fleet.nodes[0].peers().count { $0.state == .connected } == 2 }
    #expect(try fleet.nodes.allSatisfy { try $0.status().endedBy.isEmpty && $0.peers().allSatisfy { !$0.isEnded } })
    _ = try change(fleet.nodes[0], .revoke(device: "node 1", isCompromised: false, at: nil))
    try eventually { try !fleet.nodes[1].status().endedBy.isEmpty }
    let end = try #require(try fleet.nodes[1].status().endedBy.first)
    #expect(end.issuer == "node 0" && end.manner == "revoke" && end.since != nil)
    #expect(try fleet.nodes[0].status().endedBy.isEmpty)
    func marked() throws -> [String] { try fleet.nodes[0].peers().filter(\.isEnded).map(\.label) }
    #expect(try marked() == ["node 1"])
    fleet.nodes[1].stop()
    try eventually { try fleet.nodes[0].peers().contains { $0.label == "node 1" && $0.state == .silent } }
    #expect(try marked() == ["node 1"])
  }

  @Test("of two devices of one label the one that was not ended gets a right; what is for good names a key")
  func sameLabel() throws {
    let fleet = try TestFleet(2)
    let founder = fleet.nodes[0]
    let room = try PartitionName("room=1")
    for node in fleet.nodes { try node.subscribe("room=*") }
    let old = try #require(try founder.devices().first { $0.label == "node 1" }?.device)
    try fleet.nodes[1].put(room, "c", "good", body(["n": .int(1)]))
    try eventually { try founder.status().changes == 1 }
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(room, "c", "late", body(["n": .int(2)]))
    _ = try change(founder, .retire(device: "node 1"))
    let new = try join("node 1", fleet)
    let (oldShort, newShort) = (String(old.prefix(8)), String(new.prefix(8)))
    for action: RightsChange.Action in [
      .grant(who: "device:node 1", level: "read", pattern: "room=1"), .promote(device: "node 1"),
    ] {
      let preview = try founder.change(RightsChange(action, isDryRun: true))
      let note = try #require(preview.notes.first)
      #expect(note.contains("not ended is taken, \(newShort)") && note.hasSuffix("\(oldShort) (ended)"), "\(note)")
    }
    for action: RightsChange.Action in [
      .retire(device: "node 1"), .revoke(device: "node 1", isCompromised: false, at: nil), .raise("node 1"),
    ] {
      let unclear = refusal(founder, action, isConfirmed: true)
      let ids = [newShort, "\(oldShort) (ended)"]
      #expect(unclear?.message.contains("2 devices are called node 1: name one by its key") == true, "\(action)")
      #expect(ids.allSatisfy { unclear?.message.contains($0) == true }, "\(action)")
    }
    try fleet.restart(1)
    try eventually { try founder.status().held.values.reduce(0, +) == 1 }
    #expect(try founder.change(RightsChange(.raise(oldShort))).isSigned)
    // A question, or two that stand, has no such preference.
    #expect(throws: NodeError.self) { try founder.permissions(nil, who: "device:node 1") }
    _ = try join("node 1", fleet)
    let unclear = refusal(founder, .retire(device: "node 1"), isConfirmed: true)
    #expect(unclear?.message.contains("3 devices are called node 1: name one by its key") == true)
    #expect(try change(founder, .retire(device: newShort)).notes.isEmpty)
  }
}
