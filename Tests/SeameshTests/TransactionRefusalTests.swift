import Replication
import Testing

@testable import Seamesh

@Suite("Refused transactions", .serialized)
struct TransactionRefusalTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=W") }

  private func put(_ id: Text, _ body: ValueMap) -> DocumentRequest {
    DocumentRequest(collection: "reports", id: .string(id), action: .put(body: body, keepAbsent: false))
  }

  @Test("of several operations the one that is refused is named, and none is done; one alone needs no number")
  func named() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let missing = DocumentRequest(collection: "crew", id: .int(7), action: .delete)
    let refused = #expect(throws: NodeError.self) {
      try node.write(partition, [put("a", body(["n": .int(1)])), missing])
    }
    #expect(refused?.message == "operation 2 (crew 7): there is no such document")
    #expect(refused?.code == .notFound && refused?.operation == 2)
    #expect(try node.read(partition, "reports", id: .string("a")) == nil)
    let alone = #expect(throws: NodeError.self) { try node.write(partition, [missing]) }
    #expect(alone?.message == "there is no such document" && alone?.operation == nil)
  }

  @Test("documents that are too much together are to be sent in fewer at once, one that is too much alone in steps")
  func tooLarge() throws {
    let fleet = try TestFleet(1)
    func refusal(_ bodies: [ValueMap]) -> NodeError? {
      let requests = bodies.enumerated().map { put(Text("\($0)"), $1) }
      return #expect(throws: NodeError.self) { try fleet.nodes[0].write(partition, requests) }
    }
    func fields(_ count: Int) -> ValueMap {
      ValueMap((0..<count).map { ValueMap.Entry(key: Text("f\($0)"), value: .int(1)) }) ?? ValueMap()
    }
    let several = refusal([fields(6_000), fields(6_000)])
    #expect(several?.code == .tooLarge && several?.limit == NodeError.Limit(Run.operationLimit, "operations"))
    #expect(several?.message.hasSuffix(": send fewer operations at once") == true, "\(several as Any)")
    let alone = refusal([fields(12_000)])
    #expect(alone?.message.contains("in several steps") == true, "\(alone as Any)")
    let long = body(["text": .string(Text(String(repeating: "x", count: 900_000)))])
    let bytes = refusal(Array(repeating: long, count: 5))
    #expect(bytes?.limit == NodeError.Limit(Run.changePayloadByteLimit, "bytes"))
    #expect(bytes?.message.hasSuffix(": send fewer operations at once") == true, "\(bytes as Any)")
  }
}
