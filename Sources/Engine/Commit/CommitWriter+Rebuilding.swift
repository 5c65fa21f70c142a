import Replication
import Wire

// Acceptance moved other than by plain delivery: the documents concerned are computed anew from the log. A document stands
// on every change of its partition that counts, so one run that does not read keeps all of them from being made anew.
// Showing them as they were would be wrong: they are set aside, in the same transaction, until the run has come anew.
extension CommitWriter {
  mutating func rebuild(_ moved: [PartitionID: [LogChange]]) throws {
    for partition in moved.keys.sorted() {
      guard let known = state.mesh.ledger.partitions[partition], let changes = moved[partition] else { continue }
      try transaction.addPartition(partition, known.name)
      let reissues = known.log.knownReissues.sorted { $0.dot < $1.dot }
      for reissue in reissues { try transaction.add(reissue, in: partition) }
      if !known.log.forkPoints.isEmpty { noteFork() }
      let rebuild = DocumentRebuild(reader: RunReader(state.identity), partition: known)
      let (touched, unread) = try rebuild.touched(by: changes, transaction)
      // What those runs write is known when they have come anew.
      if !unread.isEmpty { try oweDocuments() }
      for failure in unread { note(failure, in: partition) }
      try build(touched, by: rebuild)
      try learnContexts(by: rebuild)
      try setMarks(of: Set(changes.flatMap { $0.acceptance.map(\.replica) }), in: partition)
    }
  }

  /// Without them less is known of what nobody has seen, and they are read with the next rebuild.
  private func learnContexts(by rebuild: DocumentRebuild) throws {
    guard !rebuild.partition.log.knowsContexts else { return }
    do {
      state.mesh.ledger.noteContexts(try rebuild.contexts(transaction), in: rebuild.partition.id)
    } catch let failure as any StoreFailure where failure.isOfOneRow {
      note(failure, in: rebuild.partition.id)
    }
  }

  private mutating func build(_ keys: Set<DocumentKey>, by rebuild: DocumentRebuild) throws {
    var walks = CommitWriter.walkLimit
    try build(keys.sorted()[...], by: rebuild, &walks)
  }

  private mutating func build(
    _ keys: ArraySlice<DocumentKey>, by rebuild: DocumentRebuild, _ walks: inout Int
  ) throws {
    do {
      let built = try rebuild.run(on: Set(keys), transaction)
      done.documents.append(built)
      for key in keys { state.quarantine.release(key, in: rebuild.partition.id) }
    } catch let failure as any StoreFailure where failure.isOfOneRow {
      note(failure, in: rebuild.partition.id)
      walks -= 2
      // A run stands in the way of all of them; something else, as the payload of one change, only of some.
      guard failure.runAtFault == nil || failure.isOfPayload, keys.count > 1, walks >= 0 else {
        for key in keys { state.quarantine.put(key, in: rebuild.partition.id, "\(failure)", state.clock.now) }
        return try setAside(Array(keys), in: rebuild.partition.id)
      }
      let middle = keys.startIndex + keys.count / 2
      try build(keys[..<middle], by: rebuild, &walks)
      try build(keys[middle...], by: rebuild, &walks)
    }
  }

  /// Walks through a partition's log in search of the documents that can be built, in one transaction.
  static let walkLimit = 32

  func note(_ failure: any StoreFailure, in partition: PartitionID) {
    if let run = failure.runAtFault { state.damagedRuns.note(run, in: partition) }
  }

  /// Each gets a row that does not read, so that it is refused, and made anew as any other such row is, also after a restart.
  mutating func setAside(_ keys: [DocumentKey], in partition: PartitionID) throws {
    guard !keys.isEmpty else { return }
    try oweDocuments()
    for key in keys where try transaction.setAside(key, in: partition) { done.setAsideCount += 1 }
  }

  /// What is stored was not judged with all that this build understands: an opening is told so, and looks for what is owed.
  mutating func oweDocuments() throws {
    guard !state.owesDocuments, !done.owesDocuments else { return }
    try transaction.setUnderstanding(KnownFormats.owing)
    done.owesDocuments = true
  }
}

extension LogTransaction {
  /// Answers whether it was not set aside before.
  @discardableResult
  func setAside(_ key: DocumentKey, in partition: PartitionID) throws -> Bool {
    let old = try document(key, in: partition)
    guard old.map({ DocumentStateCodec.isSetAside($0.state) }) != true else { return false }
    // Whoever replaces or deletes it meanwhile has to come above the life that is here.
    let generation = old.flatMap { DocumentStateCodec.generation(of: $0.state[...]) }
    // Alive, so that whoever lists documents meets it.
    let aside = LogDocument(isAlive: true, state: DocumentStateCodec.encodeSetAside(generation: generation))
    try store(aside, over: old, as: key, in: partition)
    return true
  }
}

extension KnownFormats {
  /// Stands in the store in place of ``understanding`` while documents are to be made anew that the log cannot give.
  static let owing: [UInt8] = []
}
