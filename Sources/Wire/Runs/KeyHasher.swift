import Replication

/// Key hashes of one partition's documents, as ``DocumentKey/hash(in:_:)`` gives them, straight from payload bytes.
struct KeyHasher {
  /// Tag and partition stay; what follows is written anew for each key.
  private var input: [UInt8]
  private let prefixCount: Int

  init(partition: PartitionID) {
    input = DomainTag.key.bytes
    input.reserveCapacity(512)
    partition.digest.append(to: &input)
    prefixCount = input.count
  }

  mutating func hashes(
    of documents: [DocumentWriteView], in buffer: ArraySlice<UInt8>, _ hash: HashFunction
  ) throws(PayloadError) -> [KeyHash] {
    var hashes: [KeyHash] = []
    hashes.reserveCapacity(documents.count)
    for document in documents {
      input.removeLast(input.count - prefixCount)
      input.append(UInt8(truncatingIfNeeded: document.collection.count >> 8))
      input.append(UInt8(truncatingIfNeeded: document.collection.count))
      input.append(contentsOf: buffer[document.collection])
      try document.appendCanonicalID(in: buffer, to: &input)
      let digest = input.withUnsafeBytes(hash)
      hashes.append(KeyHash(high: digest.words.0, low: digest.words.1))
    }
    return hashes
  }
}
