import Replication
import Testing

@testable import Seamesh

/// One version of a document has one ETag, on every node, however that keeps it.
@Suite struct EntityTagTests {
  private let fleet: TestFleet
  private let partition: PartitionName

  init() throws {
    fleet = try TestFleet(2)
    partition = try PartitionName("room=1")
    for node in fleet.nodes { try node.subscribe("room=1") }
  }

  private func tag(_ node: Node, _ id: Text) throws -> String? { try node.read(partition, "c", id: .string(id))?.etag }

  /// Once both show the same version, which is another than any before.
  private func sharedTag(_ id: Text, shows: ValueMap, _ known: inout Set<String>) throws -> String {
    func isShown(_ node: Node) throws -> Bool { try node.read(partition, "c", id: .string(id))?.body == shows }
    for node in fleet.nodes { try eventually { try isShown(node) } }
    try eventually { try fleet.nodes[0].digest(partition) == fleet.nodes[1].digest(partition) }
    let tags = try fleet.nodes.map { try tag($0, id) }
    let shared = try #require(tags[0])
    let isNew = known.insert(shared).inserted
    #expect(tags[1] == shared && isNew, "\(tags)")
    #expect(shared.wholeMatch(of: /1-[0-9a-f]{32}/) != nil)
    return shared
  }

  @Test("the author, who keeps it whole, and a receiver tell the same, for each generation and each set of changes")
  func equality() throws {
    var known: Set<String> = []
    // Long enough to lie in its run alone where it was received.
    let text = Value.string(Text(String(repeating: "x", count: 400)))
    let (one, two) = (body(["n": .int(1), "t": text]), body(["n": .int(2), "t": text]))
    try fleet.nodes[0].put(partition, "c", "a", one)
    _ = try sharedTag("a", shows: one, &known)
    try fleet.nodes[1].put(partition, "c", "a", two)
    _ = try sharedTag("a", shows: two, &known)
    // The same content again is another version: other changes made it.
    try fleet.nodes[0].put(partition, "c", "a", one)
    let again = try sharedTag("a", shows: one, &known)
    // The same content in the next generation.
    try fleet.nodes[0].delete(partition, "c", "a")
    for node in fleet.nodes { try eventually { try tag(node, "a") == nil } }
    try fleet.nodes[1].put(partition, "c", "a", one)
    _ = try sharedTag("a", shows: one, &known)
    // What nothing was written in keeps its tag, on a new start, too.
    try fleet.nodes[0].put(partition, "c", "b", one)
    let kept = try sharedTag("b", shows: one, &known)
    try fleet.restart(1)
    try fleet.nodes[0].put(partition, "c", "a", two)
    _ = try sharedTag("a", shows: two, &known)
    #expect(try fleet.nodes.map { try tag($0, "b") } == [kept, kept] && again != kept)
  }

  @Test("what both wrote while they did not see one another has one tag when they have met")
  func merged() throws {
    var known: Set<String> = []
    try fleet.nodes[0].put(partition, "c", "a", body(["n": .int(1)]))
    _ = try sharedTag("a", shows: body(["n": .int(1)]), &known)
    try fleet.restart(1, peers: [])
    try fleet.nodes[0].put(partition, "c", "a", body(["n": .int(1), "x": .int(2)]))
    try fleet.nodes[1].put(partition, "c", "a", body(["n": .int(1), "y": .int(3)]))
    let apart = try fleet.nodes.map { try tag($0, "a") }
    #expect(apart[0] != apart[1])
    try fleet.restart(1)
    let shown = body(["n": .int(1), "x": .int(2), "y": .int(3)])
    let merged = try sharedTag("a", shows: shown, &known)
    #expect(!apart.contains(merged))
  }
}

extension Node {
  fileprivate func delete(_ partition: PartitionName, _ collection: Text, _ id: Text) throws {
    _ = try write(partition, [DocumentRequest(collection: collection, id: .string(id), action: .delete)])
  }
}
