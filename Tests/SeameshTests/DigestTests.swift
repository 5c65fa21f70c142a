import Foundation
import Replication
import Storage
import TestSupport
import Testing

@testable import Seamesh

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
      (configuration.reads.pageDocuments, configuration.reads.digestSliceMilliseconds) = (2, slice)
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

  @Test("a digest that is not ready in time is told as such, and is there when it is asked for again")
  func later() throws {
    let fleet = try TestFleet(1) { $0.reads.digestWaitMilliseconds = 10 }
    let node = fleet.nodes[0]
    try node.put(partition, "c", "a", body(["n": .int(1)]))
    let first = try node.readers.lendingAll { try row(node) }
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

  @Test("a digest is kept until something changes: nothing is read for it again")
  func kept() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    try node.put(partition, "c", "a", body(["n": .int(1)]))
    let digest = try node.digest(partition)
    try node.damage(id: .string("a"), log: true)
    #expect(try row(node)?.digest == digest)
    try node.put(partition, "c", "b", body(["n": .int(1)]))
    try eventually { if case .failed? = try row(node)?.digestState { true } else { false } }
  }

  @Test("a node stops while digests are being computed")
  func stops() throws {
    let fleet = try TestFleet(1) { configuration in
      (configuration.reads.digestWaitMilliseconds, configuration.reads.pageDocuments) = (0, 1)
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
