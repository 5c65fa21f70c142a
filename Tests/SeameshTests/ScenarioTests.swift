import Foundation
import Replication
import Testing
import Wire
import TestSupport

@testable import Seamesh

/// What the apps need, with their real and made data.
@Suite(.serialized, .enabled(if: SharedData.isThere, "the shared test data is not beside this checkout"))
struct ScenarioTests {
  /// Runs the two nodes side by side until both hold the same.
  private func meet(_ fleet: TestFleet, _ a: Int, _ b: Int, _ partition: PartitionName) throws {
    let first = try Node.start(directory: fleet.path(of: a), configuration: fleet.configuration([]) { _ in })
    defer { first.stop() }
    let peer = try fleet.peerAddress(of: first)
    let second = try Node.start(directory: fleet.path(of: b), configuration: fleet.configuration([peer]) { _ in })
    defer { second.stop() }
    try eventually(within: 40, "both hold the same after they met") {
      let digests = [try first.digest(partition), try second.digest(partition)]
      let connected = try first.status().peersConnected == 1
      let peers = try first.peers().filter { $0.state == .connected }
      return connected && digests[0] == digests[1] && peers.allSatisfy { $0.behind == 0 && $0.ahead == 0 }
    }
  }

  private func subscribed(_ count: Int, _ pattern: Text) throws -> TestFleet {
    let fleet = try TestFleet(count)
    for node in fleet.nodes { try node.subscribe(pattern) }
    return fleet
  }

  private func write(_ documents: [StoredDocument], _ collection: Text, _ partition: PartitionName, on node: Node)
    throws
  {
    let requests = documents.map {
      DocumentRequest(collection: collection, id: $0.id, action: .put(body: $0.body))
    }
    for result in try node.writeEach(partition, requests) { _ = try result.get() }
  }

  @Test("P01: after an offline day and three meetings in pairs all devices hold the same thirty reports, byte-equal")
  func offlineDay() throws {
    let partition = try PartitionName("agency=WildAid")
    let reports = try SharedData.documents("generated/boarding-reports.json")
      .filter { $0.body["agency"] == .string("WildAid") }.prefix(30)
    #expect(reports.count == 30)
    let fleet = try subscribed(3, partition.text)
    for node in fleet.nodes { node.stop() }
    for index in 0..<3 {
      let node = try Node.start(directory: fleet.path(of: index), configuration: fleet.configuration([]) { _ in })
      try write(Array(reports.dropFirst(index * 10).prefix(10)), "BoardingReports", partition, on: node)
      node.stop()
    }
    for (a, b) in [(0, 1), (1, 2), (2, 0)] { try meet(fleet, a, b, partition) }
    var digests: Set<String> = []
    for index in 0..<3 {
      let node = try Node.start(directory: fleet.path(of: index), configuration: fleet.configuration([]) { _ in })
      defer { node.stop() }
      #expect(try node.find(partition, "BoardingReports", FindRequest()).count == 30)
      digests.insert(try #require(try node.digest(partition)))
    }
    #expect(digests.count == 1)
  }

  @Test("P12: the real duty entries, dealt to four devices, are all there after gossip in random order")
  func replayOfRealDuty() throws {
    let partition = try PartitionName("duty=all")
    let entries = try SharedData.documents("docs/dutychange.json")
    #expect(entries.count == 569)
    let fleet = try subscribed(4, partition.text)
    for node in fleet.nodes { node.stop() }
    for index in 0..<4 {
      let node = try Node.start(directory: fleet.path(of: index), configuration: fleet.configuration([]) { _ in })
      let share = entries.enumerated().filter { $0.offset % 4 == index }.map(\.element)
      try write(share, "DutyChange", partition, on: node)
      node.stop()
    }
    var random = SplitMix64(seed: 12)
    for (a, b) in [(0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)].shuffled(using: &random) {
      try meet(fleet, a, b, partition)
    }
    let newest = newestPerOfficer(entries)
    for index in 0..<4 {
      let node = try Node.start(directory: fleet.path(of: index), configuration: fleet.configuration([]) { _ in })
      defer { node.stop() }
      let found = try node.find(partition, "DutyChange", FindRequest())
      #expect(found.count == 569)
      #expect(newestPerOfficer(found.documents) == newest)
    }
  }

  /// Id of the latest entry by officer.
  private func newestPerOfficer(_ entries: [StoredDocument]) -> [Value: Value] {
    var newest: [Value: (date: Int64, id: Value)] = [:]
    for entry in entries {
      guard case .map(let user)? = entry.body["user"], let officer = user["email"],
        case .date(let date)? = entry.body["date"]
      else { continue }
      if let known = newest[officer], known.date >= date { continue }
      newest[officer] = (date, entry.id)
    }
    return newest.mapValues(\.id)
  }

  @Test("P14: documents of old shapes arrive and are kept as they are")
  func oldShapes() throws {
    let partition = try PartitionName("agency=Ecuadorian Galapagos")
    let file = try #require(SharedData.ofish).appending(path: "generated/legacy-shapes.json")
    guard case .array(let cases) = try ExtendedJSON.parse([UInt8](Data(contentsOf: file))) else { return }
    let documents = cases.compactMap(OldShape.init).filter { !$0.agency.utf8.isEmpty }.map(\.document)
    #expect(cases.count - documents.count == 2)
    let fleet = try subscribed(2, partition.text)
    try write(documents, "BoardingReports", partition, on: fleet.nodes[0])
    try eventually { try fleet.nodes[0].digest(partition) == fleet.nodes[1].digest(partition) }
    for document in documents {
      let arrived = try #require(try fleet.nodes[1].read(partition, "BoardingReports", id: document.id))
      #expect(arrived.body == document.body)
    }
  }

  @Test("P15: a field that an older app does not know is still there after its patch on a third node")
  func unknownField() throws {
    let partition = try PartitionName("agency=Gabon")
    let fleet = try subscribed(3, partition.text)
    let report = body([
      "agency": .string("Gabon"), "notes": .array([]),
      "mpa": .map(body(["$ref": .string("MPA"), "name": .string("Cocos Island Marine Preserve")])),
    ])
    try fleet.nodes[1].put(partition, "BoardingReports", "r", report)
    try eventually { try fleet.nodes[2].read(partition, "BoardingReports", id: .string("r")) != nil }
    let patch = body(["notes": .array([.string("Nets stowed")])])
    _ = try fleet.nodes[2].write(
      partition, [DocumentRequest(collection: "BoardingReports", id: .string("r"), action: .mergePatch(patch))])
    for node in fleet.nodes {
      try eventually {
        let shown = try node.read(partition, "BoardingReports", id: .string("r"))?.body
        return shown?["notes"] == patch["notes"] && shown?["mpa"] == report["mpa"]
      }
    }
  }
}

/// One case of `legacy-shapes.json`.
private struct OldShape {
  let document: StoredDocument
  /// Empty where it is missing.
  let agency: Text

  init?(_ item: Value) {
    guard case .map(let members) = item, case .map(var body)? = members["document"], let id = body["_id"] else {
      return nil
    }
    body["_id"] = nil
    document = StoredDocument(id: id, body: body, etag: "")
    agency = if case .string(let agency)? = body["agency"] { agency } else { "" }
  }
}
