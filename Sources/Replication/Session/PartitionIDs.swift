/// A set of partitions in ascending order: a peer may name a hundred thousand, of which a hash table would take two or three
/// times their bytes.
package struct PartitionIDs: Sendable, Equatable, Sequence, ExpressibleByArrayLiteral {
  private var ascending: [PartitionID]

  package init(_ ids: some Sequence<PartitionID>) {
    ascending = Array(ids)
    // They come in order from a peer, and from nobody else more than a few.
    if zip(ascending, ascending.dropFirst()).allSatisfy({ $0 < $1 }) { return }
    ascending.sort()
    var kept = 0
    for id in ascending where kept == 0 || ascending[kept - 1] != id {
      ascending[kept] = id
      kept += 1
    }
    ascending.removeLast(ascending.count - kept)
  }

  package init(arrayLiteral elements: PartitionID...) { self.init(elements) }

  package func makeIterator() -> IndexingIterator<[PartitionID]> { ascending.makeIterator() }

  package var isEmpty: Bool { ascending.isEmpty }
  package var count: Int { ascending.count }

  /// The place of an id, or where it would be.
  private func place(of id: PartitionID) -> Int {
    var (low, high) = (0, ascending.count)
    while low < high {
      let middle = (low + high) / 2
      if ascending[middle] < id { low = middle + 1 } else { high = middle }
    }
    return low
  }

  package func contains(_ id: PartitionID) -> Bool {
    let place = place(of: id)
    return place < ascending.count && ascending[place] == id
  }

  mutating func insert(_ id: PartitionID) {
    let place = place(of: id)
    if place == ascending.count || ascending[place] != id { ascending.insert(id, at: place) }
  }

  func union(_ others: PartitionIDs) -> PartitionIDs {
    isEmpty ? others : others.isEmpty ? self : PartitionIDs(ascending + others.ascending)
  }

  func subtracting(_ others: PartitionIDs) -> PartitionIDs {
    others.isEmpty ? self : PartitionIDs(ascending.filter { !others.contains($0) })
  }
}
