import Replication
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// Conflicts on nodes of one fleet: found, told in pages, and decided everywhere.
@Suite("Conflicts", .serialized)
struct ConflictTests {
  private let partition: PartitionName
  private let fleet: TestFleet
  private var nodes: [Node] { fleet.nodes }

  init() throws {
    partition = try PartitionName("agency=W")
    fleet = try TestFleet(2) { $0.reads.pageDocuments = 3 }
    for node in fleet.nodes { try node.subscribe("agency=W") }
  }

  /// One wrote what `theirs` says, the other `ours`, both on `base`.
  private func part(_ id: Text, _ base: ValueMap, theirs: ValueMap?, ours: ValueMap?) throws {
    let id = Value.string(id)
    try write(nodes[0], id, base)
    try eventually { try nodes[1].read(partition, "reports", id: id)?.body == base }
    let read = try nodes[0].state(of: "reports", id: id, in: partition)
    try write(nodes[1], id, theirs)
    try eventually { try nodes[0].read(partition, "reports", id: id)?.body == theirs }
    let reading = EarlierReading(state: read, wall: WallTime(milliseconds: 1_000), extensions: [])
    _ = try nodes[0].write(partition, request(id, ours), reading: reading)
  }

  private func write(_ node: Node, _ id: Value, _ body: ValueMap?) throws {
    _ = try node.write(partition, [request(id, body)])
  }

  private func request(_ id: Value, _ body: ValueMap?) -> DocumentRequest {
    DocumentRequest(collection: "reports", id: id, action: body.map { .put(body: $0) } ?? .delete)
  }

  private func conflicts(_ node: Node) throws -> [ConflictStatus] {
    try node.conflicts(partition, ConflictQuery()).conflicts
  }

  private func inboxDigest(_ node: Node) throws -> String? {
    var row: PartitionStatus?
    try eventually("the digest is computed") {
      row = try node.partitions(withDigests: true).first { $0.name == partition.text.string }
      return row?.inboxDigest != nil
    }
    return row?.inboxDigest
  }

  @Test("inboxes have a digest, alike on both sides: of deleted documents, too, and zero where nothing is left")
  func digest() throws {
    let zero = String(repeating: "0", count: 64)
    #expect(try nodes.map(inboxDigest) == [zero, zero])
    try part("r1", n(1), theirs: n(2), ours: n(3))
    try eventually { try conflicts(nodes[1]) == conflicts(nodes[0]) }
    #expect(try nodes[0].status().conflicts == ConflictCount(openPartitions: 0, partitions: 1))
    let one = try #require(try inboxDigest(nodes[0]))
    #expect(try one != zero && inboxDigest(nodes[1]) == one)
    try part("r2", n(1), theirs: nil, ours: n(3))
    try eventually { try conflicts(nodes[1]).count >= 2 && conflicts(nodes[0]).count >= 2 }
    let two = try #require(try inboxDigest(nodes[0]))
    #expect(try two != one && inboxDigest(nodes[1]) == two)
    for conflict in try conflicts(nodes[0]) { _ = try nodes[0].resolve(partition, conflict: conflict.id, .keep) }
    try eventually { try nodes.allSatisfy { try inboxDigest($0) == zero } }
  }

  @Test("that conflicts wait is told by partitions, status, metrics and doctor, and no longer once they are decided")
  func told() throws {
    let node = nodes[0]
    #expect(try node.status().conflicts == nil && !node.metrics().contains("partitions_with_conflicts"))
    try part("r1", n(1), theirs: n(2), ours: n(3))
    _ = try inboxDigest(node)
    #expect(try node.partitions(withDigests: true).map(\.hasConflicts) == [true])
    #expect(try node.status().conflicts == ConflictCount(openPartitions: 1, partitions: 1))
    #expect(try node.metrics().contains("\nseamesh_partitions_with_conflicts 1\n"))
    let finding = try #require(try node.doctor().first { $0.code == "open-conflicts" })
    #expect(finding.level == .warning && finding.message.contains("agency=W") && finding.remedy.contains("conflicts"))
    for conflict in try conflicts(node) { _ = try node.resolve(partition, conflict: conflict.id, .keep) }
    try eventually { try node.status().conflicts?.openPartitions == 0 }
    #expect(try node.metrics().contains("\nseamesh_partitions_with_conflicts 0\n"))
    #expect(try node.doctor().allSatisfy { $0.code != "open-conflicts" })
  }

  @Test("what was known of a partition's conflicts is told on while a document in it does not read")
  func knownBeforeDamage() throws {
    let node = nodes[0]
    try part("r1", n(1), theirs: n(2), ours: n(3))
    _ = try inboxDigest(node)
    try node.damage(id: .string("r1"), log: true)
    try write(node, .string("r2"), n(1))
    try eventually("the pass comes to nothing") {
      if case .failed? = try node.partitions(withDigests: true).first?.digestState { true } else { false }
    }
    #expect(try node.status().conflicts == ConflictCount(openPartitions: 1, partitions: 1))
  }

  private func n(_ number: Int64) -> ValueMap { body(["n": .int(number), "m": .int(1)]) }

  private func code(_ work: () throws -> Void) -> NodeError.Code? {
    do { try work() } catch { return (error as? NodeError)?.code }
    return nil
  }

  @Test("a conflict is told on both sides alike, with who wrote what, and decided on one it is decided on both")
  func bothSides() throws {
    try part("r1", n(1), theirs: n(2), ours: n(3))
    try eventually { try conflicts(nodes[1]) == conflicts(nodes[0]) }
    let told = try #require(try conflicts(nodes[1]).first)
    #expect(told.place == "n" && told.shown == .int(3) && told.document == .string("r1") && !told.isDeleted)
    #expect(told.values.map(\.value) == [.int(2)] && told.values.map(\.writer.user) == ["user1@test.example"])
    #expect(told.values.map(\.writer.label) == ["node 1"])
    #expect(told.shownBy?.label == "node 0" && told.shownBy?.user == "founder@test.example")
    #expect(try #require(told.shownBy).writtenMilliseconds > 0)
    _ = try nodes[1].resolve(partition, conflict: told.id, .take([1]))
    try eventually { try nodes[0].read(partition, "reports", id: .string("r1"))?.body == n(2) }
    #expect(try conflicts(nodes[0]).isEmpty && conflicts(nodes[1]).isEmpty)
    #expect(code { _ = try nodes[0].resolve(partition, conflict: told.id, .keep) } == .preconditionFailed)
  }

  @Test("what came since the list was read is not replaced unread: the decision is refused, and nothing is written")
  func changedMeanwhile() throws {
    try part("r1", n(1), theirs: n(2), ours: n(3))
    let told = try #require(try conflicts(nodes[0]).first)
    try eventually { try conflicts(nodes[1]).count == 1 }
    let later = body(["n": .int(3), "m": .int(9)])
    try write(nodes[1], .string("r1"), later)
    try eventually { try nodes[0].read(partition, "reports", id: .string("r1"))?.body == later }
    for choice: ConflictChoice in [.keep, .take([1]), .value(.int(5))] {
      #expect(code { _ = try nodes[0].resolve(partition, conflict: told.id, choice) } == .preconditionFailed)
    }
    #expect(try nodes[0].read(partition, "reports", id: .string("r1"))?.body == later)
    let again = try #require(try conflicts(nodes[0]).first)
    _ = try nodes[0].resolve(partition, conflict: again.id, .value(.int(5)))
    #expect(try nodes[0].read(partition, "reports", id: .string("r1"))?.body["n"] == .int(5))
    #expect(try conflicts(nodes[0]).isEmpty)
  }

  @Test(
    "what was written to a document that another deleted waits for a decision: to stay deleted, or to come again with it"
  )
  func deleted() throws {
    for id: Text in ["r1", "r2"] { try part(id, n(1), theirs: n(2), ours: nil) }
    let told = try conflicts(nodes[0])
    #expect(
      told.map(\.isDeleted) == [true, true] && told.map(\.place) == ["", ""] && told.map(\.shown) == [nil, nil])
    #expect(told.map { $0.values.map(\.value) } == [[.int(2)], [.int(2)]])
    try #require(told.count == 2)
    _ = try nodes[0].resolve(partition, conflict: told[0].id, .keep)
    #expect(try nodes[0].read(partition, "reports", id: .string("r1")) == nil)
    #expect(told.allSatisfy { $0.shownBy == nil })
    #expect(try nodes[0].resolve(partition, conflict: told[1].id, .take([1])).created == [true])
    #expect(try nodes[0].read(partition, "reports", id: .string("r2"))?.body == body(["n": .int(2)]))
    #expect(try conflicts(nodes[0]).isEmpty)
    try eventually { try conflicts(nodes[1]).isEmpty }
  }

  @Test("pages are bounded by documents and by conflicts, and together they are all, each once")
  func pages() throws {
    let fleet = try TestFleet(2) { configuration in
      (configuration.reads.pageDocuments, configuration.reads.conflictDocuments) = (3, 4)
    }
    for node in fleet.nodes { try node.subscribe("agency=W") }
    let (there, here) = (fleet.nodes[1], fleet.nodes[0])
    for index in 0..<20 { try write(here, .int(Int64(index)), n(1)) }
    try eventually { try there.read(partition, "reports", id: .int(19)) != nil }
    let conflicting: [Int64] = [0, 7, 8, 9, 19]
    let read = try conflicting.map { try here.state(of: "reports", id: .int($0), in: partition) }
    for id in conflicting { try write(there, .int(id), n(2)) }
    try eventually { try here.read(partition, "reports", id: .int(19))?.body == n(2) }
    for (id, state) in zip(conflicting, read) {
      let reading = EarlierReading(state: state, wall: WallTime(milliseconds: 1_000), extensions: [])
      _ = try here.write(partition, request(.int(id), n(3)), reading: reading)
    }
    for limit in [1, 2, 100] {
      var (cursor, found, pages) = (String?.none, [Value](), 0)
      repeat {
        let page = try here.conflicts(partition, ConflictQuery(after: cursor, limit: limit))
        #expect(page.examined <= 4 && page.conflicts.count <= limit)
        found += page.conflicts.map(\.document)
        (cursor, pages) = (page.next, pages + 1)
      } while cursor != nil && pages < 30
      #expect(found == conflicting.map { .int($0) } && pages >= 5)
    }
    #expect(code { _ = try here.conflicts(partition, ConflictQuery(after: "no")) } == .unprocessable)
  }

  @Test("of a document with very many conflicts some are told, and the others once these are decided")
  func many() throws {
    let names = (0..<150).map { Text("f\($0)") }
    func fields(_ number: Int64) -> ValueMap {
      names.reduce(into: ValueMap()) { $0[$1] = .int(number) }
    }
    try part("r1", fields(1), theirs: fields(2), ours: fields(3))
    var rounds = 0
    while let page = try Optional(nodes[0].conflicts(partition, ConflictQuery())), !page.conflicts.isEmpty, rounds < 200
    {
      #expect(page.conflicts.count == min(64, 150 - rounds) && page.untold == max(0, 150 - rounds - 64))
      let receipt = try nodes[0].resolve(partition, conflict: page.conflicts[0].id, .keep)
      #expect(receipt.dot != nil)
      rounds += 1
    }
    #expect(rounds == 150)
    #expect(try nodes[0].read(partition, "reports", id: .string("r1"))?.body == fields(3))
  }

  @Test("who may not read sees no conflicts, and who may not write decides none; a conflict that is none is not found")
  func rights() throws {
    try part("r1", n(1), theirs: n(2), ours: n(3))
    try eventually { try conflicts(nodes[1]).count == 1 }
    let told = try #require(try conflicts(nodes[1]).first)
    for id in ["", "x", "63.0661.1-00", told.id + ".1", String(told.id.dropLast()) + "2"] {
      #expect(code { _ = try nodes[1].resolve(partition, conflict: id, .keep) } == .notFound, "\(id)")
    }
    for choice: ConflictChoice in [.take([]), .take([2]), .take([0])] {
      #expect(code { _ = try nodes[1].resolve(partition, conflict: told.id, choice) } == .unprocessable)
    }
    _ = try nodes[0].change(RightsChange(.grant(who: "everyone", level: "read", pattern: "*"), isConfirmed: true))
    try eventually { code { _ = try nodes[1].resolve(partition, conflict: told.id, .keep) } == .notPermitted }
    _ = try nodes[0].change(RightsChange(.grant(who: "everyone", level: "carry", pattern: "*"), isConfirmed: true))
    try eventually { code { _ = try conflicts(nodes[1]) } == .notPermitted }
  }
}
