/// All partitions of a mesh. Notes each that may have changed, so that summaries cost what changed and not what is here.
package struct PartitionTable: Sendable {
  private var states = InPlaceTable<PartitionID, PartitionState>()
  private var buckets = [Set<PartitionID>](repeating: [], count: Summary.bucketCount)
  /// Changed, or not, since the digests were made.
  private var touched: Set<PartitionID> = []
  /// Rooms of which statements are held, though perhaps nothing of their content.
  private var rooms: [PartitionID: Room] = [:]
  /// Of partitions of which something is announced, and of rooms of which statements are held.
  private(set) var digests: [PartitionID: Digest] = [:]

  /// A room as its statements make it.
  package struct Room: Sendable, Equatable {
    let name: PartitionName
    /// Digest of the statements held of it.
    let statements: Digest

    package init(name: PartitionName, statements: Digest) { (self.name, self.statements) = (name, statements) }

    /// `content`: digest of the partition without them; nil where nothing of it is held.
    package func digest(beside content: Digest?, _ hash: HashFunction) -> Digest {
      Digest.of(DomainTag.room.bytes + (content ?? .zero).bytes + statements.bytes, hash)
    }
  }

  package init() {}

  /// Changed in place: a copy would copy the log.
  package subscript(id: PartitionID) -> PartitionState? {
    _read { yield states[id] }
    _modify {
      touched.insert(id)
      defer { place(id) }
      yield &states[id]
    }
  }

  package func holds(_ id: PartitionID) -> Bool { states.holds(id) }

  package func look<Answer>(at id: PartitionID, _ body: (PartitionState) -> Answer) -> Answer? {
    states.look(at: id, body)
  }

  func isForked(_ replica: ReplicaID, in id: PartitionID) -> Bool {
    look(at: id) { $0.log.forkPoints[replica] != nil } ?? false
  }

  /// These runs were taken. Where that changes nothing beside the log, nothing is noted.
  mutating func noteKept(_ runs: [DeliveredRun], in id: PartitionID) {
    guard look(at: id, { $0.hasBegun && $0.waiting.ahead.isEmpty }) == false else { return }
    self[id]?.noteKept(runs)
  }

  private mutating func place(_ id: PartitionID) {
    if !states.holds(id), rooms[id] == nil {
      buckets[Summary.bucket(of: id)].remove(id)
    } else {
      buckets[Summary.bucket(of: id)].insert(id)
    }
  }

  /// All that is known of it is on the disk now. Answers what was committed before.
  mutating func noteCommitted(_ id: PartitionID) -> VersionVector? {
    let before = states[id]?.committed
    states[id]?.noteCommitted()
    return before
  }

  /// Those that are untouched by new statements are judged under them from now on, and nothing else of them changes. Answers
  /// the others.
  mutating func takeOver(_ authority: Authority, where isUntouched: (PartitionState) -> Bool) -> [PartitionID] {
    states.keys.filter { id in
      guard states[id].map(isUntouched) == true else { return true }
      states[id]?.log.takeOver(authority)
      return false
    }
  }

  package var count: Int { states.count }
  package var isEmpty: Bool { states.isEmpty }
  package var keys: [PartitionID] { states.keys }
  package var values: some Collection<PartitionState> { states.values }

  package func mapValues<Value>(_ transform: (PartitionState) -> Value) -> [PartitionID: Value] {
    Dictionary(uniqueKeysWithValues: states.map { ($0.key, transform($0.value)) })
  }

  // MARK: Rooms

  /// The room's statements have changed; nil where none is held.
  mutating func set(_ room: Room?, for id: PartitionID) {
    guard rooms[id] != room else { return }
    rooms[id] = room
    touched.insert(id)
    place(id)
  }

  func holdsStatements(of id: PartitionID) -> Bool { rooms[id] != nil }

  /// Of a partition that is here, or a room of which statements are.
  func name(of id: PartitionID) -> PartitionName? { states[id]?.name ?? rooms[id]?.name }

  /// Partitions that are here, and rooms of which statements are.
  func all(where isMeant: (PartitionID, PartitionName) -> Bool) -> Set<PartitionID> {
    Set(states.values.filter { isMeant($0.id, $0.name) }.map(\.id))
      .union(rooms.filter { isMeant($0.key, $0.value.name) }.map(\.key))
  }

  // MARK: Digests

  /// Ascending; rooms of which only statements are held among them.
  func ids(in bucket: Int) -> [PartitionID] { buckets[bucket].sorted() }

  /// Brings the digests up to date. Answers whose digest moved, with the one before.
  mutating func settleDigests(_ hash: HashFunction) -> [PartitionID: Digest?] {
    var moved: [PartitionID: Digest?] = [:]
    for id in touched {
      let (before, now) = (digests[id], digest(of: id, hash))
      guard before != now else { continue }
      digests[id] = now
      moved[id] = .some(before)
    }
    touched = []
    return moved
  }

  private mutating func digest(of id: PartitionID, _ hash: HashFunction) -> Digest? {
    let content = states[id]?.log.summaryDigest(hash)
    return rooms[id]?.digest(beside: content, hash) ?? content
  }
}

extension PartitionTable: Sequence {
  package func makeIterator() -> some IteratorProtocol<(key: PartitionID, value: PartitionState)> {
    states.makeIterator()
  }
}
