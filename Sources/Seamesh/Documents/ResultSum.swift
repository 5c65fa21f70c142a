import Identity
import Replication

/// Names a result by what stands in it: equal for equal results of one query, also after a restart. A sum, so that it
/// follows a result change by change; the order in which documents stand is the query's.
struct ResultSum: Equatable {
  private var (high, low): (UInt64, UInt64) = (0, 0)

  init() {}

  init(_ documents: some Sequence<StoredDocument>) {
    for document in documents { add(document) }
  }

  mutating func add(_ document: StoredDocument) {
    let term = ResultSum.term(document)
    (high, low) = (high &+ term.high, low &+ term.low)
  }

  mutating func remove(_ document: StoredDocument) {
    let term = ResultSum.term(document)
    (high, low) = (high &- term.high, low &- term.low)
  }

  /// Among the results of all queries. `query`: what tells this one from others.
  func cursor(query: [UInt8]) -> String {
    let bytes = [high, low].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    return Hex.encode(SHA256.hash(query + bytes).bytes.prefix(16))
  }

  private static func term(_ document: StoredDocument) -> (high: UInt64, low: UInt64) {
    let hash = SHA256.hash(document.id.canonicalBytes + Array(document.etag.utf8)).bytes
    func word(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    return (word(hash.prefix(8)), word(hash.dropFirst(8).prefix(8)))
  }
}

extension FindRequest {
  /// Equal for equal requests on one collection alone.
  func identity(_ partition: PartitionName, _ collection: Text) -> [UInt8] {
    let order = sort.map { Value.array([.string($0.path), .bool($0.ascending)]) }
    return Value.array([
      .string(partition.text), .string(collection), .map(filter), .array(order), .int(Int64(limit ?? -1)),
      .int(Int64(skip)), projection.map { .map($0) } ?? .null,
    ]).canonicalBytes
  }
}
