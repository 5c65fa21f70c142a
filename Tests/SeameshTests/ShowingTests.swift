import Identity
import Replication
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// Documents are shown where the device may read, whatever it holds.
@Suite("What a device shows", .serialized)
struct ShowingTests {
  private let room: PartitionName
  private let fleet: TestFleet
  private var carrier: Node { fleet.nodes[1] }

  init() throws {
    room = try PartitionName("room=1")
    fleet = try TestFleet(2, isClosed: true)
    try fleet.nodes[0].put(room, "c", "one", body(["n": .int(1)]))
    try carrier.subscribe("room=*")
  }

  private func grant(_ level: String) throws {
    _ = try fleet.nodes[0].change(
      RightsChange(.grant(who: "device:node 1", level: level, pattern: "room=*"), isConfirmed: true))
    try eventually { try carrier.permissions(room, who: "device:node 1").members.first?.level == level }
  }

  /// One refusal for each way in which documents can be asked for.
  private func refusals() -> [NodeError?] {
    func refusal(_ body: () throws(NodeError) -> Void) -> NodeError? {
      do throws(NodeError) {
        try body()
        return nil
      } catch { return error }
    }
    return [
      refusal { () throws(NodeError) in _ = try carrier.read(room, "c", id: .string("one")) },
      refusal { () throws(NodeError) in _ = try carrier.find(room, "c", FindRequest()) },
      refusal { () throws(NodeError) in _ = try carrier.watch(room, "c", FindRequest()) },
      refusal { () throws(NodeError) in try carrier.export(room, collection: nil) { _, _ in true } },
    ]
  }

  @Test("what it may only carry it holds, passes on and shows nobody, in a sentence that says by which statement")
  func carrying() throws {
    try grant("carry")
    try eventually { try carrier.status().changes == 1 }
    #expect(try carrier.documents.stored(room, "c", id: .string("one")) != nil)
    let sentence = "this device may not read room=1: it may only carry there, by the grant"
    for refusal in refusals() {
      #expect(refusal?.code == .notPermitted && refusal?.message.hasPrefix(sentence) == true)
      #expect(refusal?.lackOfRight == LackOfRight(partition: "room=1", has: .carry, needs: .read))
    }
    try grant("read")
    #expect(refusals() == [nil, nil, nil, nil])
    #expect(try carrier.read(room, "c", id: .string("one"))?.body == body(["n": .int(1)]))
    try grant("none")
    #expect(refusals().allSatisfy { $0?.lackOfRight?.has == PartitionAccess.none })
  }

  @Test(
    "who may carry a partition is told how safe it is, who may read it also of each document, and nobody else of either"
  )
  func receipts() throws {
    func told() -> (partition: Bool, document: Bool) {
      let partition = try? carrier.receipts(room, asking: true)
      let document = try? carrier.receipts(room, "c", id: .string("one"), asking: false)
      return (partition?.holders.map(\.label) == ["node 0"], document?.changes.map(\.sequence) == [1])
    }
    for (level, expected) in [("carry", (true, false)), ("read", (true, true)), ("none", (false, false))] {
      try grant(level)
      if level == "carry" { try eventually { try carrier.status().changes == 1 } }
      #expect(told() == expected, "\(level)")
    }
  }

  @Test("a live result ends with a refusal where reading is taken away, and shows nothing of what comes then")
  func watching() throws {
    try grant("read")
    try eventually { try carrier.read(room, "c", id: .string("one")) != nil }
    let watch = try carrier.watch(room, "c", FindRequest())
    guard case .snapshot(let documents, _) = try watch.next(timeoutMilliseconds: 0) else {
      Issue.record("no snapshot")
      return
    }
    #expect(documents.count == 1)
    try grant("carry")
    try fleet.nodes[0].put(room, "c", "two", body(["n": .int(2)]))
    try eventually { try carrier.status().changes == 2 }
    let refused = #expect(throws: NodeError.self) { try watch.next(timeoutMilliseconds: 5_000) }
    #expect(refused?.code == .notPermitted)
  }

  @Test("what nothing gives a right to is refused, whether anything is there or not")
  func elsewhere() throws {
    let refused = #expect(throws: NodeError.self) {
      try carrier.find(PartitionName("agency=Nowhere"), "c", FindRequest())
    }
    #expect(refused?.message == "this device may not read agency=Nowhere: nothing gives it any right there")
  }

  @Test("whoever wants what it may not hold is told so, and wants it all the same")
  func wanting() throws {
    let notes = try carrier.subscribe("agency=Gabon")
    #expect(
      notes == [
        "this device may not hold agency=Gabon, so that nothing of it comes: nothing gives it any right there"
      ])
    #expect(try carrier.subscriptions().contains("agency=Gabon"))
    #expect(try carrier.subscribe("agency=*").isEmpty && fleet.nodes[0].subscribe("agency=Gabon").isEmpty)
    try grant("carry")
    #expect(try carrier.subscribe("room=1").isEmpty)
  }
}
