import Testing

@testable import Replication
@testable import Simulation

// The naive rules' words for what the shipped code and the vectors say.

extension ObservedRun {
  init(_ run: RunSummary, content: Bool, _ contents: [Digest: WrittenContent] = [:]) {
    let changes = run.hashes.indices.map { index in
      let facts = run.facts.isEmpty ? ChangeFacts() : run.facts[index]
      let content = contents[run.hashes[index]]
      return ObservedChange(
        hash: run.hashes[index], timestamp: content?.timestamp.rawValue ?? 0, isKnown: facts.recognition == .known,
        own: facts.ownDocument.map { ObservedChange.OwnWrites(user: $0.user, otherFields: $0.otherFields) },
        origin: facts.origin, writes: content?.writes ?? [])
    }
    self.init(
      replica: run.replica, first: run.first, hashBefore: run.hashBefore,
      context: NaivePosition.entries(of: run.context), changes: changes, hasContent: content)
  }
}

/// What one change of a random history writes.
struct WrittenContent {
  let dot: Dot
  let timestamp: HybridTimestamp
  let context: VersionVector
  let writes: [DocumentWrite]
}

extension NaiveChange {
  init(_ change: ReferenceChange) {
    self.init(
      dot: change.dot, timestamp: change.context.timestamp.rawValue,
      context: NaivePosition.entries(of: change.context.context), writes: change.writes)
  }
}

extension NaiveRights {
  init(named statements: some Sequence<Statement>, limit: Int = AdmittedStatements.limit) {
    self.init(root: Named.root, statements: statements, limit: limit, certificate: Named.certificate)
  }
}

extension NaiveConflict {
  init(_ conflict: Conflict) {
    self.init(
      generation: conflict.generation, path: conflict.path, kind: "\(conflict.kind)", value: conflict.value,
      dot: conflict.dot, timestamp: conflict.timestamp.rawValue)
  }
}

extension NaiveDocument {
  /// What the naive rules show differently from the shipped code's states; nil: nothing.
  static func difference(_ documents: [NaiveDocument], _ states: [DocumentKey: DocumentState]) -> String? {
    guard documents.count == states.count else { return "\(documents.count) documents against \(states.count)" }
    for document in documents {
      let collection = Text(String(decoding: document.key.collection, as: UTF8.self))
      guard let state = states[DocumentKey(collection: collection, id: document.key.id)] else {
        return "no document \(document.key)"
      }
      if document.generation != state.generation { return "generation \(document.generation), \(state.generation)" }
      if !document.shows(state.shown()) { return "shown \(document.body as Any), \(state.shown() as Any)" }
      let inbox = state.inbox().map { NaiveConflict($0) }
      if document.inbox != inbox { return "inbox \(document.inbox), \(inbox)" }
    }
    return nil
  }
}

extension NaiveAcceptance {
  /// What the naive rules judge differently from the shipped log; nil: nothing.
  func difference(_ log: PartitionLog, effective others: Set<Digest>) -> String? {
    let vectors = [("received", received, log.received), ("accepted", accepted, log.accepted)]
    for (name, naive, shipped) in vectors + [("clipped", clipped, log.clipped)] {
      // At zero there is nothing to name.
      let entries = NaivePosition.entries(of: shipped).filter { $0.value.sequence > 0 }
      if naive != entries { return "\(name) \(naive), \(entries)" }
    }
    if forkPoints != log.forkPoints { return "forks \(forkPoints), \(log.forkPoints)" }
    let shipped = log.held.map { "\($0.dot) \($0.hash) \($0.reason.rawValue)" }
    let naive = held.map { "\($0.dot) \($0.hash) \($0.reason.rawValue)" }
    if naive != shipped { return "held \(naive), \(shipped)" }
    let counting = Set(effective.map(\.hash))
    return counting == others ? nil : "effective \(counting), \(others)"
  }
}
