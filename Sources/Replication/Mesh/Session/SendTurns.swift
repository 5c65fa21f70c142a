/// Which partition of a session sends next. One at a time says a portion, and the next one only when that is handed over and
/// there is room: what has come up meanwhile need not stand behind much.
///
/// Runs go before payloads: between two pieces each partition that has waited for its runs to be read has its turn.
struct SendTurns: Sendable {
  enum Turn: Equatable {
    /// What the peer lacks of it is to be read of the log.
    case read(PartitionID)
    /// The next piece of its payload that is under way.
    case piece(PartitionID)
  }

  /// Payloads that are under way at once on a session: each is held in memory with what was read behind it.
  static let payloadLimit = 2

  private var reads = Line()
  private var payloads: [PartitionID] = []
  /// Partitions with a payload that has to wait for one of those under way.
  private var crowded = Line()
  /// Reads that go before the next piece; nil: all that wait by then.
  private var readsBeforePiece: Int? = 0
  private(set) var isUnderWay = false
  /// Whose turn was last.
  private var current: PartitionID?

  var isEmpty: Bool { reads.isEmpty && payloads.isEmpty && crowded.isEmpty }
  var takesPayload: Bool { payloads.count < SendTurns.payloadLimit }

  /// Of these somebody has said nothing yet, or not all that he said is handed over.
  func contains(where isMeant: (PartitionID) -> Bool) -> Bool {
    reads.contains(where: isMeant) || payloads.contains(where: isMeant) || isUnderWay && current.map(isMeant) ?? false
  }

  mutating func putRead(_ partition: PartitionID) { reads.put(partition) }
  mutating func putCrowded(_ partition: PartitionID) { crowded.put(partition) }
  mutating func putPayload(_ partition: PartitionID) {
    if !payloads.contains(partition) { payloads.append(partition) }
  }

  /// A payload is through: who waited for that is read again.
  mutating func endPayload() { crowded.take().map { reads.put($0) } }

  /// - Parameter rank: where there is an order, the least goes first.
  mutating func take(inOrder isOrdered: Bool = false, _ rank: (PartitionID) -> Int = { _ in 0 }) -> Turn? {
    guard !isUnderWay else { return nil }
    // Who took the place of a payload that is through may have needed none after all.
    if reads.isEmpty, takesPayload { endPayload() }
    let before = readsBeforePiece ?? reads.count
    let read = isOrdered ? reads.first(by: rank) : reads.first
    let payload = isOrdered ? payloads.min { rank($0) < rank($1) } : payloads.first
    guard let payload, isPieceNext(payload, before: read, isReadsTurn: before > 0, rank) else {
      readsBeforePiece = max(0, before - 1)
      current = read.map { reads.take($0) }
      return current.map { .read($0) }
    }
    payloads.removeAll { $0 == payload }
    readsBeforePiece = nil
    current = payload
    return .piece(payload)
  }

  private func isPieceNext(
    _ payload: PartitionID, before read: Line.Place?, isReadsTurn: Bool, _ rank: (PartitionID) -> Int
  ) -> Bool {
    guard let read else { return true }
    let (one, other) = (rank(payload), rank(reads[read]))
    return one == other ? !isReadsTurn : one < other
  }

  mutating func begin() { isUnderWay = true }
  mutating func end() { isUnderWay = false }
}

/// First in, first out; nobody twice.
private struct Line: Sendable {
  struct Place { fileprivate let index: Int }

  private var partitions: [PartitionID] = []
  private var members: Set<PartitionID> = []
  /// Those before this one are taken.
  private var head = 0

  var isEmpty: Bool { members.isEmpty }
  var count: Int { members.count }
  subscript(place: Place) -> PartitionID { partitions[place.index] }

  func contains(where isMeant: (PartitionID) -> Bool) -> Bool { members.contains(where: isMeant) }

  var first: Place? { isEmpty ? nil : Place(index: head) }

  func first(by rank: (PartitionID) -> Int) -> Place? {
    (head..<partitions.count).min { rank(partitions[$0]) < rank(partitions[$1]) }.map(Place.init)
  }

  mutating func put(_ partition: PartitionID) {
    if members.insert(partition).inserted { partitions.append(partition) }
  }

  mutating func take() -> PartitionID? { first.map { take($0) } }

  mutating func take(_ place: Place) -> PartitionID {
    let partition = partitions[place.index]
    members.remove(partition)
    guard place.index == head else {
      partitions.remove(at: place.index)
      return partition
    }
    head += 1
    // Moving the rest down only when half is taken keeps the cost of each constant.
    if head * 2 >= partitions.count {
      partitions.removeFirst(head)
      head = 0
    }
    return partition
  }
}
