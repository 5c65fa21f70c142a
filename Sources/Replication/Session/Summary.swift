/// One step of a comparison: do two nodes hold the same of their common scope, and where not? Each step is cheap where
/// little differs. `Docs/PROTOCOL.md`, "Summary", has the bytes.
package struct Summary: Sendable, Equatable {
  /// The asker's number of the comparison; every answer repeats it.
  package let number: UInt64
  package let step: Step

  package init(_ number: UInt64, _ step: Step) { (self.number, self.step) = (number, step) }

  package enum Step: Sendable, Equatable {
    /// Of the asker: the sum of all terms of the scope.
    case digest(UInt64)
    /// Of who was asked: the same here.
    case equal
    /// Of who was asked: the sums of the terms by bucket, exactly ``Summary/bucketCount``.
    case buckets([UInt64])
    /// Of the asker: which buckets are equal, and what is in those that are not, as far as a message holds it.
    case partitions(equal: UInt64, [BucketListing])
    /// Of who was asked: which of the partitions listed are not here, or not the same. The vectors of those that are here
    /// follow.
    case differing([UInt64])
  }

  package static let bucketCount = 64
  /// Partitions that one message lists.
  package static let listedLimit = 131_072

  package static func bucket(of id: PartitionID) -> Int { Int(id.digest.words.0 >> 58) }
  /// What stands for a partition in a listing. Two that share it are told apart by their terms.
  package static func prefix(of id: PartitionID) -> UInt64 { id.digest.words.0 }

  /// What a partition adds to the sum of its bucket. Keyed by the connection, so that nobody but its two ends can look for
  /// states whose terms add up alike; and those two could lie to one another anyhow.
  package static func term(of id: PartitionID, _ digest: Digest, exporter: Digest, _ hash: HashFunction) -> UInt64 {
    var input: [UInt8] = []
    input.reserveCapacity(DomainTag.byteCount + 3 * Digest.byteCount)
    DomainTag.summary.append(to: &input)
    exporter.append(to: &input)
    id.digest.append(to: &input)
    digest.append(to: &input)
    return Digest.of(input, hash).words.0
  }
}

/// All that the asker holds of one bucket.
package struct BucketListing: Sendable, Equatable {
  package struct Entry: Hashable, Sendable {
    package let prefix: UInt64
    package let term: UInt64
    package init(prefix: UInt64, term: UInt64) { (self.prefix, self.term) = (prefix, term) }
  }

  package let bucket: Int
  /// Ascending by prefix.
  package let entries: [Entry]

  package init(bucket: Int, entries: [Entry]) { (self.bucket, self.entries) = (bucket, entries) }
}
