import Replication
import Testing
import Wire

@testable import Identity

@Suite struct StatementTests {
  private func bodies() throws -> [Statement.Body] {
    let device = try Fixture.key(30).publicKey
    let profile = try #require(ValueMap([.init(key: "agency", value: .string("Gabon"))]))
    return [
      .genesis(Statement.Genesis(fleetName: "North")),
      .membership(
        Statement.Membership(device: device, user: "anna", label: "bridge", role: "officer", profile: profile)),
      .replica(
        Statement.ReplicaDeclaration(
          replica: ReplicaID(high: 1, low: 2), nonce: UUIDValue(high: 3, low: 4), membership: SHA256.hash([5]))),
      .grant(Statement.Grant(subject: .user("anna"), level: .manage, pattern: "agency=*")),
      .rule(Statement.Rule(key: "agency")),
      .end(
        Statement.End(
          reason: .retire, target: .grant(SHA256.hash([6])), listing: Statement.Listing(keep: ["agency=*"]))),
    ]
  }

  @Test("statements of every kind verify as what was signed")
  func roundTrip() throws {
    let (fleet, key) = (try Fixture.fleet(), try Fixture.key(1))
    let signer = StatementSigner(fleet: fleet, key: key)
    var last: Statement?
    for (index, body) in try bodies().enumerated() {
      let statement = try signer.sign(body, after: last)
      let verified = try StatementVerifier(fleet: fleet).verify(statement.encoded)
      #expect(verified == statement)
      #expect(verified.body == body)
      #expect(verified.issuer == key.publicKey && verified.sequence == UInt64(index) + 1)
      #expect(verified.previous == last?.id)
      last = statement
    }
  }

  @Test("a statement with any bit turned or any byte cut is refused")
  func mutations() throws {
    let fleet = try Fixture.fleet()
    let verifier = StatementVerifier(fleet: fleet)
    let signer = StatementSigner(fleet: fleet, key: try Fixture.key(1))
    for body in try bodies() {
      let whole = try signer.sign(body).encoded
      for place in whole.indices {
        #expect(throws: StatementVerifier.Failure.self) { try verifier.verify(whole[..<place]) }
        for bit in 0..<8 {
          var bytes = whole
          bytes[place] ^= 1 << UInt8(bit)
          #expect(throws: StatementVerifier.Failure.self) { try verifier.verify(bytes) }
        }
      }
    }
  }

  @Test("another fleet's statement, and one signed by another key than it names, are told apart")
  func forgery() throws {
    let (fleet, body) = (try Fixture.fleet(1), Statement.Body.rule(Statement.Rule(key: "agency")))
    let foreign = try StatementSigner(fleet: try Fixture.fleet(2), key: try Fixture.key(1)).sign(body)
    #expect(throws: StatementVerifier.Failure.otherFleet(try Fixture.fleet(2))) {
      try StatementVerifier(fleet: fleet).verify(foreign.encoded)
    }
    let issuer = try Fixture.key(1).publicKey
    let unsigned = try StatementCodec.unsigned(fleet: fleet, issuer: issuer, body: body)
    let forged = try StatementCodec.assemble(
      unsigned: unsigned, signature: try Fixture.key(2).sign(unsigned), SHA256.hash)
    #expect(throws: StatementVerifier.Failure.signature(issuer: issuer)) {
      try StatementVerifier(fleet: fleet).verify(forged.encoded)
    }
  }

  @Test("a declared replica's id follows from device and nonce")
  func declaration() throws {
    let (fleet, key) = (try Fixture.fleet(), try Fixture.key(40))
    let nonce = UUIDValue(high: 7, low: 8)
    let statement = try StatementSigner(fleet: fleet, key: key).declareReplica(
      nonce: nonce, membership: SHA256.hash([1]))
    guard case .replica(let declared) = statement.body else {
      Issue.record("not a declaration")
      return
    }
    let input = Array("seamesh/1 replic".utf8) + DeviceID(key.publicKey).digest.bytes + nonce.bytes
    #expect(declared.replica.bytes == Array(SHA256.hash(input).bytes.prefix(16)))
    #expect(declared.nonce == nonce && declared.membership == SHA256.hash([1]))
  }
}

@Suite struct FleetFoundingTests {
  private func founded() throws -> FleetFounding {
    let profile = try #require(ValueMap([.init(key: "agency", value: .string("Gabon"))]))
    return try FleetFounding.make(
      fleetName: "North", user: "anna", label: "bridge", profile: profile, random: Fixture.randomSource(seed: 77))
  }

  @Test("every statement verifies, is the root's, and follows the one before")
  func statements() throws {
    let fleet = try founded()
    #expect(fleet.fleet == FleetID(root: fleet.rootKey.publicKey))
    for (index, statement) in fleet.statements.enumerated() {
      #expect(try StatementVerifier(fleet: fleet.fleet).verify(statement.encoded) == statement)
      #expect(statement.issuer == fleet.rootKey.publicKey)
      #expect(statement.sequence == UInt64(index) + 1)
      #expect(statement.previous == (index == 0 ? nil : fleet.statements[index - 1].id))
    }
  }

  @Test("genesis names the fleet, membership makes this device an admin, and the fleet is open")
  func content() throws {
    let fleet = try founded()
    let bodies = fleet.statements.map(\.body)
    try #require(bodies.count == 7)
    #expect(bodies[0] == .genesis(Statement.Genesis(fleetName: "North")))
    guard case .membership(let membership) = bodies[1] else {
      Issue.record("no membership")
      return
    }
    #expect(membership.device == fleet.deviceKey.publicKey)
    #expect(membership.role == "admin" && membership.user == "anna" && membership.label == "bridge")
    #expect(membership.profile["agency"] == .string("Gabon"))
    #expect(fleet.membership == fleet.statements[1].id)
    let rules = ["agency", "user", "all-users", "conversation"] as [Text]
    #expect(Array(bodies[2...5]) == rules.map { .rule(Statement.Rule(key: $0)) })
    #expect(bodies[6] == .grant(Statement.Grant(subject: .everyone, level: .write, pattern: "*")))
  }

  @Test("under the founding statements the founder is an admin, and whoever is admitted writes every partition")
  func rights() throws {
    let fleet = try founded()
    let joiner = try Fixture.key(50).publicKey
    let admission = StatementSigner(fleet: fleet.fleet, key: fleet.deviceKey)
    let admitted = Statement.Membership(
      device: joiner, user: "ben", label: "port", role: "officer", profile: ValueMap())
    let membership = try admission.sign(.membership(admitted))
    let authority = Authority(
      root: fleet.rootKey.publicKey, statements: fleet.statements + [membership], hash: SHA256.hash)
    #expect(authority.isAdmin(fleet.deviceKey.publicKey))
    #expect(!authority.isAdmin(joiner))
    for name in ["agency=Gabon", "agency=Galapagos", "user=ben", "room=x", "plain"] as [Text] {
      #expect(authority.level(of: membership.id, in: try PartitionName(name)) == .write)
    }
    // What rules keep for somebody is no part of everything.
    for name in ["user=anna", "conversation=x", "_=x"] as [Text] {
      #expect(authority.level(of: membership.id, in: try PartitionName(name)) == .none)
    }
    let stranger = try Fixture.key(51).publicKey
    #expect(authority.level(of: stranger, in: try PartitionName("plain")) == .none)
  }

  @Test("in a closed fleet the same rules hold, admins manage, and whoever is admitted does what a rule lets him do")
  func closed() throws {
    let open = try founded()
    let fleet = try FleetFounding.make(fleetName: "North", user: "anna", label: "bridge", .closed)
    #expect(fleet.statements.dropFirst(2).dropLast().map(\.body) == open.statements.dropFirst(2).dropLast().map(\.body))
    let admission = StatementSigner(fleet: fleet.fleet, key: fleet.deviceKey)
    let profile = try #require(ValueMap([.init(key: "agency", value: .string("Gabon"))]))
    let membership = try admission.sign(
      .membership(
        Statement.Membership(
          device: Fixture.key(50).publicKey, user: "ben", label: "port", role: "officer", profile: profile)))
    let authority = Authority(
      root: fleet.rootKey.publicKey, statements: fleet.statements + [membership], hash: SHA256.hash)
    func level(_ id: Digest, _ name: Text) throws -> AccessLevel {
      authority.level(of: id, in: try PartitionName(name))
    }
    #expect(try level(membership.id, "plain") == .none && level(membership.id, "agency=Galapagos") == .none)
    #expect(try level(membership.id, "agency=Gabon") == .write && level(membership.id, "user=ben") == .write)
    #expect(try level(membership.id, "all-users=x") == .read)
    #expect(try level(fleet.membership, "plain") == .manage && level(fleet.membership, "user=ben") == .none)
  }

  @Test("a replica declared by the founder's device belongs to its membership")
  func declaration() throws {
    let fleet = try founded()
    let declaration = try StatementSigner(fleet: fleet.fleet, key: fleet.deviceKey).declareReplica(
      nonce: UUIDValue(high: 1, low: 2), membership: fleet.membership)
    guard case .replica(let declared) = declaration.body else {
      Issue.record("not a declaration")
      return
    }
    let authority = Authority(
      root: fleet.rootKey.publicKey, statements: fleet.statements + [declaration], hash: SHA256.hash)
    #expect(authority.membership(for: declared.replica)?.id == fleet.membership)
    #expect(authority.signer(of: declared.replica) == fleet.deviceKey.publicKey)
  }

  @Test("root and device keys differ, and no two fleets share any")
  func keys() throws {
    let (first, second) = (try founded(), try FleetFounding.make(fleetName: "North", user: "anna", label: "bridge"))
    let keys = [first, second].flatMap {
      [$0.rootKey.publicKey, $0.deviceKey.publicKey]
    }
    #expect(Set(keys).count == 4)
    #expect(try founded().statements == first.statements)
  }

  @Test("a name that no statement holds is refused")
  func limits() {
    let long = Text(String(repeating: "x", count: 256))
    #expect(throws: StatementError.self) { try FleetFounding.make(fleetName: long, user: "a", label: "b") }
    #expect(throws: StatementError.self) { try FleetFounding.make(fleetName: "a", user: long, label: "b") }
  }
}
