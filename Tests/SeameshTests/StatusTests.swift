import Testing

@testable import Engine
@testable import Replication
@testable import Seamesh

/// What a node says of itself.
@Suite(.serialized) struct StatusTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("room=1") }

  @Test("status, partitions and metrics count the same documents, over both nodes of a fleet")
  func counts() throws {
    let fleet = try TestFleet(2)
    for node in fleet.nodes { try node.subscribe("room=*") }
    for index in 0..<3 { try fleet.nodes[0].put(partition, "c", Text("\(index)"), body(["n": .int(1)])) }
    _ = try fleet.nodes[0].write(
      partition, [DocumentRequest(collection: "c", id: .string("0"), action: .delete)])
    try eventually { try fleet.nodes[1].digest(partition) == fleet.nodes[0].digest(partition) }
    for node in fleet.nodes {
      let status = try node.status()
      #expect(status.documents == 2 && status.changes == 4 && status.logBytes > 0)
      #expect(status.fleetName == "test" && status.version == Node.version && !status.readOnly)
      #expect(status.peersConnected == 1 && status.held.isEmpty && status.discovery == "off")
      let row = try #require(try node.partitions(withDigests: false).first)
      #expect(row.name == "room=1" && row.documents == 2 && row.changes == 4 && row.subscribed && row.digest == nil)
      #expect(row.vector.map(\.sequence) == [4])
      let metrics = try node.metrics()
      #expect(metrics.contains("\nseamesh_documents 2\n") && metrics.contains("\nseamesh_changes 4\n"))
      #expect(metrics.contains("\nseamesh_peers_connected 1\n"))
    }
    #expect(try fleet.nodes[0].status().replica == fleet.nodes[1].partitions(withDigests: false)[0].vector[0].replica)
    #expect(try fleet.nodes[1].status().replica == nil)
  }

  @Test("each node knows the devices of the fleet, and which of them it is")
  func devices() throws {
    let fleet = try TestFleet(2)
    try fleet.nodes[0].put(partition, "c", "a", body(["n": .int(1)]))
    try eventually { try fleet.nodes[1].devices().contains { !$0.replicas.isEmpty } }
    for (index, node) in fleet.nodes.enumerated() {
      let devices = try node.devices()
      #expect(Set(devices.map(\.label)) == ["node 0", "node 1"])
      #expect(devices.filter(\.isSelf).map(\.label) == ["node \(index)"])
      #expect(try devices.first(where: \.isSelf)?.device == node.status().device)
      #expect(devices.first { $0.label == "node 1" }?.role == "officer")
      #expect(devices.filter { !$0.replicas.isEmpty }.map(\.label) == ["node 0"])
    }
  }

  @Test("a peer is shown by its label, with what passed between the two")
  func peers() throws {
    let fleet = try TestFleet(2)
    try eventually { try fleet.nodes.allSatisfy { try $0.peers().map(\.state) == [.connected] } }
    let peer = try #require(try fleet.nodes[0].peers().first)
    #expect(peer.label == "node 1" && peer.user == "user1@test.example")
    #expect(peer.sentBytes > 0 && peer.receivedBytes > 0)
    #expect(try peer.device == fleet.nodes[1].status().device)
    fleet.nodes[1].stop()
    try eventually { try fleet.nodes[0].peers().allSatisfy { $0.state != .connected } }
  }

  @Test("a peer is shown with how long a word takes to it and back, in milliseconds")
  func roundTrip() throws {
    let fleet = try TestFleet(2)
    try eventually { try fleet.nodes[0].peers().map(\.state) == [.connected] }
    #expect(try fleet.nodes[0].peers().first?.roundTripMilliseconds == nil)
    try fleet.nodes[0].engine.ask { engine in
      let later = engine.state.clock.now.advanced(byMilliseconds: 70)
      for id in engine.state.mesh.sessions.ids { engine.state.mesh.sessions[id]?.pulse.hearPong(later) }
    }
    try eventually { try fleet.nodes[0].peers().first?.roundTripMilliseconds ?? 0 >= 70 }
  }

  @Test("a peer that falls silent stays in the list, with how far it is behind, also after a restart")
  func silentPeers() throws {
    let fleet = try TestFleet(2)
    try eventually { try fleet.nodes.allSatisfy { try $0.peers().map(\.state) == [.connected] } }
    let partition = try PartitionName("agency=A")
    try fleet.nodes[1].subscribe("agency=A")
    try fleet.nodes[0].put(partition, "reports", "r0", body(["n": .int(0)]))
    try eventually { try fleet.nodes[0].peers().map(\.behind) == [0] && fleet.nodes[1].status().changes == 1 }
    fleet.nodes[1].stop()
    try eventually { try fleet.nodes[0].peers().contains { $0.state == .silent } }
    for number in 1...3 { try fleet.nodes[0].put(partition, "reports", Text("r\(number)"), body(["n": .int(1)])) }
    let silent = try #require(try fleet.nodes[0].peers().first { $0.state == .silent })
    #expect(silent.label == "node 1")
    #expect(silent.behind == 3)
    #expect(silent.ahead == 0)
    #expect((silent.lastContactMilliseconds ?? -1) >= 0)
    try fleet.restart(0)
    let earlier = try #require(try fleet.nodes[0].peers().first { $0.label == "node 1" })
    #expect(earlier.state == .silent && earlier.behind == nil && earlier.device == silent.device)
    try fleet.restart(1)
    try eventually { try fleet.nodes[0].peers().map(\.state) == [.connected] }
  }

  @Test("the doctor finds a healthy node healthy, and names what is wrong with others")
  func doctor() throws {
    let healthy = try TestFleet(1)
    #expect(try healthy.nodes[0].doctor().map(\.code) == ["healthy"])
    let lonely = try TestFleet(1) { $0.peers = [.socket(SocketAddress(.ipv4(0x7f00_0001), port: 1))] }
    try eventually { try lonely.nodes[0].doctor().map(\.code) == ["peer-away"] }
    let awaited = try #require(try lonely.nodes[0].peers().first)
    #expect(awaited.state == .unreachable && awaited.behind == nil && awaited.ahead == nil)
    let strangers = try TestFleet(1)
    let address = try strangers.peerAddress(of: strangers.nodes[0])
    let visitor = try TestFleet(1) { $0.peers = [address] }
    try eventually { try visitor.nodes[0].doctor().contains { $0.code == "other-fleet" } }
    let stranger = try #require(try visitor.nodes[0].peers().first)
    #expect(stranger.state == .otherFleet && stranger.detail.isEmpty, "said once: \(stranger)")
  }

  @Test(
    "the doctor names a few of many nodes that are seen, and counts the others: whoever announces names buries nothing")
  func manyNames() throws {
    let peers = (1...40).flatMap { number in
      [PeerStatus.State.unreachable, .otherFleet, .refused, .seen, .connected].map { state in
        var peer = PeerStatus()
        (peer.address, peer.state, peer.detail) = ("10.0.0.\(number):1", state, "no reason given")
        peer.isFound = true
        if state == .connected { peer.clockDifference = 1_200_000 }
        return peer
      }
    }
    let findings = Doctor.findings(peers)
    #expect(findings.map(\.code).sorted() == ["clock-off", "not-a-member", "other-fleet", "peer-unreachable"])
    for finding in findings {
      #expect(finding.message.contains("10.0.0.1:1, 10.0.0.2:1, 10.0.0.3:1 and 37 more"), "\(finding.message)")
    }
    #expect(
      Doctor.findings(Array(peers.prefix(5))).first?.message == "The node at 10.0.0.1:1 belongs to another fleet.")
    var away = peers[0]
    (away.isFound, away.label) = (false, "tablet-bo")
    let finding = try #require(Doctor.findings([away]).first)
    #expect(finding.level == .warning && finding.message.contains("at 10.0.0.1:1 (tablet-bo)"), "\(finding)")
    #expect(Doctor.findings(Array(peers.filter { $0.state == .seen })).isEmpty)
  }

  @Test("where the node's own links keep it from a peer, or no reason is known, the doctor blames no firewall")
  func ownLinks() throws {
    func peer(_ number: Int, _ detail: String, _ link: PeerStatus.LinkCause? = nil, isFound: Bool = true) -> PeerStatus
    {
      var peer = PeerStatus()
      (peer.address, peer.state, peer.detail, peer.link) = ("10.0.0.\(number):1", .unreachable, detail, link)
      peer.isFound = isFound
      return peer
    }
    var (none, used) = (LinkReport(), LinkReport())
    (none.linkClass, none.passes) = ("none", "nothing")
    (used.linkClass, used.passes, used.bytesPerDay) = ("satellite", "authority", 1_000)
    let peers = [
      peer(1, "the link is of class none", .closed), peer(2, "moved", .moved), peer(3, ""),
      peer(4, "", isFound: false), peer(5, "no answer in time"), peer(6, "the connection ended (closed)", .ended),
    ]
    let findings = Doctor.findings(peers, [none, used])
    let codes = [
      "peer-link-closed", "peer-link-moved", "peer-ended", "peer-unreachable", "peer-unreachable", "peer-away",
    ]
    #expect(findings.map(\.code) == codes)
    #expect(findings.map { $0.remedy.contains("firewall") } == [false, false, false, true, false, false])
    #expect(findings[0].message.contains("class none, by a rule") && findings[0].remedy.contains("seamesh links"))
    #expect(findings[1].message.hasSuffix("used up of the class satellite."), "\(findings[1].message)")
    let ended = "Somebody answers at 10.0.0.6:1, but no session comes of it or stays: the connection ended (closed)."
    #expect(findings[2].message == ended)
    #expect(findings[3].message.hasSuffix("cannot be reached: no answer in time."))
    #expect(findings[4].message.hasSuffix("cannot be reached; no reason is known."), "\(findings[4].message)")
    none.isChosen = true
    let chosen = try #require(Doctor.findings([peers[0]], [none]).first)
    #expect(chosen.message.contains("--use") && chosen.remedy.contains("--use=auto"))
  }

  @Test("a clock that is off is told with its side, in a unit that people count in")
  func clockSentence() {
    let minute: Int64 = 60_000
    #expect(ClockDifference.sentence(11 * minute) == "its clock is 11 minutes ahead of this device's")
    #expect(ClockDifference.sentence(-119 * minute) == "its clock is 119 minutes behind this device's")
    #expect(ClockDifference.sentence(36 * 60 * minute) == "its clock is 36 hours ahead of this device's")
    #expect(ClockDifference.sentence(-3_650 * 1_440 * minute) == "its clock is 9 years behind this device's")
    for extreme in [Int64.max, .min, .min + 1] { #expect(ClockDifference.sentence(extreme).contains("years")) }
  }

  @Test("a code of another fleet admits nobody")
  func otherFleetsCode() throws {
    let (fleet, other) = (try TestFleet(1), try TestFleet(1))
    let code = try other.nodes[0].invite(InviteRequest(user: "u", role: "officer", profile: ValueMap())).code
    let address = try fleet.peerAddress(of: fleet.nodes[0])
    // Who made the code would admit the device.
    other.nodes[0].stop()
    #expect(throws: NodeError.self) {
      try NodeSetup.join(
        try other.directory() + "/new", code: code, label: "l", peers: [address], usesDiscovery: false,
        timeoutMilliseconds: 3_000)
    }
    #expect(try fleet.nodes[0].status().peersConnected == 0)
  }

  @Test("errors of the engine and of the store keep their kind on the way out")
  func errors() throws {
    let kinds: [(EngineError, NodeError.Code)] = [
      (.notAMember, .notPermitted), (.notPermitted(partition, has: .read, because: "x"), .notPermitted),
      (.changeTooLarge(byteCount: 2, limit: 1), .tooLarge), (.payloadsTooLarge(byteCount: 2, limit: 1), .tooLarge),
      (.tooManyOperations(limit: 3), .tooLarge), (.malformedChange("x"), .unprocessable), (.ownRunNotTaken, .failed),
      (.payloadNotThere, .failed),
      (.noFleet, .failed), (.renewedLately(partition, seconds: 3), .busy),
      (.undeletable(UndeletableDocument(collection: "c", .int(1))), .unprocessable),
    ]
    for (error, code) in kinds {
      #expect(NodeError(any: error).code == code)
      #expect(NodeError(any: error).message == "\(error)")
    }
    #expect(NodeError(any: DamagedLog("x")).code == .storeFailed)
    struct Unforeseen: Error { let secret = 7 }
    #expect(NodeError(any: Unforeseen()).message == "something failed that should not")
    #expect(NodeError(any: NodeError(.busy, "b")) == NodeError(.busy, "b"))
  }
}
