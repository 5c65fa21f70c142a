import Replication
import Testing

@Suite("Malformed writes")
struct MalformationTests {
  private static let own = Dot(replica: ReplicaID(high: 1, low: 0), sequence: 5)
  private static let seen = Dot(replica: ReplicaID(high: 2, low: 0), sequence: 3)
  private static let context = WriteContext(
    dot: own, timestamp: .zero,
    context: VersionVector([seen.replica: ChainPosition(sequence: seen.sequence, tip: .zero)]))

  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let expected: Malformation?
    let write: DocumentWrite

    init(
      _ description: String, _ expected: Malformation?, _ operations: [Operation], kind: DocumentWrite.Kind = .edit,
      generation: UInt64 = 1
    ) {
      (testDescription, self.expected) = (description, expected)
      write = DocumentWrite(
        collection: "c", id: .int(1), kind: kind, generation: generation, operations: operations)
    }
  }

  private static func set(_ path: PathSegment..., to value: Value = .int(1)) -> Operation {
    Operation(.set, path, value: value)
  }

  private static func element(_ dot: Dot, _ position: [UInt8] = [0x80]) -> PathSegment {
    .element(ListElement(position: position, dot: dot))
  }

  private static func later(_ dot: Dot) -> Dot { Dot(replica: dot.replica, sequence: dot.sequence + 1) }

  private static let a = PathSegment.key("a")
  private static let b = PathSegment.key("b")
  private static let emptyMap = Value.map(ValueMap())
  private static let fullMap = Value.map(ValueMap(ascending: [.init(key: "x", value: .null)]))

  private static let generations = [
    Case("generation 0", .generation, [set(a)], generation: 0),
    Case("an edit of an even generation", .generation, [set(a)], generation: 2),
    Case("a create of an even generation", .generation, [], kind: .create, generation: 2),
    Case("a delete of an odd generation", .generation, [], kind: .delete, generation: 1),
    Case("generation 2^53 + 1", .generation, [set(a)], generation: 1 << 53 + 1),
    Case("generation 2^53 - 1", nil, [set(a)], generation: 1 << 53 - 1),
    Case("an edit without operations", .operations, []),
    Case("a create without operations", nil, [], kind: .create),
    Case("a delete with operations", .operations, [set(a)], kind: .delete, generation: 2),
  ]

  private static let paths = [
    Case("the empty path", .path, [Operation(.set, [], value: .int(1))]),
    Case("a path that begins with an element", .path, [set(element(seen), a)]),
    Case("the id", .path, [set(.key("_id"))]),
    Case("a key _id further down", nil, [set(a, .key("_id"))]),
    Case("64 segments", nil, [Operation(.set, [PathSegment](repeating: a, count: 64), value: .int(1))]),
    Case("65 segments", .path, [Operation(.set, [PathSegment](repeating: a, count: 65), value: .int(1))]),
    Case(
      "65 segments with the member", .path,
      [Operation(.setAdd, [PathSegment](repeating: a, count: 64), value: .int(1))]),
    Case("a path through a set member", .path, [set(a, .member([0x01]))]),
    Case("one path twice", .pathTwice, [set(a), set(b), Operation(.remove, [a])]),
    Case(
      "a member added and removed", .pathTwice,
      [Operation(.setAdd, [a], value: .int(1)), Operation(.setRemove, [a], value: .int(1))]),
    Case("two members", nil, [Operation(.setAdd, [a], value: .int(1)), Operation(.setAdd, [a], value: .double(1))]),
    Case("a value above another", .pathAboveAnother, [set(a, b), set(a), set(b)]),
    Case("a remove far above another", .pathAboveAnother, [Operation(.remove, [a]), set(a, b, b)]),
    Case("a marker above another", nil, [set(a, to: emptyMap), set(a, b)]),
    Case("a marker of the other kind above another", nil, [set(a, to: .array([])), set(a, b)]),
  ]

  private static let elements = [
    Case("an element seen", nil, [set(a, element(seen))]),
    Case("an element not seen", .element, [set(a, element(later(seen)), b)]),
    Case("an element of this change", nil, [set(a, element(own))]),
    Case("an element of a later change", .element, [set(a, element(later(own)))]),
    Case("an empty position", .position, [Operation(.listInsert, [a], value: .int(1))]),
    Case(
      "a position of 512 bytes", nil,
      [Operation(.listInsert, [a], value: .int(1), position: [UInt8](repeating: 1, count: 512))]),
    Case(
      "a position of 513 bytes", .position,
      [Operation(.listInsert, [a], value: .int(1), position: [UInt8](repeating: 1, count: 513))]),
    Case(
      "a position of 513 bytes on the way", .position, [set(a, element(seen, [UInt8](repeating: 1, count: 513)), b)]),
    Case("a list removal of a key", .kind, [Operation(.listRemove, [a])]),
    Case("a removal of an element", .kind, [Operation(.remove, [a, element(seen)])]),
    Case("an increment of an element", .kind, [Operation(.increment, [a, element(seen)], value: .int(1))]),
    Case("a list removal of an element", nil, [Operation(.listRemove, [a, element(seen)])]),
  ]

  private static let values = [
    Case("a map as a value", .value, [set(a, to: fullMap)]),
    Case("a map as a new element", .value, [Operation(.listInsert, [a], value: fullMap, position: [1])]),
    Case("a map as a set member", nil, [Operation(.setAdd, [a], value: fullMap)]),
    Case("a map inside an array", nil, [set(a, to: .array([fullMap]))]),
    Case("a set without a value", .value, [Operation(.set, [a])]),
    Case("an increment of 0", .value, [Operation(.increment, [a], value: .int(0))]),
    Case("an increment by a double", .value, [Operation(.increment, [a], value: .double(1))]),
    Case("an increment by the least int64", nil, [Operation(.increment, [a], value: .int(.min))]),
  ]

  @Test("each fault is named, and what is allowed passes", arguments: generations + paths + elements + values)
  func eachFaultIsNamed(example: Case) {
    #expect(Self.context.malformation(of: [example.write]) == example.expected)
  }

  @Test("a change writes a document once")
  func documentTwice() {
    let first = DocumentWrite(collection: "c", id: .int(1), kind: .create, generation: 1, operations: [])
    let other = DocumentWrite(collection: "c", id: .double(1), kind: .create, generation: 1, operations: [])
    #expect(Self.context.malformation(of: [first, other]) == nil)
    #expect(Self.context.malformation(of: [first, other, first]) == .documentTwice)
  }
}
