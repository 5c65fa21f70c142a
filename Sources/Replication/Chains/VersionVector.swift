/// How far a chain is known: the number of its last change and the first 16 bytes of the chain hash there.
package struct ChainPosition: Hashable, Sendable {
  package let sequence: UInt64
  package let tip: TipHash
  package init(sequence: UInt64, tip: TipHash) { (self.sequence, self.tip) = (sequence, tip) }
}

/// Highest change known per replica, for one partition. A missing entry is zero.
///
/// The order is partial, so this is not `Comparable`. Tip hashes ride along (design: equal numbers with different
/// histories must be seen at once); comparing looks at the numbers alone.
///
/// Entries lie side by side in replica byte order: two vectors are compared, joined or told apart in one pass over both,
/// and hashed as they lie. A partition may have a thousand replicas, and each run a context that names all of them.
package struct VersionVector: Hashable, Sendable {
  struct Entry: Hashable, Sendable {
    let replica: ReplicaID
    var position: ChainPosition
  }

  private(set) var ascending: [Entry]

  private init(ascending: [Entry]) { self.ascending = ascending }

  package init(_ entries: [ReplicaID: ChainPosition] = [:]) {
    ascending = entries.map { Entry(replica: $0.key, position: $0.value) }
    if ascending.count > 1 { ascending.sort { $0.replica < $1.replica } }
  }

  package init(_ entries: Entries) { ascending = entries.base }

  /// In whatever order; of two of one replica the first stands.
  package init(_ entries: some Collection<(replica: ReplicaID, position: ChainPosition)>) {
    self.init()
    ascending.reserveCapacity(entries.count)
    for (replica, position) in entries where self[replica] == nil { self[replica] = position }
  }

  mutating func reserveCapacity(_ count: Int) { ascending.reserveCapacity(count) }

  /// The place of a replica's entry, or where it would be.
  private func place(of replica: ReplicaID) -> (index: Int, isThere: Bool) {
    // Nearly all that is read from a disk or a peer comes in order.
    guard let last = ascending.last, replica <= last.replica else { return (ascending.count, false) }
    var (low, high) = (0, ascending.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if ascending[middle].replica < replica { low = middle + 1 } else { high = middle }
    }
    return (low, ascending[low].replica == replica)
  }

  package subscript(replica: ReplicaID) -> ChainPosition? {
    get {
      let place = place(of: replica)
      return place.isThere ? ascending[place.index].position : nil
    }
    set {
      let place = place(of: replica)
      switch (newValue, place.isThere) {
      case (let position?, true): ascending[place.index].position = position
      case (let position?, false): ascending.insert(Entry(replica: replica, position: position), at: place.index)
      case (nil, true): ascending.remove(at: place.index)
      case (nil, false): break
      }
    }
  }

  package var isEmpty: Bool { ascending.isEmpty }
  package var count: Int { ascending.count }

  /// Zero where nothing is known of a replica.
  package func sequence(of replica: ReplicaID) -> UInt64 { self[replica]?.sequence ?? 0 }

  package func covers(_ dot: Dot) -> Bool { dot.sequence <= sequence(of: dot.replica) }

  /// In replica byte order: the one order in which a vector is hashed, sent and shown.
  package var sorted: [(replica: ReplicaID, position: ChainPosition)] {
    ascending.map { ($0.replica, $0.position) }
  }

  // MARK: Two at once

  /// Entries that name more than another vector does, in replica byte order.
  package func exceeding(_ other: VersionVector) -> [(replica: ReplicaID, position: ChainPosition)] {
    var found: [(replica: ReplicaID, position: ChainPosition)] = []
    pair(other) { mine, theirs in
      if let mine, mine.position.sequence > theirs?.position.sequence ?? 0 {
        found.append((mine.replica, mine.position))
      }
    }
    return found
  }

  /// What leads from another vector to this one, in replica byte order: nil where an entry goes.
  package func differing(
    from base: VersionVector
  ) -> [(replica: ReplicaID, position: ChainPosition?)] {
    var found: [(replica: ReplicaID, position: ChainPosition?)] = []
    pair(base) { mine, before in
      guard let replica = (mine ?? before)?.replica, mine?.position != before?.position else { return }
      found.append((replica, mine?.position))
    }
    return found
  }

  /// The entry-wise maximum; at equal numbers the receiver's own tip stays.
  package mutating func join(_ other: VersionVector) {
    let more = other.exceeding(self)
    guard more.count > VersionVector.fewEntries else {
      for (replica, position) in more { self[replica] = position }
      return
    }
    var joined: [Entry] = []
    joined.reserveCapacity(count + more.count)
    pair(other) { mine, theirs in
      let isLess = mine?.position.sequence ?? 0 < theirs?.position.sequence ?? 0
      if let entry = isLess ? theirs : mine ?? theirs { joined.append(entry) }
    }
    ascending = joined
  }

  /// So many are put in one by one: each may move all that lie behind it.
  private static let fewEntries = 8

  /// Each replica of either, ascending.
  private func pair(_ other: VersionVector, _ body: (Entry?, Entry?) -> Void) {
    var (mine, theirs) = (0, 0)
    while mine < ascending.count || theirs < other.ascending.count {
      guard mine < ascending.count else {
        body(nil, other.ascending[theirs])
        theirs += 1
        continue
      }
      guard theirs < other.ascending.count, other.ascending[theirs].replica <= ascending[mine].replica else {
        body(ascending[mine], nil)
        mine += 1
        continue
      }
      let isShared = other.ascending[theirs].replica == ascending[mine].replica
      body(isShared ? ascending[mine] : nil, other.ascending[theirs])
      mine += isShared ? 1 : 0
      theirs += 1
    }
  }

  // MARK: Digests

  /// Digest over the sorted entries: `tag · (replica 16 · sequence 8 · tip 16)…`.
  package func digest(_ tag: DomainTag, _ hash: HashFunction) -> Digest { digest(behind: tag.bytes, hash) }

  /// Of a partition with digest `digest`, of which this is held above limits: `tag · digest 32 · (replica …)…`.
  package func digest(besideHeld digest: Digest, _ hash: HashFunction) -> Digest {
    self.digest(behind: DomainTag.above.bytes + digest.bytes, hash)
  }

  private func digest(behind beginning: [UInt8], _ hash: HashFunction) -> Digest {
    var words: [UInt64] = []
    words.reserveCapacity(ascending.count * 5)
    for entry in ascending {
      words.append(entry.replica.high.bigEndian)
      words.append(entry.replica.low.bigEndian)
      words.append(entry.position.sequence.bigEndian)
      words.append(entry.position.tip.high.bigEndian)
      words.append(entry.position.tip.low.bigEndian)
    }
    var input: [UInt8] = []
    input.reserveCapacity(beginning.count + words.count * 8)
    input += beginning
    words.withUnsafeBytes { input.append(contentsOf: $0) }
    return Digest.of(input, hash)
  }
}

// MARK: - Entries one by one

extension VersionVector {
  package var entries: Entries { Entries(base: ascending) }

  /// In replica byte order.
  package struct Entries: RandomAccessCollection, Hashable, Sendable {
    let base: [Entry]

    package var startIndex: Int { 0 }
    package var endIndex: Int { base.count }
    package subscript(index: Int) -> (key: ReplicaID, value: ChainPosition) {
      (base[index].replica, base[index].position)
    }

    package var keys: [ReplicaID] { base.map(\.replica) }
    package var values: [ChainPosition] { base.map(\.position) }

    package func mapValues<Value>(_ transform: (ChainPosition) throws -> Value) rethrows -> [ReplicaID: Value] {
      var mapped = [ReplicaID: Value](minimumCapacity: base.count)
      for entry in base { mapped[entry.replica] = try transform(entry.position) }
      return mapped
    }

    package func filter(
      _ isIncluded: ((key: ReplicaID, value: ChainPosition)) throws -> Bool
    ) rethrows -> Entries {
      Entries(base: try base.filter { try isIncluded(($0.replica, $0.position)) })
    }
  }
}
