import Identity
import Replication
import Wire

/// The state digest of a partition (`Docs/PROTOCOL.md`, "State digest"): a sum modulo 2²⁵⁶ of one hash for each living
/// document, so that it does not depend on the order in which documents are met.
struct StateSum: Sendable {
  /// Most significant first.
  private var words: [UInt64] = [0, 0, 0, 0]

  mutating func add(_ term: Digest) {
    let (first, second, third, fourth) = term.words
    var carry: UInt64 = 0
    for (index, word) in [first, second, third, fourth].enumerated().reversed() {
      let (sum, overflow) = words[index].addingReportingOverflow(word)
      let (total, again) = sum.addingReportingOverflow(carry)
      (words[index], carry) = (total, overflow || again ? 1 : 0)
    }
  }

  mutating func add(_ other: StateSum) {
    add(Digest(words: (other.words[0], other.words[1], other.words[2], other.words[3])))
  }

  /// 64 hex digits.
  var text: String { Hex.encode(Digest(words: (words[0], words[1], words[2], words[3])).bytes) }

  /// SHA-256 over the canonical CBOR of `[partition, collection, id, body]`.
  static func term(_ partition: PartitionName, _ collection: Text, id: Value, _ body: ValueMap) -> Digest {
    var writer = CBORWriter(reserving: 512)
    writer.arrayHeader(4)
    writer.text(partition.text)
    writer.text(collection)
    writer.value(id)
    writer.value(.map(body))
    return SHA256.hash(writer.bytes)
  }

  /// The same of what a document has in its conflict inbox: `[partition, collection, id, [item…]]`.
  static func term(_ partition: PartitionName, _ collection: Text, id: Value, inbox: [Conflict]) -> Digest {
    var writer = CBORWriter(reserving: 512)
    writer.arrayHeader(4)
    writer.text(partition.text)
    writer.text(collection)
    writer.value(id)
    writer.arrayHeader(inbox.count)
    for conflict in inbox { writer.conflict(conflict) }
    return SHA256.hash(writer.bytes)
  }
}

extension CBORWriter {
  /// `[generation, kind, [segment…], value or null, replica, sequence]`
  fileprivate mutating func conflict(_ conflict: Conflict) {
    arrayHeader(6)
    unsigned(conflict.generation)
    text(Text("\(conflict.kind)"))
    arrayHeader(conflict.path.count)
    for segment in conflict.path { self.segment(segment) }
    value(conflict.value ?? .null)
    replica(conflict.dot.replica)
    unsigned(conflict.dot.sequence)
  }

  private mutating func segment(_ segment: PathSegment) {
    switch segment {
    case .key(let key): text(key)
    case .element(let element):
      arrayHeader(2)
      unsigned(0)
      byteString(element.key)
    case .member(let canonical):
      arrayHeader(2)
      unsigned(1)
      byteString(canonical)
    }
  }
}
