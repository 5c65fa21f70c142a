import Replication

/// One change with all it writes, as the reference store takes it.
struct ReferenceChange: Hashable, Sendable {
  let context: WriteContext
  let writes: [DocumentWrite]
  init(_ context: WriteContext, writes: [DocumentWrite]) { (self.context, self.writes) = (context, writes) }
  var dot: Dot { context.dot }
}

/// The merge of one partition in memory (M12): what a node's documents must be, given what it has accepted.
///
/// Kept as simple as the rules allow, without disk, limits or rights, so that a node can be checked against it.
struct ReferenceStore: Sendable {
  /// In the order of arrival.
  private(set) var log: [ReferenceChange] = []
  private(set) var accepted: [ReplicaID: UInt64] = [:]
  private(set) var documents: [DocumentKey: DocumentState] = [:]
  /// The join of the contexts of all accepted changes: what others have moved past.
  private var passed = VersionVector()
  private var kin = KinTable()
  /// Writes that were issued again (M17): the original first, then its re-issues as they take effect.
  var groups: [[Dot]]

  init(groups: [[Dot]] = []) { self.groups = groups }

  /// Takes the next change of a chain; one that is accepted already changes nothing.
  mutating func accept(_ change: ReferenceChange) {
    let (replica, sequence) = (change.dot.replica, change.dot.sequence)
    let last = accepted[replica, default: 0]
    guard sequence > last else { return }
    precondition(sequence == last + 1, "change \(sequence) of a chain accepted up to \(last)")
    let isOvertaken = passed.covers(change.dot)
    log.append(change)
    accepted[replica] = sequence
    passed.join(change.context.context)
    if isOvertaken || groups.contains(where: { $0.contains(change.dot) }) { return rebuild(change.keys) }
    for write in change.writes {
      documents[DocumentKey(write), default: DocumentState()].apply(AcceptedWrite(change.context.under(kin), write))
    }
  }

  /// Lets the accepted prefix of a chain fall to `sequence`.
  mutating func cut(_ replica: ReplicaID, to sequence: UInt64) {
    let gone = log.filter { $0.dot.replica == replica && $0.dot.sequence > sequence }
    log.removeAll { $0.dot.replica == replica && $0.dot.sequence > sequence }
    accepted[replica] = min(sequence, accepted[replica, default: 0])
    passed = log.reduce(into: VersionVector()) { $0.join($1.context.context) }
    rebuild(gone.reduce(into: []) { $0.formUnion($1.keys) })
  }

  private mutating func rebuild(_ keys: Set<DocumentKey>) {
    kin = KinTable(groups, accepted: log.map(\.dot))
    let merged = ReferenceStore.merged(log, groups)
    for key in keys { documents[key] = merged[key] }
  }

  /// The documents of a set of changes, in any order.
  static func merged(
    _ changes: some Sequence<ReferenceChange>, _ groups: [[Dot]] = []
  ) -> [DocumentKey: DocumentState] {
    let kin = KinTable(groups, accepted: changes.map(\.dot))
    var writes: [DocumentKey: [AcceptedWrite]] = [:]
    for change in changes where kin[change.dot]?.effective ?? change.dot == change.dot {
      for write in change.writes {
        writes[DocumentKey(write), default: []].append(AcceptedWrite(change.context.under(kin), write))
      }
    }
    return writes.mapValues { DocumentState.merged(of: $0) }
  }
}

extension ReferenceChange {
  fileprivate var keys: Set<DocumentKey> { Set(writes.map { DocumentKey($0) }) }
}

extension DocumentKey {
  init(_ write: DocumentWrite) { self.init(collection: write.collection, id: write.id) }
}

extension KinTable {
  /// Of each group the original, accepted or not, and the re-issues that are accepted (M17).
  init(_ groups: [[Dot]], accepted: [Dot]) {
    let accepted = Set(accepted)
    self.init(
      groups.map { group in
        let reissues = group.dropFirst().filter(accepted.contains)
        let isAccepted = accepted.contains(group[0])
        return Kin(
          original: group[0], reissues: reissues, effective: isAccepted ? group[0] : reissues.first ?? group[0])
      })
  }
}

extension WriteContext {
  func under(_ kin: KinTable) -> WriteContext {
    WriteContext(dot: dot, timestamp: timestamp, context: context, sight: Sight(kin: kin))
  }
}
