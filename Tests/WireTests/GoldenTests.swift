import Replication
import Testing

@testable import Wire

/// The examples of `Docs/PROTOCOL.md`, made by the code and read by it.
@Suite("Golden bytes of the protocol's document")
struct GoldenTests {
  @Test("every example of the document is made and read here, and none is missing", arguments: GoldenTests.examples)
  func example(item: Example) throws {
    let golden = try #require(GoldenBlocks.all[item.name], "Docs/PROTOCOL.md has no block \(item.name)")
    #expect(hex(item.encoded) == hex(golden))
    #expect(try item.isRead(golden[...]))
  }

  @Test("the document has no example that nothing checks")
  func complete() {
    #expect(Set(GoldenBlocks.all.keys) == Set(GoldenTests.examples.map(\.name)))
  }

  struct Example: Sendable, CustomTestStringConvertible {
    let name: String
    let encoded: [UInt8]
    let isRead: @Sendable (ArraySlice<UInt8>) throws -> Bool
    var testDescription: String { name }
  }

  static let examples: [Example] =
    [values, blobList, payload, run, longRun, apart, held, headersOnly] + hashes + contexts + statements
    + [state, stateHash, holdings, bundle] + holdingsSigned + messages

  static let fleet = FleetID(repeating(0x11))
  static let partition = PartitionID(repeating(0x22))
  static let replica = ReplicaID(high: 0x0102_0304_0506_0708, low: 0x090a_0b0c_0d0e_0f10)
  static let other = ReplicaID(high: 0xa0a1_a2a3_a4a5_a6a7, low: 0xa8a9_aaab_acad_aeaf)
  static let chain = ChainIdentity(fleet: fleet, partition: partition, replica: replica)
  static let signature = Signature(first: repeating(0x55), second: repeating(0x66))
  static let dot = Dot(replica: replica, sequence: 1)

  static func repeating(_ byte: UInt8) -> Digest { Digest([UInt8](repeating: byte, count: 32)) ?? .zero }
}

extension GoldenTests {
  private static let values: Example = {
    let value = Value.map([
      ("null", .null), ("yes", .bool(true)), ("int", .int(-500)), ("half", .double(1.5)), ("single", .double(100000)),
      ("double", .double(1.1)), ("text", .string("Ré")), ("bytes", .bytes([1, 2, 3])),
      ("date", .date(1_700_000_000_000)),
      ("id", .objectID(ObjectID(high: 0x5f0e_1d2c_3b4a_5968, low: 0x7786_95a4))),
      ("uuid", .uuid(UUIDValue(high: 0x0011_2233_4455_6677, low: 0x8899_aabb_ccdd_eeff))),
      ("array", .array([.int(1), .map([])])),
      ("blob", .blob(of: 70_000, repeating(0x77), type: "image/jpeg")),
      ("photo", .blob(of: 300_000, repeating(0x78), type: "image/jpeg", listHash: repeating(0x79))),
    ])
    return Example(name: "values", encoded: CBORWriter.encoding { value.encode(to: &$0) }) { bytes in
      var reader = CBORReader(bytes)
      return try reader.readValue() == value
    }
  }()

  /// Of two pieces with the SHA-256 77…77 and 78…78.
  private static let blobList: Example = {
    let encoded = BlobReference.listHash(ofPieces: [repeating(0x77), repeating(0x78)], sha256).bytes
    return Example(name: "blob-list-hash", encoded: encoded) { Array($0) == encoded }
  }()

  static let writes = [
    DocumentWrite(
      collection: "Report", id: .objectID(ObjectID(high: 0x5f0e_1d2c_3b4a_5968, low: 0x7786_95a4)), kind: .create,
      generation: 1,
      operations: [
        Operation(.set, [.key("agency")], value: .string("Gabon")),
        Operation(.set, [.key("crew")], value: .array([])),
        Operation(.listInsert, [.key("crew")], value: .map([]), position: [0x80, 0x00]),
        Operation(
          .set, [.key("crew"), .element(ListElement(position: [0x80, 0x00], dot: dot)), .key("name")],
          value: .string("Ana")),
        Operation(.setAdd, [.key("tags")], value: .string("night")),
      ]),
    DocumentWrite(
      collection: "Vessel", id: .string("V-7"), kind: .edit, generation: 3,
      operations: [
        Operation(.increment, [.key("boardings")], value: .int(1)),
        Operation(
          .listRemove,
          [.key("flags"), .element(ListElement(position: [0x40], dot: Dot(replica: other, sequence: 9)))]),
        Operation(.remove, [.key("owner"), .key("phone")]),
      ]),
    DocumentWrite(collection: "Vessel", id: .string("V-8"), kind: .delete, generation: 2, operations: []),
  ]

  private static let payload = Example(name: "payload", encoded: PayloadEncoder.encode(writes, dot: dot)) { bytes in
    try PayloadDecoder.decodeWrites(bytes, dot: dot) == writes
  }

  /// An ETag shows half of it.
  private static let stateHash: Example = {
    let hash = Digest.of(DomainTag.etag.bytes + state.encoded, sha256).bytes
    return Example(name: "document-state-hash", encoded: hash) { Array($0) == hash }
  }()

  private static let state: Example = {
    let stamp = HybridTimestamp(milliseconds: 1_700_000_000_000, counter: 1)
    let groups = [
      OperationGroup(dot: dot, timestamp: stamp, generation: 1, operations: writes[0].operations),
      OperationGroup(
        dot: Dot(replica: other, sequence: 9), timestamp: stamp, generation: 1,
        operations: [Operation(.set, [.key("notes")], value: .string("calm sea"))]),
    ]
    return Example(
      name: "document-state", encoded: DocumentStateCodec.encode(generation: 1, groups: groups)
    ) { bytes in
      let decoded = try DocumentStateCodec.decode(bytes)
      return decoded.generation == 1 && decoded.groups == groups
    }
  }()
}
