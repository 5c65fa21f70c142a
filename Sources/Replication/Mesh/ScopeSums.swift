/// The sums of one session's common scope: for each bucket, of the terms of its partitions modulo 2^64. A change of one
/// partition costs two small hashes; a comparison where nothing changed costs none.
struct ScopeSums: Sendable {
  private(set) var buckets: [UInt64]
  /// Changed since, with the digest that the sums have; nil where they have none.
  private var stale: [PartitionID: Digest?] = [:]

  init() { buckets = [UInt64](repeating: 0, count: Summary.bucketCount) }

  var total: UInt64 { buckets.reduce(0, &+) }

  mutating func add(_ id: PartitionID, _ term: UInt64) { buckets[Summary.bucket(of: id)] &+= term }

  mutating func moved(_ changes: [PartitionID: Digest?]) {
    stale.merge(changes) { earlier, _ in earlier }
  }

  /// `term`: of a partition under a digest, zero outside of the scope.
  mutating func settle(_ digests: [PartitionID: Digest], _ term: (PartitionID, Digest) -> UInt64) {
    for (id, before) in stale where before != digests[id] {
      let bucket = Summary.bucket(of: id)
      if let before { buckets[bucket] &-= term(id, before) }
      if let now = digests[id] { buckets[bucket] &+= term(id, now) }
    }
    stale = [:]
  }
}
