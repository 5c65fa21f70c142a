import Foundation
import Identity
import Links
import Replication
import Synchronization
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// Nodes whose connections are paid for, on loopback.
@Suite("Links that are paid for", .serialized) struct LinkTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("room=1") }

  private func fleet(_ bytesPerDay: UInt64?) throws -> TestFleet {
    let fleet = try TestFleet(2) { configuration in
      var rule = LinkRule(.satellite)
      (rule.interfaces, rule.bytesPerDay) = (["lo*"], bytesPerDay)
      configuration.links = [rule]
    }
    for node in fleet.nodes { try node.subscribe("room=*") }
    try eventually { try fleet.nodes[0].status().peersConnected == 1 }
    return fleet
  }

  private func satellite(_ node: Node) throws -> LinkReport {
    try #require(try node.links().first { $0.linkClass == "satellite" })
  }

  private func isShown(_ node: Node, _ id: Text) throws -> Bool {
    try node.read(partition, "c", id: .string(id)) != nil
  }

  /// Until one end has spent what it may.
  private func spend(_ fleet: TestFleet) throws {
    let text = Value.string(Text(String(repeating: "a long report ", count: 500)))
    for index in 0..<200 {
      try fleet.nodes[0].put(partition, "c", Text("\(index)"), body(["text": text]))
      if try satellite(fleet.nodes[1]).passes == "authority" { return }
    }
  }

  @Test("at the limit what is written stays, a statement passes, and all of it comes once the link is of another class")
  func limit() throws {
    let fleet = try fleet(200_000)
    try spend(fleet)
    let used = try satellite(fleet.nodes[1])
    #expect(used.passes == "authority" && used.bytesPerDay == 200_000 && used.interfaces.allSatisfy { $0 == "lo" })
    #expect((200_000..<600_000).contains(used.bytesToday ?? 0), "\(used)")
    try eventually { try fleet.nodes[1].status().peersConnected == 1 }
    try fleet.nodes[0].put(partition, "c", "late", body(["n": .int(1)]))
    try fleet.nodes[1].put(partition, "c", "later", body(["n": .int(1)]))
    let grant = try fleet.grant(.write)
    try fleet.nodes[0].say(grant)
    try eventually { try fleet.nodes[1].engine.ask { $0.state.mesh.authority.holds(grant.id) } }
    #expect(try !isShown(fleet.nodes[1], "late") && !isShown(fleet.nodes[0], "later"))
    let waiting = try satellite(fleet.nodes[1])
    #expect(waiting.waitingChanges >= 1 && waiting.waitingBytes > 0 && waiting.waitingCost > waiting.waitingBytes)
    #expect(try fleet.nodes[1].doctor().contains { $0.code == "link-used-up" })
    #expect(try fleet.nodes[1].metrics().contains("seamesh_link_bytes_per_day{class=\"satellite\"} 200000\n"))
    #expect(try fleet.nodes[1].status().links.map(\.linkClass) == ["satellite"])
    for node in fleet.nodes { try node.useLinks("harbour") }
    try eventually { try isShown(fleet.nodes[1], "late") && isShown(fleet.nodes[0], "later") }
    for node in fleet.nodes { try node.useLinks("auto") }
    try fleet.nodes[0].put(partition, "c", "last", body(["n": .int(1)]))
    try eventually { try fleet.nodes[1].status().peersConnected == 1 && satellite(fleet.nodes[1]).sessions == 1 }
    #expect(try !isShown(fleet.nodes[1], "last"))
  }

  @Test(
    "a restart finds what was spent and the class that was chosen; a file that does not read begins anew, and is told of"
  )
  func restart() throws {
    let fleet = try fleet(200_000)
    try spend(fleet)
    let spent = try satellite(fleet.nodes[1]).bytesToday ?? 0
    let path = fleet.path(of: 1) + "/" + LinkKeeper.fileName
    func start(_ links: [LinkRule]) throws -> Node {
      try Node.start(directory: fleet.path(of: 1), configuration: fleet.configuration([]) { $0.links = links })
    }
    let rules = fleet.nodes[1].configuration.links
    try fleet.nodes[1].useLinks("mobile")
    fleet.nodes[1].stop()
    #expect(throws: NodeError.self) { try fleet.nodes[1].links() }
    let again = try start(rules)
    let found = try again.links()
    #expect(found.map(\.linkClass) == ["mobile", "satellite"] && found[0].isChosen && !found[1].isChosen)
    #expect(found[1].bytesToday ?? 0 >= spent && found[1].passes == "authority")
    again.stop()
    try Data("{".utf8).write(to: URL(fileURLWithPath: path))
    let anew = try start(rules)
    #expect(try anew.links().map(\.linkClass) == ["satellite"] && satellite(anew).bytesToday == 0)
    anew.stop()
    try Data(#"{"use": "balloon", "accounts": {"balloon": {"day": 1, "bytes": 2}, "satellite": {"day": "x"}}}"#.utf8)
      .write(to: URL(fileURLWithPath: path))
    let later = try start(rules)
    #expect(try later.links().map(\.linkClass) == ["satellite"] && satellite(later).passes == "everything")
    later.stop()
  }

  @Test(
    "an address that is not dialled for the class of its link is told with that class, and the doctor says what to do")
  func closedToPeer() throws {
    var rule = LinkRule(.closed)
    rule.interfaces = ["lo*"]
    let fleet = try TestFleet(1) { configuration in
      configuration.peers = [.socket(SocketAddress(.ipv4(0x7f00_0001), port: 1))]
      configuration.links = [rule]
    }
    try eventually { try fleet.nodes[0].doctor().map(\.code) == ["peer-link-closed"] }
    let finding = try #require(try fleet.nodes[0].doctor().first)
    #expect(finding.message.contains("127.0.0.1:1 is not dialled"), "\(finding.message)")
    #expect(try fleet.nodes[0].peers().first?.detail == "the link is of class none")
  }

  @Test("where every link is closed by command sessions end and none begins, and all comes when they open")
  func closed() throws {
    let fleet = try fleet(nil)
    try fleet.nodes[1].useLinks("none")
    try eventually { try fleet.nodes[0].status().peersConnected == 0 }
    for index in 0..<2 { try fleet.nodes[index].put(partition, "c", Text("\(index)"), body(["n": .int(1)])) }
    #expect(try fleet.nodes[1].doctor().contains { $0.code == "link-closed" })
    // Each tries to reach the other again in this time.
    _ = waitUntil(within: 3) { (try? fleet.nodes[0].status().peersConnected) != 0 }
    #expect(try fleet.nodes[0].status().peersConnected == 0 && !isShown(fleet.nodes[1], "0"))
    try fleet.nodes[1].useLinks("auto")
    try eventually { try isShown(fleet.nodes[1], "0") && isShown(fleet.nodes[0], "1") }
    #expect(throws: NodeError.self) { try fleet.nodes[1].useLinks("wifi") }
  }

  @Test("however often what links cost changes while the disk hangs, one write waits, and it is of the last state")
  func hangingDisk() throws {
    let path = NSTemporaryDirectory() + "seamesh-links-\(UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: path) }
    let hangs = DispatchSemaphore(value: 0)
    let written = Mutex<[[UInt8]]>([])
    let keeper = LinkKeeper(
      [], directory: try DataDirectory(existing: path), fleet: FleetID(.zero),
      log: try NodeLog(level: .error, path: nil)
    ) { _, content in
      let isFirst = written.withLock { written in
        written.append(content)
        return written.count == 1
      }
      if isFirst { hangs.wait() }
    }
    keeper.choose(.satellite)
    try eventually("the disk hangs") { written.withLock { $0.count } == 1 }
    for index in 0..<1_000 { keeper.choose(index.isMultiple(of: 2) ? nil : .satellite) }
    hangs.signal()
    keeper.settle()
    // The first, one that waited, and at the most one more for the end.
    let contents = written.withLock { $0 }
    #expect(contents.count <= 3 && contents.first == contents.last)
  }
}
