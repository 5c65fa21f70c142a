/// All partitions of a mesh. Notes each that may have changed, so that summaries cost what changed and not what is here.
package struct PartitionTable: Sendable {
  private var states: [PartitionID: PartitionState] = [:]
  private var buckets = [Set<PartitionID>](repeating: [], count: Summary.bucketCount)
  /// Changed, or not, since the digests were made.
  private var touched: Set<PartitionID> = []
  /// Of partitions of which something is announced.
  private(set) var digests: [PartitionID: Digest] = [:]

  package init() {}

  /// Changed in place: a copy would copy the log.
  package subscript(id: PartitionID) -> PartitionState? {
    get { states[id] }
    _modify {
      touched.insert(id)
      defer { place(id) }
      yield &states[id]
    }
  }

  private mutating func place(_ id: PartitionID) {
    if states.index(forKey: id) == nil {
      buckets[Summary.bucket(of: id)].remove(id)
    } else {
      buckets[Summary.bucket(of: id)].insert(id)
    }
  }

  package var count: Int { states.count }
  package var isEmpty: Bool { states.isEmpty }
  package var keys: some Collection<PartitionID> { states.keys }
  package var values: some Collection<PartitionState> { states.values }

  package func mapValues<Value>(_ transform: (PartitionState) -> Value) -> [PartitionID: Value] {
    states.mapValues(transform)
  }

  /// Ascending.
  func ids(in bucket: Int) -> [PartitionID] { buckets[bucket].sorted() }

  /// Brings the digests up to date. Answers whose digest moved, with the one before.
  mutating func settleDigests(_ hash: HashFunction) -> [PartitionID: Digest?] {
    var moved: [PartitionID: Digest?] = [:]
    for id in touched {
      let (before, now) = (digests[id], states[id]?.log.summaryDigest(hash))
      guard before != now else { continue }
      digests[id] = now
      moved[id] = .some(before)
    }
    touched = []
    return moved
  }
}

extension PartitionTable: Sequence {
  package func makeIterator() -> some IteratorProtocol<(key: PartitionID, value: PartitionState)> {
    states.makeIterator()
  }
}
