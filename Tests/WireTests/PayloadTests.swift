import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Payloads")
struct PayloadTests {
  private static let dot = Dot(replica: ReplicaID(high: 5, low: 6), sequence: 40)

  @Test("decoding undoes encoding, documents and operations in payload order", arguments: 0..<40 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<20 {
      let writes = generator.writes(dot: PayloadTests.dot, count: 1 + generator.below(4))
      let payload = PayloadEncoder.encode(writes, dot: PayloadTests.dot)
      let decoded = try PayloadDecoder.decodeWrites(payload[...], dot: PayloadTests.dot)
      #expect(decoded.count == writes.count)
      for (write, original) in zip(decoded, PayloadEncoder.sorted(writes)) {
        #expect(write.collection == original.collection && write.id == original.id)
        #expect(write.kind == original.kind && write.generation == original.generation)
        #expect(Set(write.operations) == Set(original.operations))
      }
      #expect(PayloadEncoder.encode(decoded, dot: PayloadTests.dot) == payload)
    }
  }

  @Test("the scan shows what decoding shows, at the buffer's own indices", arguments: 0..<10 as Range<UInt64>)
  func scan(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let writes = PayloadEncoder.sorted(generator.writes(dot: PayloadTests.dot, count: 4))
    let buffer = [0xff, 0xff] + PayloadEncoder.encode(writes, dot: PayloadTests.dot) + [0xff]
    let payload = buffer[2..<buffer.count - 1]
    var scanner = PayloadScanner()
    let scan = try scanner.scan(payload, dot: PayloadTests.dot)
    #expect(scan.operationCount == writes.reduce(0) { $0 + $1.operations.count })
    for (view, write) in zip(scan.documents, writes) {
      #expect(view.collection(in: payload) == write.collection)
      #expect(try view.id(in: payload) == write.id)
      #expect(try view.key(in: payload) == DocumentKey(collection: write.collection, id: write.id))
      #expect(view.kind == write.kind && view.generation == write.generation)
      #expect(view.operationCount == write.operations.count)
      let operations = try PayloadDecoder.decodeOperations(payload[view.operations], dot: PayloadTests.dot)
      #expect(Set(operations) == Set(write.operations))
    }
  }

  @Test("elements of other replicas are reported, the highest of each")
  func elementDots() throws {
    let (a, b) = (ReplicaID(high: 1, low: 1), ReplicaID(high: 2, low: 2))
    let elements: [(ReplicaID, UInt64)] = [
      (a, 7), (a, 3), (b, 9), (PayloadTests.dot.replica, 39), (PayloadTests.dot.replica, 40),
    ]
    // By their positions the highest comes first.
    let operations = elements.enumerated().map { index, named in
      let dot = Dot(replica: named.0, sequence: named.1)
      let element = ListElement(position: [8 + UInt8(index)], dot: dot)
      return Operation(.listRemove, [.key("list"), .element(element)])
    }
    var scanner = PayloadScanner()
    let scan = try scanner.scan(payload(operations)[...], dot: PayloadTests.dot)
    #expect(scan.elementDots == [a: 7, b: 9])
    #expect(try scanner.scan(payload([set("x")])[...], dot: PayloadTests.dot).elementDots.isEmpty)
  }

  @Test("a payload cut off at any byte is refused", arguments: 0..<10 as Range<UInt64>)
  func truncation(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let writes = generator.writes(dot: PayloadTests.dot, count: 3)
    for part in Mutations(original: PayloadEncoder.encode(writes, dot: PayloadTests.dot)).truncations {
      #expect(reason(part) == .encoding(.truncated))
    }
  }

  @Test("a damaged payload is refused, or has the one form of what it says", arguments: 0..<40 as Range<UInt64>)
  func mutation(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let writes = generator.writes(dot: PayloadTests.dot, count: 2)
    let mutations = Mutations(original: PayloadEncoder.encode(writes, dot: PayloadTests.dot))
    for _ in 0..<200 {
      let damaged = mutations.random(&generator)
      guard let decoded = try? PayloadDecoder.decodeWrites(damaged[...], dot: PayloadTests.dot) else { continue }
      #expect(PayloadEncoder.encode(decoded, dot: PayloadTests.dot) == damaged)
    }
  }

  @Test("operations are taken only where their entry paths ascend", arguments: 0..<40 as Range<UInt64>)
  func order(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<100 {
      let pair = generator.operations(dot: PayloadTests.dot, count: 2)
      guard pair.count == 2 else { continue }
      let paths = EntryPaths(pair, dot: PayloadTests.dot)
      let ascending = paths[0].lexicographicallyPrecedes(paths[1])
      #expect(reason(unsorted(pair)) == (ascending ? nil : .operationOrder))
      #expect(reason(unsorted(pair.reversed())) == (ascending ? .operationOrder : nil))
    }
  }

  @Test("path bytes are those of rule M2")
  func pathBytes() {
    let dot = Dot(replica: ReplicaID(high: 0x0102, low: 0xff), sequence: 0x10)
    let inserted = Operation(.listInsert, [.key("a\0b")], value: .null, position: [0x00, 0x41])
    let expected =
      "06" + "6100ff62" + "00" + "0e" + "00ff41" + "00ff00ff00ff00ff00ff00ff0102" + "00ff00ff00ff00ff00ff00ff00ffff"
      + "00ff00ff00ff00ff00ff00ff00ff10" + "80" + "00"
    let added = Operation(.setAdd, [.key("s")], value: .int(1))
    let paths = EntryPaths([inserted, added], dot: dot)
    #expect(hex(Array(paths[0])) == expected)
    #expect(hex(Array(paths[1])) == "067300" + "0f" + "048000000000000001")
    #expect(paths.ascending == [0, 1] && EntryPaths([added, inserted], dot: dot).ascending == [1, 0])
  }
}

extension PayloadTests {
  @Test("what rule M4 forbids is refused for its reason", arguments: PayloadTests.malformed)
  func malformed(item: Malformed) {
    #expect(reason(item.payload) == item.reason, "\(item.name)")
  }

  struct Malformed: Sendable, CustomTestStringConvertible {
    let name: String
    let payload: [UInt8]
    let reason: PayloadError.Reason?
    var testDescription: String { name }
  }

  private static func item(
    _ name: String, _ reason: PayloadError.Reason?, _ operations: [Operation], kind: DocumentWrite.Kind = .edit,
    generation: UInt64 = 3, id: Value = .int(1), collection: Text = "c"
  ) -> Malformed {
    let write = DocumentWrite(
      collection: collection, id: id, kind: kind, generation: generation, operations: operations)
    return Malformed(name: name, payload: PayloadEncoder.encode([write], dot: dot), reason: reason)
  }

  private static func foreign(_ sequence: UInt64, of replica: ReplicaID = dot.replica) -> PathSegment {
    .element(ListElement(position: [1], dot: Dot(replica: replica, sequence: sequence)))
  }

  private static func keys(_ count: Int) -> [PathSegment] { (0..<count).map { _ in .key("k") } }

  static let malformed: [Malformed] =
    documentItems + pathItems + orderItems + valueItems

  private static let x = Operation(.set, [.key("x")], value: .null)

  private static let documentItems = [
    item("even create", .generation, [x], kind: .create, generation: 2),
    item("even edit", .generation, [x], generation: 2),
    item("odd delete", .generation, [], kind: .delete, generation: 3),
    item("generation 0", .generation, [], kind: .delete, generation: 0),
    item("generation 2^53 + 1", .generation, [x], generation: 1 << 53 + 1),
    item("greatest generation", nil, [x], generation: 1 << 53 - 1),
    item("edit without operations", .operations, []),
    item("delete with operations", .operations, [x], kind: .delete, generation: 2),
    item("create without operations", nil, [], kind: .create),
    item("collection without a name", .collectionLength(0, limit: 255), [x], collection: ""),
    item(
      "collection of 256 bytes", .collectionLength(256, limit: 255), [x],
      collection: Text(String(repeating: "c", count: 256))),
    item("id of null", .idType, [x], id: .null),
    item("id of bytes", .idType, [x], id: .bytes([1])),
    item("id of a date", .idType, [x], id: .date(1)),
    item("id of a double", .idType, [x], id: .double(1)),
    item("id of 1 KiB", nil, [x], id: .string(Text(String(repeating: "i", count: 1022)))),
    item("longer id", .idLength(limit: 1024), [x], id: .string(Text(String(repeating: "i", count: 1023)))),
    item(
      "id made longer by zeros", .idLength(limit: 1024), [x], id: .string(Text(String(repeating: "\0", count: 512)))),
    Malformed(name: "no document", payload: [0x80], reason: .documentCount(0, limit: 1000)),
    Malformed(
      name: "one document twice", payload: bytes("82" + "85616301000380" + "85616301000380"), reason: .documentOrder),
    Malformed(
      name: "documents out of order", payload: bytes("82" + "85616302000380" + "85616301000380"),
      reason: .documentOrder),
    Malformed(
      name: "ids by canonical order", payload: bytes("82" + "85616320000380" + "85616301000380"), reason: nil),
    Malformed(name: "unknown kind of document", payload: bytes("8185616301030380"), reason: .documentKind),
    Malformed(name: "six fields", payload: bytes("818661630100038000"), reason: .encoding(.wrongLength)),
    Malformed(name: "bytes behind", payload: bytes("818561630100038000"), reason: .encoding(.trailingBytes)),
  ]

  private static let pathItems = [
    item("id as a path", .path, [Operation(.set, [.key("_id")], value: .null)]),
    item("below the id", .path, [Operation(.set, [.key("_id"), .key("x")], value: .null)]),
    item("id deeper down", nil, [Operation(.set, [.key("x"), .key("_id")], value: .null)]),
    item("no path", .path, [Operation(.set, [], value: .null)]),
    item("element first", .path, [Operation(.listRemove, [foreign(3)])]),
    item("64 segments", nil, [Operation(.set, keys(64), value: .null)]),
    item("65 segments", .path, [Operation(.set, keys(65), value: .null)]),
    item("64 segments and a member", .path, [Operation(.setAdd, keys(64), value: .null)]),
    item("63 segments and a member", nil, [Operation(.setAdd, keys(63), value: .null)]),
    item("container at level 65", .encoding(.tooDeep), [Operation(.set, keys(64), value: .array([]))]),
    item("container at level 64", nil, [Operation(.set, keys(63), value: .array([]))]),
    item("element of this change", nil, [Operation(.listRemove, [.key("l"), foreign(40)])]),
    item("element of a later change", .element, [Operation(.listRemove, [.key("l"), foreign(41)])]),
    item("element 0", .encoding(.outOfRange), [Operation(.listRemove, [.key("l"), foreign(0)])]),
    item("no position", .positionLength(limit: 512), [Operation(.listInsert, [.key("l")], value: .null)]),
    item(
      "position of 513 bytes", .positionLength(limit: 512),
      [Operation(.listInsert, [.key("l")], value: .null, position: [UInt8](repeating: 1, count: 513))]),
    item("remove of an element", .pathEnd, [Operation(.remove, [.key("l"), foreign(3)])]),
    item("increment of an element", .pathEnd, [Operation(.increment, [.key("l"), foreign(3)], value: .int(1))]),
    item("list-remove of a key", .pathEnd, [Operation(.listRemove, [.key("l"), .key("k")])]),
    item("set of an element", nil, [Operation(.set, [.key("l"), foreign(3)], value: .null)]),
    Malformed(name: "one key in an array", payload: operation("83008161" + "78f6"), reason: .pathForm),
    Malformed(
      name: "own element by its dot",
      payload: operation("8204" + "82616c" + "8341015000000000000000050000000000000006" + "1828"), reason: .element),
    Malformed(name: "element of two fields", payload: operation("820482616c82410100"), reason: .operationShape),
    Malformed(name: "unknown operation", payload: operation("83076178f6"), reason: .operationKind),
    Malformed(name: "set without a value", payload: operation("82006178"), reason: .operationShape),
    Malformed(name: "remove with a value", payload: operation("83016178f6"), reason: .operationShape),
  ]

  private static let orderItems = [
    item("one path twice", .pathTwice, [x, Operation(.remove, [.key("x")])]),
    item(
      "one member twice", .pathTwice,
      [Operation(.setAdd, [.key("s")], value: .int(1)), Operation(.setRemove, [.key("s")], value: .int(1))]),
    item(
      "one path twice, deeper", .pathTwice,
      [Operation(.set, [.key("a"), .key("b")], value: .null), Operation(.remove, [.key("a"), .key("b")])]),
    item(
      "one element inserted twice", .pathTwice,
      [
        Operation(.listInsert, [.key("l")], value: .null, position: [1]),
        Operation(.listInsert, [.key("l")], value: .int(1), position: [1]),
      ]),
    item("above another", .pathAbove, [x, Operation(.set, [.key("x"), .key("y")], value: .null)]),
    item(
      "removed above another", .pathAbove,
      [Operation(.remove, [.key("x")]), Operation(.set, [.key("x"), .key("y")], value: .null)]),
    item(
      "above a member", .pathAbove,
      [Operation(.set, [.key("x")], value: .int(1)), Operation(.setAdd, [.key("x")], value: .null)]),
    item(
      "two steps above, others between", .pathAbove,
      [x] + ["a", "b"].map { Operation(.set, [.key("x"), .key($0), .key("z")], value: .null) }),
    item(
      "markers above others", nil,
      [
        Operation(.set, [.key("x")], value: .map(ValueMap())),
        Operation(.set, [.key("x"), .key("l")], value: .array([])),
        Operation(.listInsert, [.key("x"), .key("l")], value: .map(ValueMap()), position: [1]),
        Operation(.set, [.key("x"), .key("l"), foreign(40), .key("name")], value: .null),
      ]),
    item(
      "a key that begins with another and a zero byte", nil,
      [x, Operation(.set, [.key("x\0y")], value: .null), Operation(.set, [.key("x\0y2"), .key("z")], value: .null)]),
    Malformed(
      name: "descending keys", payload: operations("83006179f6", "83006178f6"), reason: .operationOrder),
  ]

  private static let valueItems = [
    item("map as a value", .mapValue, [Operation(.set, [.key("x")], value: .map([("a", .null)]))]),
    item(
      "map as an element", .mapValue,
      [Operation(.listInsert, [.key("x")], value: .map([("a", .null)]), position: [1])]),
    item("map as a member", nil, [Operation(.setAdd, [.key("x")], value: .map([("a", .null)]))]),
    item("map in an array", nil, [Operation(.set, [.key("x")], value: .array([.map([("a", .null)])]))]),
    item("increment by 0", .increment, [Operation(.increment, [.key("x")], value: .int(0))]),
    item("increment by a double", .increment, [Operation(.increment, [.key("x")], value: .double(1))]),
    item("increment by −1", nil, [Operation(.increment, [.key("x")], value: .int(-1))]),
    Malformed(
      name: "keys of a value out of order", payload: operation("83006178" + "81a26162f66161f6"),
      reason: .encoding(.keyOrder)),
    Malformed(name: "reserved tag", payload: operation("83006178" + "d9d104f6"), reason: .encoding(.reservedTag)),
  ]

  /// An edit of one document with operations given as they stand.
  private static func operations(_ encoded: String...) -> [UInt8] {
    bytes("81" + "85616301" + "0103" + hex([0x80 + UInt8(encoded.count)]) + encoded.joined())
  }

  private static func operation(_ encoded: String) -> [UInt8] { operations(encoded) }
}

extension PayloadTests {
  @Test("limits of a change are taken exactly and refused one above")
  func limits() {
    let operations = (0..<Run.operationLimit + 1).map { set(Text("key \($0)")) }
    #expect(reason(payload(Array(operations.dropLast()))) == nil)
    #expect(reason(payload(operations)) == .operationCount(limit: Run.operationLimit))
    let writes = (0..<Run.documentLimit + 1).map {
      DocumentWrite(collection: "c", id: .int(Int64($0)), kind: .create, generation: 1, operations: [])
    }
    #expect(reason(PayloadEncoder.encode(writes.dropLast(), dot: PayloadTests.dot)) == nil)
    #expect(
      reason(PayloadEncoder.encode(writes, dot: PayloadTests.dot))
        == .documentCount(Run.documentLimit + 1, limit: Run.documentLimit))
    let frame = payload([Operation(.set, [.key("x")], value: .bytes([UInt8](repeating: 0, count: 1 << 20)))]).count
    for (excess, expected) in [
      (0, nil), (1, PayloadError.Reason?.some(.tooLong(byteCount: 4_128_769, limit: 4_128_768))),
    ] {
      let count = Run.changePayloadByteLimit - (frame - 1 << 20) + excess
      let value = Value.bytes([UInt8](repeating: 0, count: count))
      #expect(reason(payload([Operation(.set, [.key("x")], value: value)])) == expected)
    }
  }

  private func set(_ key: Text) -> Operation { Operation(.set, [.key(key)], value: .null) }

  private func payload(_ operations: [Operation]) -> [UInt8] {
    let write = DocumentWrite(collection: "c", id: .int(1), kind: .edit, generation: 3, operations: operations)
    return PayloadEncoder.encode([write], dot: PayloadTests.dot)
  }

  /// The operations one behind the other, as they are given.
  private func unsorted(_ operations: [Operation]) -> [UInt8] {
    var writer = CBORWriter()
    writer.arrayHeader(operations.count)
    for operation in operations {
      var alone = CBORWriter()
      alone.operations([operation], dot: PayloadTests.dot)
      writer.encoded(alone.bytes.dropFirst())
    }
    return bytes("81" + "85616301" + "0103") + writer.bytes
  }

  private func reason(_ payload: [UInt8]) -> PayloadError.Reason? { reason(payload[...]) }

  private func reason(_ payload: ArraySlice<UInt8>) -> PayloadError.Reason? {
    do throws(PayloadError) {
      _ = try PayloadDecoder.decodeWrites(payload, dot: PayloadTests.dot)
      return nil
    } catch {
      return error.reason
    }
  }
}
