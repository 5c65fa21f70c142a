import Foundation
import Identity
import Replication
import Storage
import TestSupport
import Testing
import Wire

@testable import Engine
@testable import Seamesh

/// Devices ended and their work held, given back, or kept: with others away meanwhile, and back later.
@Suite("Ends of devices in use", .serialized)
struct RevocationTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("room=1") }

  private func fleet(_ count: Int) throws -> TestFleet {
    let fleet = try TestFleet(count)
    for node in fleet.nodes { try node.subscribe("room=*") }
    try fleet.nodes[1].put(partition, "c", "good", body(["n": .int(1)]))
    for node in fleet.nodes { try eventually { try shows(node, "good") } }
    return fleet
  }

  /// Whether it counts there: an ended device shows nobody anything.
  private func shows(_ node: Node, _ id: Text) throws -> Bool {
    try node.documents.stored(partition, "c", id: .string(id)) != nil
  }

  private func digest(_ node: Node) throws -> String? {
    try node.partitions(withDigests: true).first { $0.name == partition.text.string }?.digest
  }

  private func held(_ node: Node) throws -> Int64 { try node.status().held.values.reduce(0, +) }

  /// A moment after all that has arrived, and before all that will.
  private func now() -> String {
    let start = WallClock.milliseconds
    _ = waitUntil { WallClock.milliseconds > start }
    let text = String(decoding: CalendarTime.text(WallClock.milliseconds) ?? [], as: UTF8.self)
    let last = WallClock.milliseconds
    _ = waitUntil { WallClock.milliseconds > last }
    return text
  }

  private func revoke(
    _ node: Node, isCompromised: Bool = false, at: String? = nil, isDryRun: Bool = false
  ) throws -> RightsOutcome {
    try node.change(
      RightsChange(
        .revoke(device: "node 1", isCompromised: isCompromised, at: at), isDryRun: isDryRun, isConfirmed: true))
  }

  @Test("what a device wrote while it was away, and revoked, is handed over, held everywhere, and said there")
  func awayMeanwhile() throws {
    let fleet = try fleet(3)
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(partition, "c", "late", body(["n": .int(2)]))
    let outcome = try revoke(fleet.nodes[0])
    #expect(outcome.isSigned && outcome.falls.allSatisfy { $0.lostChanges == 0 } && outcome.warnings.isEmpty)
    #expect(try shows(fleet.nodes[1], "late"))
    try fleet.restart(1)
    try eventually { try !shows(fleet.nodes[1], "late") && shows(fleet.nodes[1], "good") }
    #expect(try held(fleet.nodes[1]) == 1)
    let refused = #expect(throws: NodeError.self) {
      try fleet.nodes[1].put(partition, "c", "more", body(["n": .int(3)]))
    }
    #expect(refused?.message.contains("its membership was ended by the end of node 1") == true)
    let unread = #expect(throws: NodeError.self) { try fleet.nodes[1].read(partition, "c", id: .string("good")) }
    #expect(unread?.code == .notPermitted && unread?.message.contains("its membership was ended by") == true)
    let own = try fleet.nodes[1].doctor().first { $0.code == "device-ended" }
    #expect(own?.message.contains("1 change") == true, "\(String(describing: own))")
    for node in fleet.nodes {
      try eventually { try held(node) == 1 }
      #expect(try shows(node, "good") && !shows(node, "late"))
    }
    #expect(try fleet.nodes[0].doctor().contains { $0.code == "held-of-ended-devices" })
    // A revoked device is told nothing more.
    try fleet.nodes[0].put(partition, "c", "secret", body(["n": .int(4)]))
    try eventually { try shows(fleet.nodes[2], "secret") }
    #expect(try !shows(fleet.nodes[1], "secret"))

    let raise = try fleet.nodes[0].change(RightsChange(.raise("node 1")))
    #expect(raise.isSigned && raise.falls.map(\.gainedChanges).reduce(0, +) == 1)
    for node in fleet.nodes { try eventually { try shows(node, "late") && held(node) == 0 } }
    #expect(try !shows(fleet.nodes[1], "secret"))
  }

  @Test("a device that is revoked from before its first write counts for nothing, on nodes that start again, too")
  func beforeItsReplica() throws {
    let fleet = try fleet(3)
    #expect(try revoke(fleet.nodes[0], at: "2020-01-01T00:00:00Z").isSigned)
    for node in fleet.nodes { try eventually { try !shows(node, "good") && held(node) == 1 } }
    for index in fleet.nodes.indices { try fleet.restart(index) }
    for node in fleet.nodes { try eventually { try !shows(node, "good") && held(node) == 1 } }
    #expect(try fleet.nodes[2].doctor().allSatisfy { $0.code != "store-damaged" })
    try fleet.nodes[2].put(partition, "c", "more", body(["n": .int(3)]))
    try eventually { try shows(fleet.nodes[0], "more") }
    #expect(try fleet.nodes[0].change(RightsChange(.raise("node 1"))).isSigned)
    for node in fleet.nodes { try eventually { try shows(node, "good") && held(node) == 0 } }
  }

  @Test("a device whose key others may have hands nothing over, and hears that it was ended")
  func compromised() throws {
    let fleet = try fleet(3)
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(partition, "c", "late", body(["n": .int(2)]))
    #expect(try revoke(fleet.nodes[0], isCompromised: true).isSigned)
    try fleet.restart(1)
    try eventually { try !shows(fleet.nodes[1], "late") }
    try fleet.nodes[0].put(partition, "c", "more", body(["n": .int(3)]))
    try eventually { try shows(fleet.nodes[2], "more") }
    #expect(try held(fleet.nodes[0]) == 0 && held(fleet.nodes[2]) == 0 && !shows(fleet.nodes[1], "more"))
  }

  @Test("what came after a device was stolen falls everywhere and comes back with a raise, whoever was away")
  func stolen() throws {
    let fleet = try fleet(4)
    let moment = now()
    for id: Text in ["bad1", "bad2"] { try fleet.nodes[1].put(partition, "c", id, body(["n": .int(9)])) }
    try fleet.nodes[1].put(partition, "c", "good", body(["n": .int(9)]))
    for node in fleet.nodes { try eventually { try shows(node, "bad2") } }
    for node in fleet.nodes {
      try eventually { try node.documents.stored(partition, "c", id: .string("good"))?.body == body(["n": .int(9)]) }
    }
    // Written on top of it by somebody honest: that stays.
    try fleet.nodes[2].put(partition, "c", "own", body(["n": .int(5)]))
    for node in fleet.nodes { try eventually { try shows(node, "own") } }
    let before = try digest(fleet.nodes[0])
    try fleet.restart(3, peers: [])
    let dry = try revoke(fleet.nodes[0], isCompromised: true, at: moment, isDryRun: true)
    let fall = dry.falls.first { $0.partition == partition.text.string }
    #expect(fall?.lostChanges == 3 && fall?.documents == 3 && fall?.gainedChanges == 0)
    #expect(try !dry.isSigned && shows(fleet.nodes[0], "bad1") && digest(fleet.nodes[0]) == before)
    let outcome = try revoke(fleet.nodes[0], isCompromised: true, at: moment)
    #expect(outcome.falls == dry.falls && outcome.isSigned)
    try fleet.restart(3)
    for node in fleet.nodes {
      try eventually { try !shows(node, "bad1") && !shows(node, "bad2") && shows(node, "own") }
      try eventually { try node.documents.stored(partition, "c", id: .string("good"))?.body == body(["n": .int(1)]) }
      #expect(try held(node) == 3)
    }
    let fallen = try digest(fleet.nodes[0])
    #expect(try fleet.nodes.allSatisfy { try digest($0) == fallen } && fallen != before)
    let finding = try fleet.nodes[0].doctor().first { $0.code == "held-of-ended-devices" }
    #expect(finding?.message.contains("3 changes") == true && finding?.message.contains("node 1") == true)

    try fleet.restart(2, peers: [])
    let raise = try fleet.nodes[0].change(RightsChange(.raise("node 1")))
    #expect(raise.isSigned && !raise.isNarrowing && raise.falls.map(\.gainedChanges).reduce(0, +) == 3)
    try fleet.restart(2)
    for node in fleet.nodes {
      try eventually { try shows(node, "bad1") && held(node) == 0 }
      try eventually { try digest(node) == before }
    }
    let nothing = #expect(throws: NodeError.self) { try fleet.nodes[0].change(RightsChange(.raise("node 1"))) }
    #expect(nothing?.message.contains("nothing holds anything back") == true)
    // Its work counts again; it is a member no longer.
    #expect(throws: NodeError.self) { try fleet.nodes[1].put(partition, "c", "x", body(["n": .int(1)])) }
  }

  @Test("what a retired device wrote goes on counting; a revocation keeps partitions that are not carried here")
  func retired() throws {
    let fleet = try fleet(2)
    let other = try PartitionName("room=2")
    try fleet.nodes[0].unsubscribe("room=*")
    try fleet.nodes[0].subscribe("room=1")
    try fleet.nodes[1].put(other, "c", "elsewhere", body(["n": .int(1)]))
    let outcome = try fleet.nodes[0].change(RightsChange(.retire(device: "node 1"), isConfirmed: true))
    #expect(outcome.isSigned)
    try eventually { try fleet.nodes[1].permissions(other, who: nil).members.contains { !$0.endedBy.isEmpty } }
    #expect(try fleet.nodes[1].documents.stored(other, "c", id: .string("elsewhere")) != nil)
    #expect(try shows(fleet.nodes[0], "good") && held(fleet.nodes[1]) == 0)
    let again = #expect(throws: NodeError.self) { try fleet.nodes[0].change(RightsChange(.retire(device: "node 1"))) }
    #expect(again?.message.contains("no member any more") == true)
  }

  @Test(
    "in a partition that is carried, a chain of which nothing is here counts after a retirement, not after a revocation"
  )
  func unseenChains() throws {
    for action: RightsChange.Action in [
      .retire(device: "node 1"), .revoke(device: "node 1", isCompromised: false, at: nil),
    ] {
      let fleet = try fleet(2)
      let other = try PartitionName("room=2")
      try fleet.nodes[0].put(other, "c", "first", body(["n": .int(1)]))
      try eventually { try fleet.nodes[1].read(other, "c", id: .string("first")) != nil }
      try fleet.restart(1, peers: [])
      try fleet.nodes[1].put(other, "c", "unseen", body(["n": .int(1)]))
      // Nobody else has anything of it, so that no list can name it.
      let unknown = try PartitionName("room=3")
      try fleet.nodes[1].put(unknown, "c", "unseen", body(["n": .int(1)]))
      #expect(try fleet.nodes[0].change(RightsChange(action, isConfirmed: true)).isSigned)
      try fleet.restart(1)
      try eventually { try fleet.nodes[1].permissions(other, who: nil).members.contains { !$0.endedBy.isEmpty } }
      let isKept = if case .retire = action { true } else { false }
      #expect(try (fleet.nodes[1].documents.stored(other, "c", id: .string("unseen")) != nil) == isKept)
      #expect(try held(fleet.nodes[1]) == (isKept ? 0 : 1))
      // It is handed over, and counts or is held where it comes.
      func isThere(_ partition: PartitionName) throws -> Bool {
        try fleet.nodes[0].documents.stored(partition, "c", id: .string("unseen")) != nil
      }
      try eventually { try isThere(other) == isKept && held(fleet.nodes[0]) == (isKept ? 0 : 1) && isThere(unknown) }
    }
  }

  @Test("a device that was retired before anybody had heard of its replica id hands over what it wrote, once raised")
  func raisedUnheard() throws {
    let fleet = try TestFleet(3)
    for node in fleet.nodes { try node.subscribe("room=*") }
    try fleet.nodes[0].put(partition, "c", "good", body(["n": .int(1)]))
    for node in fleet.nodes { try eventually { try shows(node, "good") } }
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(partition, "c", "late", body(["n": .int(2)]))
    #expect(try fleet.nodes[0].change(RightsChange(.retire(device: "node 1"), isConfirmed: true)).isSigned)
    try fleet.restart(1)
    try eventually { try !shows(fleet.nodes[1], "late") }
    let own = try fleet.nodes[1].doctor().first { $0.code == "device-ended" }
    #expect(own?.message.contains("1 change") == true, "\(String(describing: own))")
    func isNamed() throws -> Bool { try fleet.nodes[0].doctor().contains { $0.code == "ended-device-unheard" } }
    try eventually { try isNamed() }
    #expect(try fleet.nodes[0].change(RightsChange(.raise("node 1"))).isSigned)
    for node in fleet.nodes { try eventually { try shows(node, "late") && held(node) == 0 } }
    #expect(try !isNamed())
  }

  @Test("an end that lists a partition of which a node knows nothing bounds what comes of it there later")
  func unknownPartition() throws {
    let fleet = try TestFleet(3)
    let other = try PartitionName("room=2")
    func shown(_ node: Node) throws -> [Bool] {
      try ["early", "late"].map { try node.documents.stored(other, "c", id: .string($0)) != nil }
    }
    try fleet.nodes[0].subscribe("room=*")
    try fleet.nodes[2].subscribe("room=1")
    try fleet.nodes[1].put(other, "c", "early", body(["n": .int(1)]))
    try eventually { try shown(fleet.nodes[0]) == [true, false] }
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(other, "c", "late", body(["n": .int(2)]))
    #expect(try revoke(fleet.nodes[0]).isSigned)
    try eventually { try fleet.nodes[2].devices().first { $0.label == "node 1" }?.endedBy.isEmpty == false }
    #expect(try fleet.nodes[2].partitions(withDigests: false).allSatisfy { $0.name != other.text.string })
    try fleet.restart(2)
    try fleet.nodes[2].subscribe("room=2")
    try eventually { try shown(fleet.nodes[2]) == [true, false] }
    try fleet.restart(1)
    for node in fleet.nodes { try eventually { try held(node) == 1 && shown(node) == [true, false] } }
  }

  @Test("who manages a partition gives back what a lowered grant held there, and not what the end of a device did")
  func raisedByManager() throws {
    let fleet = try TestFleet(3, isClosed: true)
    func grant(_ device: Int, _ level: String) throws -> RightsOutcome {
      try fleet.nodes[0].change(
        RightsChange(.grant(who: "device:node \(device)", level: level, pattern: "room=*"), isConfirmed: true))
    }
    for node in fleet.nodes { try node.subscribe("room=*") }
    _ = try grant(1, "write")
    let manager = fleet.nodes[2]
    _ = try grant(2, "manage")
    try eventually { try manager.permissions(partition, who: "device:node 2").members.first?.level == "manage" }
    try eventually { try fleet.nodes[1].permissions(partition, who: "device:node 1").members.first?.level == "write" }
    try fleet.nodes[1].put(partition, "c", "good", body(["n": .int(1)]))
    for node in fleet.nodes { try eventually { try shows(node, "good") } }

    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(partition, "c", "late", body(["n": .int(2)]))
    let lowered = try grant(1, "read").statements
    try fleet.restart(1)
    for node in fleet.nodes { try eventually { try held(node) == 1 && !shows(node, "late") } }
    let raises = try lowered.map { try manager.change(RightsChange(.raise($0))) }
    #expect(raises.map(\.signer) == ["this device"] && raises.allSatisfy { $0.isSigned && !$0.isNarrowing })
    #expect(raises.flatMap(\.falls).map(\.gainedChanges).reduce(0, +) == 1)
    for node in fleet.nodes { try eventually { try shows(node, "late") && held(node) == 0 } }
    // Up to where it was raised: the level is the lowered one.
    #expect(throws: NodeError.self) { try fleet.nodes[1].put(partition, "c", "more", body(["n": .int(3)])) }

    // About members admins decide.
    let moment = "2020-01-01T00:00:00Z"
    #expect(try revoke(fleet.nodes[0], at: moment).isSigned)
    try eventually { try held(manager) == 2 }
    let refused = #expect(throws: NodeError.self) { try manager.change(RightsChange(.raise("node 1"))) }
    #expect(refused?.code == .notPermitted, "\(String(describing: refused))")
  }

  @Test(
    "what an admin's lost device wrote another admin gives back without the root key, which alone gives back the rest")
  func raisedAdmin() throws {
    let fleet = try fleet(3)
    for label in ["node 1", "node 2"] {
      _ = try fleet.nodes[0].change(RightsChange(.promote(device: label)))
    }
    try eventually { try fleet.nodes[2].devices().count { $0.roles.contains("admin") } == 3 }
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(partition, "c", "late", body(["n": .int(2)]))
    let other = fleet.nodes[2]
    #expect(try revoke(other).signer == "this device")
    try fleet.restart(1)
    try eventually { try held(other) == 1 && !shows(other, "late") }
    let raise = try other.change(RightsChange(.raise("node 1"), isConfirmed: true))
    #expect(raise.isSigned && raise.signer == "this device")
    #expect(raise.falls.map(\.gainedChanges).reduce(0, +) == 1)
    #expect(raise.notes.contains { $0.contains("only the fleet's root key gives back") }, "\(raise.notes)")
    for node in fleet.nodes { try eventually { try shows(node, "late") && held(node) == 0 } }
    // Whom it lets in and what it grants: nothing of that comes back.
    #expect(try !fleet.nodes[1].status().endedBy.isEmpty)
    let nothing = #expect(throws: NodeError.self) { try other.change(RightsChange(.raise("node 1"))) }
    #expect(nothing?.code == .unprocessable, "\(String(describing: nothing))")
  }

  @Test("whoever wrote while his right was lowered is told that it is held, admins too, until it is raised")
  func heldOfLowered() throws {
    let fleet = try fleet(3)
    func finding(_ node: Node) throws -> DoctorFinding? {
      try node.doctor().first { $0.code == "held-of-lowered-rights" }
    }
    try fleet.restart(1, peers: [])
    for id: Text in ["late", "later"] { try fleet.nodes[1].put(partition, "c", id, body(["n": .int(2)])) }
    let lowered = try fleet.nodes[0].change(
      RightsChange(.grant(who: "everyone", level: "read", pattern: "*"), isConfirmed: true))
    try fleet.restart(1)
    for node in fleet.nodes { try eventually { try held(node) == 2 } }
    for node in [fleet.nodes[0], fleet.nodes[1]] {
      let finding = try #require(try finding(node))
      #expect(finding.message.contains("2 changes of node 1, by the "), "\(finding)")
      let ids = lowered.statements.map { String($0.prefix(8)) }
      #expect(ids.contains { finding.remedy.contains("seamesh raise \($0)") }, "\(finding)")
    }
    #expect(try finding(fleet.nodes[2]) == nil)

    let named = #expect(throws: NodeError.self) { try fleet.nodes[0].change(RightsChange(.raise("node 1"))) }
    #expect(named?.message.contains("a lowered right holds what it wrote: seamesh raise ") == true)
    let ids = try #require(try finding(fleet.nodes[0])).remedy.split { !$0.isHexDigit }.filter { $0.count == 8 }
      .filter { id in lowered.statements.contains { $0.hasPrefix(id) } }
    try #require(!ids.isEmpty)
    for id in ids { #expect(try fleet.nodes[0].change(RightsChange(.raise(String(id)))).isSigned) }
    for node in fleet.nodes {
      try eventually { try held(node) == 0 && shows(node, "later") }
      #expect(try finding(node) == nil)
    }
  }

  @Test("of a right that was lowered twice doctor names what holds the work, and that gives it back")
  func loweredTwice() throws {
    let fleet = try fleet(2)
    let room = try PartitionName("room=1")
    func set(_ level: String) throws -> RightsOutcome {
      try fleet.nodes[0].change(
        RightsChange(.grant(who: "device:node 1", level: level, pattern: "room=*"), isConfirmed: true))
    }
    _ = try fleet.nodes[0].change(
      RightsChange(.grant(who: "everyone", level: "read", pattern: "*"), isConfirmed: true))
    _ = try set("write")
    for node in fleet.nodes { try node.subscribe("room=*") }
    try eventually { (try? fleet.nodes[1].put(room, "c", "early", body(["n": .int(1)]))) != nil }
    try eventually { try fleet.nodes[0].read(room, "c", id: .string("early")) != nil }
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(room, "c", "late", body(["n": .int(2)]))
    let first = try #require(try set("read").statements.first).prefix(8)
    _ = try set("none")
    try fleet.restart(1)
    try eventually { try held(fleet.nodes[0]) == 1 }
    let finding = try #require(try fleet.nodes[0].doctor().first { $0.code == "held-of-lowered-rights" })
    #expect(finding.remedy.contains("seamesh raise \(first)") && finding.remedy.contains("of others"), "\(finding)")
    #expect(try fleet.nodes[0].change(RightsChange(.raise(String(first)))).isSigned)
    try eventually { try held(fleet.nodes[0]) == 0 }
    #expect(try fleet.nodes[0].read(room, "c", id: .string("late")) != nil)
  }

  @Test(
    "where several statements took a right away, of which raising any gives the work back, doctor advises the one that reaches fewest"
  )
  func loweredByMany() throws {
    let fleet = try fleet(2)
    func set(_ who: String, _ level: String, _ pattern: Text) throws -> RightsOutcome {
      try fleet.nodes[0].change(RightsChange(.grant(who: who, level: level, pattern: pattern), isConfirmed: true))
    }
    _ = try set("role:officer", "write", "room=*")
    _ = try set("device:node 1", "write", "room=1")
    try fleet.restart(1, peers: [])
    for id: Text in ["late", "later"] { try fleet.nodes[1].put(partition, "c", id, body(["n": .int(2)])) }
    for (who, pattern): (String, Text) in [("everyone", "*"), ("role:officer", "room=*")] {
      _ = try set(who, "read", pattern)
    }
    let narrowest = try #require(try set("device:node 1", "read", "room=1").statements.first).prefix(8)
    try fleet.restart(1)
    try eventually { try held(fleet.nodes[0]) == 2 }
    let finding = try #require(try fleet.nodes[0].doctor().first { $0.code == "held-of-lowered-rights" })
    #expect(
      finding.remedy.split(separator: "seamesh raise ", omittingEmptySubsequences: false).count == 2, "\(finding)")
    #expect(finding.remedy.contains("seamesh raise \(narrowest)"), "\(finding)")
    #expect(finding.message.contains("the grant role:officer read room=*"), "\(finding)")
    #expect(try fleet.nodes[0].change(RightsChange(.raise(String(narrowest)))).isSigned)
    for node in fleet.nodes { try eventually { try held(node) == 0 && shows(node, "later") } }
  }

  @Test("an id that takes nothing away is told as what it is, and not as a device that is none")
  func raisedInVain() throws {
    let fleet = try TestFleet(2)
    let founder = fleet.nodes[0]
    let grant = try founder.change(RightsChange(.grant(who: "role:officer", level: "manage", pattern: "room=*")))
    let id = String(try #require(grant.statements.first).prefix(8))
    let wider = #expect(throws: NodeError.self) { try founder.change(RightsChange(.raise(id))) }
    #expect(wider?.code == .unprocessable && wider?.message.contains("the grant role:officer manage room=*") == true)
    let unknown = #expect(throws: NodeError.self) { try founder.change(RightsChange(.raise("0123456789"))) }
    #expect(unknown?.code == .notFound && unknown?.message.contains("takes something away") == true)
    let standing = #expect(throws: NodeError.self) { try founder.change(RightsChange(.raise("node 1"))) }
    #expect(standing?.message.contains("nothing holds anything back") == true)
  }

  @Test("an admin is made and ended by the root's key; ending oneself, or the last admin, has to be confirmed")
  func admins() throws {
    let fleet = try fleet(2)
    let selfEnd = RightsChange.Action.revoke(device: "node 0", isCompromised: false, at: nil)
    let refused = #expect(throws: NodeError.self) { try fleet.nodes[0].change(RightsChange(selfEnd)) }
    #expect(refused?.message.contains("the device on which it is asked for") == true)
    #expect(refused?.message.contains("last admin") == true)
    let promotion = try fleet.nodes[0].change(RightsChange(.promote(device: "node 1")))
    #expect(promotion.signer == "the fleet's root")
    try eventually { try fleet.nodes[1].engine.ask { $0.state.mesh.authority.standingAdmins.count } == 2 }
    // Said twice is said once.
    let again = try fleet.nodes[0].change(RightsChange(.promote(device: "node 1")))
    #expect(!again.isSigned && again.statements.isEmpty)
    // Another admin's device may decide now, and end the first.
    let grant = try fleet.nodes[1].change(
      RightsChange(.grant(who: "role:officer", level: "read", pattern: "log*")))
    #expect(grant.signer == "this device")
    let ended = try fleet.nodes[1].change(RightsChange(selfEnd, isConfirmed: true))
    #expect(ended.isSigned && ended.warnings.isEmpty && ended.signer == "this device")
    try eventually { try fleet.nodes[0].engine.ask { $0.state.mesh.authority.standingAdmins.count } == 1 }
    let last = RightsChange.Action.revoke(device: "node 1", isCompromised: false, at: nil)
    let warned = try fleet.nodes[0].change(RightsChange(last, isDryRun: true))
    #expect(warned.signer == "the fleet's root" && warned.warnings.count == 1)
    #expect(try fleet.nodes[0].change(RightsChange(last, isConfirmed: true)).isSigned)
    #expect(try fleet.nodes[0].engine.ask { $0.state.mesh.authority.standingAdmins.isEmpty })
  }

  @Test("devices show who was ended, by whom and since when, and nobody else; a device with two memberships is one")
  func listed() throws {
    let fleet = try fleet(3)
    func ended(_ node: Node) throws -> [String: [RightStatus]] {
      Dictionary(uniqueKeysWithValues: try node.devices().map { ($0.label, $0.endedBy) })
    }
    #expect(try ended(fleet.nodes[0]).values.allSatisfy(\.isEmpty))
    _ = try fleet.nodes[0].change(RightsChange(.promote(device: "node 1")))
    for node in fleet.nodes {
      try eventually { try node.devices().first { $0.label == "node 1" }?.role == "admin" }
      let members = try node.permissions(partition, who: nil).members
      #expect(members.map(\.label) == ["node 0", "node 1", "node 2"])
      #expect(members.map(\.level) == ["write", "write", "write"])
      // The grant to everyone reaches both of its memberships.
      #expect(members[1].rights.map(\.id).count == 1 && members[1].rights[0].isInForce)
      #expect(try node.permissions(partition, who: "role:officer").members.map(\.label) == ["node 1", "node 2"])
      #expect(try node.devices().count == 3 && ended(node).values.allSatisfy(\.isEmpty))
    }
    let outcome = try revoke(fleet.nodes[0], isCompromised: true)
    for node in fleet.nodes {
      try eventually { try ended(node)["node 1"]?.isEmpty == false }
      let ends = try ended(node)
      #expect(ends["node 1"]?.map(\.id).sorted() == outcome.statements.sorted())
      #expect(ends["node 1"]?.allSatisfy { $0.since != nil && $0.words.contains("as compromised") } == true)
      #expect(ends["node 0"]?.isEmpty == true && ends["node 2"]?.isEmpty == true)
      let member = try node.permissions(partition, who: "device:node 1").members
      #expect(member.count == 1 && member[0].level == "none" && member[0].endedBy == ends["node 1"])
      #expect(member[0].rights.allSatisfy { !$0.isInForce })
    }
  }

  @Test("a lowered grant holds what comes after it, and a later grant admits it")
  func lowered() throws {
    let fleet = try fleet(2)
    try fleet.restart(1, peers: [])
    try fleet.nodes[1].put(partition, "c", "late", body(["n": .int(2)]))
    _ = try fleet.nodes[0].change(
      RightsChange(.grant(who: "everyone", level: "read", pattern: "*"), isConfirmed: true))
    try fleet.restart(1)
    try eventually { try !shows(fleet.nodes[1], "late") && held(fleet.nodes[1]) == 1 }
    // Granted again, it counts by itself: a later grant admits what was held.
    _ = try fleet.nodes[0].change(RightsChange(.grant(who: "role:officer", level: "write", pattern: "room=*")))
    try eventually { try shows(fleet.nodes[1], "late") && held(fleet.nodes[1]) == 0 }
    // It is offered with the next comparison, which a new session begins with.
    try fleet.restart(1)
    try eventually { try shows(fleet.nodes[0], "late") }
  }
}
