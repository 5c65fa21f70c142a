import Foundation
import Identity
import Replication
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh
@testable import Storage

@Suite(.serialized) struct DigestTests {
  let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Gabon") }

  private func row(_ node: Node, _ partition: PartitionName? = nil) throws -> PartitionStatus? {
    let name = (partition ?? self.partition).text.string
    return try node.partitions(withDigests: true).first { $0.name == name }
  }

  @Test("the digest is the sum that the protocol describes, of the living documents alone")
  func sum() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    try node.put(partition, "reports", "r1", body(["n": .int(1), "vessel": .string("Aurora")]))
    // Computed from the description, by another program.
    let one = "9bf8b27d8065a7773c135f1d9c2f1bae996866242f0b40acf1b081ecb02fed3c"
    #expect(try node.digest(partition) == one)
    let seven = DocumentRequest(
      collection: "reports", id: .int(7), action: .put(body: ValueMap(), keepAbsent: true))
    _ = try node.write(partition, [seven])
    #expect(try node.digest(partition) == "b7b43164d8c94dfe04c6f1e03afc81f55e8d02a3649d5501a50fa6910b7e320f")
    _ = try node.write(partition, [DocumentRequest(collection: "reports", id: .int(7), action: .delete)])
    #expect(try node.digest(partition) == one)
    try node.subscribe("empty")
    #expect(try node.digest(PartitionName("empty")) == String(repeating: "0", count: 64))
  }

  @Test("a sum of hashes carries from word to word, wraps at 2^256, and does not depend on their order")
  func carries() {
    let (high, low) = (Digest(words: (.max, .max, .max, .max)), Digest(words: (0, 0, 0, 2)))
    for terms in [[high, low, high], [low, high, high]] {
      var sum = StateSum()
      for term in terms { sum.add(term) }
      #expect(sum.text == String(repeating: "0", count: 64))
      sum.add(Digest(words: (1, .max, .max, .max)))
      sum.add(Digest(words: (0, 0, 0, 1)))
      #expect(sum.text == "0000000000000002" + String(repeating: "0", count: 48))
    }
  }

  @Test("digest, vector and count are of one state, however many are written meanwhile", arguments: [1_000, 0])
  func oneState(_ slice: Int64) throws {
    let fleet = try TestFleet(1) { configuration in
      // Pages so small that writes come in between; without a slice each page is from a state of its own.
      (configuration.reads.digestStretchDocuments, configuration.reads.digestSliceMilliseconds) = (1, slice)
    }
    let node = fleet.nodes[0]
    let total = 150
    var expected = [StateSum().text]
    var sum = StateSum()
    for number in 0..<total {
      sum.add(StateSum.term(partition, "c", id: .string(Text("d\(number)")), body(["n": .int(Int64(number))])))
      expected.append(sum.text)
    }
    let writing = DispatchGroup()
    DispatchQueue.global().async(group: writing) { [partition] in
      for number in 0..<total { try? node.put(partition, "c", Text("d\(number)"), body(["n": .int(Int64(number))])) }
    }
    var seen: Set<UInt64> = []
    try eventually(within: 60) {
      guard let row = try row(node), let digest = row.digest, let end = row.vector.first else { return false }
      #expect(digest == expected[Int(end.sequence)])
      #expect(row.documents == Int64(end.sequence))
      seen.insert(end.sequence)
      return end.sequence == total
    }
    writing.wait()
    #expect(slice == 0 || seen.count > 1)
  }

  @Test("a stretch that its bytes have ended stays one, however often its documents change")
  func endedByBytes() throws {
    let fleet = try TestFleet(1) { $0.reads.pageBytes = 2_000 }
    let node = fleet.nodes[0]
    func put(_ number: Int, _ note: Character) throws {
      try node.put(
        partition, "c", Text("d\(number)"), body(["note": .string(Text(String(repeating: note, count: 500)))]))
    }
    for number in 0..<20 { try put(number, "a") }
    let first = try node.digest(partition)
    let id = partition.id(fleet: node.fleet, hash: SHA256.hash)
    let count = node.digests.stretchCount(of: id)
    #expect(count > 4)
    for note in "bcdefa" {
      for number in [3, 11] { try put(number, note) }
      let digest = try node.digest(partition)
      #expect((digest == first) == (note == "a"))
    }
    #expect(node.digests.stretchCount(of: id) == count)
  }

  @Test("a digest that is not ready in time is told as such, and is there when it is asked for again")
  func later() throws {
    let fleet = try TestFleet(1) { $0.reads.digestWaitMilliseconds = 10 }
    let node = fleet.nodes[0]
    try node.put(partition, "c", "a", body(["n": .int(1)]))
    let first = try node.documents.readers.lendingAll { try row(node) }
    #expect(first?.digest == nil)
    guard case .notComputed(let reason)? = first?.digestState else {
      Issue.record("\(String(describing: first))")
      return
    }
    #expect(reason.contains("ask again"))
    #expect(first?.documents == 1 && first?.vector.first?.sequence == 1)
    try eventually { try row(node)?.digestState == .computed }
  }

  @Test("a partition whose documents cannot be read says so for itself alone")
  func damage() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let sound = try PartitionName("agency=Sound")
    try node.put(partition, "c", "a", body(["n": .int(1)]))
    try node.put(sound, "c", "b", body(["n": .int(1)]))
    try node.damage(id: .string("a"), log: true)
    try eventually { if case .failed? = try row(node)?.digestState { true } else { false } }
    #expect(try row(node)?.digest == nil)
    #expect(try row(node, sound)?.digestState == .computed)
  }

  /// A node that has told the digest of its one document, which does not read any more: whoever sums up anew is told so.
  private func summedUpThenDamaged() throws -> (TestFleet, Node, digest: String?) {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    try node.put(partition, "c", "a", body(["n": .int(1)]))
    let digest = try node.digest(partition)
    try node.damage(id: .string("a"), log: true)
    #expect(try row(node)?.digest == digest)
    return (fleet, node, digest)
  }

  @Test("a digest is kept until something changes: nothing is read for it again")
  func kept() throws {
    let (fleet, node, _) = try summedUpThenDamaged()
    defer { withExtendedLifetime(fleet) {} }
    try node.put(partition, "c", "b", body(["n": .int(1)]))
    try eventually { if case .failed? = try row(node)?.digestState { true } else { false } }
  }

  @Test(
    "nor is it kept where documents change though what counts of the partition stays, as when a fork comes to light")
  func rebuilt() throws {
    let (fleet, node, _) = try summedUpThenDamaged()
    defer { withExtendedLifetime(fleet) {} }
    let id = node.documents.id(of: partition)
    let accepted = try node.engine.ask { [id] in $0.state.mesh.partitions[id]?.log.accepted ?? VersionVector() }
    let moved = CommitRecord.Moved(partition: id, name: partition, before: accepted, accepted: accepted)
    let key = DocumentKey(collection: "c", id: .string("a"))
    node.feed.committed(
      CommitRecord(partitions: [moved], documents: [ChangedDocuments([key], in: id)]), at: node.feed.next.position)
    try eventually { if case .failed? = try row(node)?.digestState { true } else { false } }
  }

  @Test("documents that moved without a run are summed up anew also where more was committed than the feed remembers")
  func rebuiltLongAgo() throws {
    let (fleet, node, digest) = try summedUpThenDamaged()
    defer { withExtendedLifetime(fleet) {} }
    func overflow() {
      for _ in 0...CommitFeed.recordLimit {
        node.feed.committed(CommitRecord(hasStatements: true), at: node.feed.next.position)
      }
    }
    overflow()
    #expect(try row(node)?.digest == digest)
    let id = node.documents.id(of: partition)
    try node.onStore { store in
      try store.write(.full) { transaction in
        if let number = try transaction.partitionNumber(id) { try transaction.noteRebuild(of: number) }
      }
    }
    overflow()
    try eventually { if case .failed? = try row(node)?.digestState { true } else { false } }
  }

  /// A node whose digests are made of stretches of two to four documents, and the sum of what is put into it.
  private func node(with count: Int) throws -> (TestFleet, Node, sum: StateSum) {
    let fleet = try TestFleet(1) { $0.reads.digestStretchDocuments = 2 }
    var sum = StateSum()
    for number in 0..<count { try put(Text("d\(100 + number)"), 1, fleet.nodes[0], &sum) }
    return (fleet, fleet.nodes[0], sum)
  }

  private func put(_ id: Text, _ value: Int64, _ node: Node, _ sum: inout StateSum) throws {
    let content = body(["n": .int(value)])
    try node.put(partition, "c", id, content)
    sum.add(StateSum.term(partition, "c", id: .string(id), content))
  }

  @Test("where one document changes its stretch is read again, and what lies elsewhere is not")
  func followsChanges() throws {
    var (fleet, node, sum) = try node(with: 40)
    defer { withExtendedLifetime(fleet) {} }
    #expect(try node.digest(partition) == sum.text)
    try node.damage(id: .string("d120"), log: true)
    // Between keys, and behind the last.
    for round in 0..<12 {
      for id in ["d103-\(round)", "e\(round)"] { try put(Text(id), 1, node, &sum) }
      #expect(try node.digest(partition) == sum.text)
    }
    // More than the feed remembers: the log says what changed.
    for number in 0...CommitFeed.recordLimit { try put(Text("f\(number)"), 1, node, &sum) }
    #expect(try node.digest(partition) == sum.text)
    // What lies beside the damaged one has to be read.
    try node.put(partition, "c", "d120-x", body([:]))
    try eventually { if case .failed? = try row(node)?.digestState { true } else { false } }
  }

  @Test("a digest that followed many changes is the one that is made anew")
  func followsAnything() throws {
    let fleet = try TestFleet(2) { $0.reads.digestStretchDocuments = 2 }
    let (node, other) = (fleet.nodes[0], fleet.nodes[1])
    try other.subscribe(partition.text)
    var random = SplitMix64(seed: 7)
    for round in 0..<24 {
      for _ in 0...(random.next() % 12) {
        let (collection, number): (Text, UInt64) = (["a", "b"][Int(random.next() % 2)], random.next() % 40)
        let action: DocumentRequest.Action =
          random.next() % 3 == 0
          ? .delete : .put(body: body(["n": .int(Int64(random.next() % 100))]), keepAbsent: false)
        // To delete what is not there is refused.
        _ = try? node.write(
          partition, [DocumentRequest(collection: collection, id: .string(Text("d\(number)")), action: action)])
      }
      let digest = try node.digest(partition)
      // The other one makes its first at the end, from nothing.
      if round == 23 { try eventually { try other.digest(partition) == digest } }
    }
    #expect(try row(node)?.documents == row(other)?.documents)
  }

  @Test("a node stops while digests are being computed")
  func stops() throws {
    let fleet = try TestFleet(1) { configuration in
      (configuration.reads.digestWaitMilliseconds, configuration.reads.digestStretchDocuments) = (0, 1)
    }
    let node = fleet.nodes[0]
    for number in 0..<20 {
      try node.put(PartitionName(Text("room=\(number)")), "c", "a", body(["n": .int(1)]))
    }
    _ = try node.partitions(withDigests: true)
    node.stop()
    #expect(throws: NodeError.self) { try node.partitions(withDigests: true) }
    try fleet.restart(0)
    #expect(try fleet.nodes[0].digest(PartitionName("room=19")) != nil)
  }
}
