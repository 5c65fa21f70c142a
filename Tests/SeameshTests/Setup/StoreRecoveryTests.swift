import Foundation
import Identity
import Replication
import Storage
import Synchronization
import Testing

@testable import Seamesh

/// The database is lost and the keys are there (S8).
@Suite(.serialized) struct StoreRecoveryTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  /// Two nodes with the same five documents, of which `lost` has stopped and lost its store.
  private func fleet(losing lost: Int) throws -> (fleet: TestFleet, replica: String) {
    let fleet = try TestFleet(2)
    for node in fleet.nodes { try node.subscribe("agency=*") }
    for index in 0..<3 { try fleet.nodes[0].put(partition, "reports", Text("a\(index)"), body(["n": .int(1)])) }
    for index in 0..<2 { try fleet.nodes[1].put(partition, "reports", Text("b\(index)"), body(["n": .int(2)])) }
    for node in fleet.nodes { try eventually { try node.status().documents == 5 } }
    let replica = try #require(try fleet.nodes[lost].status().replica)
    fleet.nodes[lost].stop()
    for suffix in ["", "-wal", "-shm"] { try? remove(fleet.path(of: lost) + "/seamesh.db" + suffix) }
    return (fleet, replica)
  }

  @Test(
    "a device that lost its store fetches statements and documents from a peer, and goes on under a new replica",
    arguments: [0, 1])
  func fetched(lost: Int) throws {
    let (fleet, replica) = try fleet(losing: lost)
    let user = "\(lost == 0 ? "founder" : "user1")@test.example"
    try fleet.restart(lost, peers: [fleet.peerAddress(of: fleet.nodes[1 - lost])])
    let node = fleet.nodes[lost]
    #expect(try node.status().user == user)
    try eventually("all five are back") { try node.status().documents == 5 }
    #expect(try node.doctor().contains { $0.code == "store-fetched" && $0.level == .warning })

    try node.put(partition, "reports", "after", body(["n": .int(3)]))
    try eventually { try fleet.nodes[1 - lost].status().documents == 6 }
    let renewed = try #require(try node.status().replica)
    #expect(renewed != replica)
    #expect(try node.digest(partition) == fleet.nodes[1 - lost].digest(partition))
    #expect(try node.devices().first { $0.isSelf }?.replicas.count == 2)

    try fleet.restart(lost, peers: [])
    #expect(try fleet.nodes[lost].status().replica == renewed)
    #expect(try fleet.nodes[lost].doctor().allSatisfy { $0.level == .ok })
  }

  @Test("a store that was made anew and not filled is filled at the next start")
  func cutOff() throws {
    let (fleet, _) = try fleet(losing: 1)
    let files = fleet.nodes[1].files
    try { _ = try Store.open(directory: files.directory.path, fleet: files.fleet, device: files.device) }()
    try fleet.restart(1)
    try eventually { try fleet.nodes[1].status().documents == 5 }
  }

  @Test("where nobody of the fleet is asked, nothing is made, and the sentence says what is missing")
  func nobody() throws {
    let (fleet, _) = try fleet(losing: 1)
    let stranger = try TestFleet(1)
    let path = fleet.path(of: 1)
    for peers in [[], [try stranger.peerAddress(of: stranger.nodes[0])]] {
      let error = #expect(throws: NodeError.self) {
        try Node.start(directory: path, configuration: fleet.configuration(peers) { $0.recoveryMilliseconds = 2_000 })
      }
      #expect(error?.message.hasPrefix("seamesh.db has gone from \(path), and ") == true, "\(error?.message ?? "")")
      #expect(error?.message.contains(peers.isEmpty ? "--peer HOST:PORT" : "another fleet") == true)
      #expect(!isThere(path + "/seamesh.db"))
    }
  }

  @Test("whoever is no help is left for the next one, which then has all its time to answer")
  func strangerFirst() throws {
    let (fleet, _) = try fleet(losing: 1)
    let stranger = try TestFleet(1)
    let peers = try [stranger, fleet].map { try $0.peerAddress(of: $0.nodes[0]) }
    let node = try Node.start(directory: fleet.path(of: 1), configuration: fleet.configuration(peers) { _ in })
    defer { node.stop() }
    #expect(node.hasFetchedStore)
  }

  @Test("a node that waits for its fleet goes on once a node of it is there, and stops waiting when it is told to")
  func waits() throws {
    let (fleet, _) = try fleet(losing: 1)
    let path = fleet.path(of: 1)
    let address = try fleet.peerAddress(of: fleet.nodes[0])
    let port = try #require(fleet.nodes[0].endpoints.listen.first?.port)
    fleet.nodes[0].stop()
    let asked = Atomic(0)
    let configuration = fleet.configuration([address]) {
      $0.recoveryMilliseconds = .max
      $0.isRecoveryGivenUp = { asked.add(1, ordering: .relaxed).newValue > 2 }
    }
    let error = #expect(throws: NodeError.self) { try Node.start(directory: path, configuration: configuration) }
    #expect(error?.code == .stopping)

    let founder = fleet.path(of: 0)
    let again = Mutex<Node?>(nil)
    defer { again.withLock { $0?.stop() } }
    let begun = Atomic(false)
    let waiting = fleet.configuration([address]) {
      $0.recoveryMilliseconds = .max
      $0.isRecoveryGivenUp = {
        guard !begun.exchange(true, ordering: .relaxed) else { return false }
        var same = NodeConfiguration()
        (same.listenHost, same.listenPort, same.usesDiscovery) = (.ipv4(0x7f00_0001), port, false)
        let node = try? Node.start(directory: founder, configuration: same)
        again.withLock { $0 = node }
        return false
      }
    }
    let node = try Node.start(directory: path, configuration: waiting)
    defer { node.stop() }
    try eventually { try node.status().documents == 5 }
  }
}
