import Identity
import LocalAPI
import Replication
import Wire

/// Ids for records that have none: made of place and content, and of how many equal records came before, so that an import that is
/// run again stores nothing twice.
struct RecordIDs {
  /// Contents that share a counter move each other's numbers, in each run alike.
  private static let counters = 1 << 20
  private var counts: [UInt32] = []
  private static let domain = Array("seamesh import".utf8)

  /// The record with an id of its own as its first member; nil where it has one, or does not read, of which the node says why.
  mutating func withID(
    _ record: JSONRecordReader.Record, in partition: String, _ collection: String
  ) -> [UInt8]? {
    guard !RecordIDs.beginsWithID(record.bytes),
      let body = try? record.value(limits: ExtendedJSON.Limits(byteCount: ServerLimit.documentBodyBytes)),
      body["_id"] == nil
    else { return nil }
    let id = id(of: body, in: partition, collection)
    var member: [UInt8] = Array("{\"_id\":".utf8)
    ExtendedJSON.write(.objectID(id), into: &member)
    if body.count > 0 { member.append(UInt8(ascii: ",")) }
    return member + record.bytes.drop { $0 != UInt8(ascii: "{") }.dropFirst()
  }

  private mutating func id(of body: ValueMap, in partition: String, _ collection: String) -> ObjectID {
    let parts = [
      RecordIDs.domain, Array(partition.utf8), Array(collection.utf8), Value.map(body).canonicalBytes,
    ]
    let content = parts.flatMap { SHA256.hash($0).bytes }
    let ordinal = nextOrdinal(SHA256.hash(content).words.0)
    var bytes = content
    appendBigEndian(UInt64(ordinal), to: &bytes)
    let words = SHA256.hash(bytes).words
    return ObjectID(high: words.0, low: UInt32(truncatingIfNeeded: words.1 >> 32))
  }

  private mutating func nextOrdinal(_ content: UInt64) -> UInt32 {
    if counts.isEmpty { counts = Array(repeating: 0, count: RecordIDs.counters) }
    let place = Int(content % UInt64(RecordIDs.counters))
    defer { counts[place] &+= 1 }
    return counts[place]
  }

  /// Looks at the first key alone: reading every document twice would cost an import much of its speed.
  private static func beginsWithID(_ bytes: [UInt8]) -> Bool {
    bytes.drop { $0 != UInt8(ascii: "\"") }.dropFirst().starts(with: "_id\"".utf8)
  }
}
