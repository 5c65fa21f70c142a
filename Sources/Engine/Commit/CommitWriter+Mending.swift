import Replication

// A document is a function of the log: one whose row does not read is made anew from there.
extension CommitWriter {
  /// Makes those of the documents anew that do not read. Those that the log does not give, as it does not read either, stay
  /// as they are, in quarantine, and are the answer.
  @discardableResult
  mutating func mend(_ keys: Set<DocumentKey>, in id: PartitionID) throws -> Set<DocumentKey> {
    guard let partition = state.mesh.partitions[id] else { return [] }
    var damaged: [DocumentKey: String] = [:]
    var readable: [DocumentKey] = []
    for key in keys.sorted() {
      if let reason = try damage(of: key, in: id) {
        damaged[key] = reason
      } else if state.quarantine.release(key, in: id) {
        readable.append(key)
      }
    }
    if !readable.isEmpty {
      try transaction.noteRebuild(of: id)
      // Whoever looked meanwhile has not seen them.
      done.documents.append(ChangedDocuments(readable, in: id))
    }
    return try makeAnew(damaged, in: partition)
  }

  /// What a fold left as it was, since it did not read, lacks what was folded in. It is made anew also where it reads by now; what
  /// the log does not give is set aside, since it would show what was before as soon as it reads again.
  mutating func makeUp(for keys: Set<DocumentKey>, passedOverIn id: PartitionID) throws {
    guard let partition = state.mesh.partitions[id] else { return }
    var damaged: [DocumentKey: String] = [:]
    for key in keys { damaged[key] = try damage(of: key, in: id) ?? "it did not read when a change of it came" }
    try setAside(try makeAnew(damaged, in: partition).sorted(), in: id)
  }

  /// Answers those that the log does not give, or was asked for just now; with each stands what is wrong with it.
  private mutating func makeAnew(
    _ damaged: [DocumentKey: String], in partition: PartitionState
  ) throws -> Set<DocumentKey> {
    let keys = Set(damaged.keys)
    let due = state.quarantine.due(keys, in: partition.id, state.clock.now)
    guard !due.isEmpty else { return keys }
    let rebuild = DocumentRebuild(reader: RunReader(state.identity), partition: partition)
    var walks = CommitWriter.walkLimit
    return keys.subtracting(try mend(due.sorted()[...], damaged, by: rebuild, &walks))
  }

  /// Answers those that were made anew.
  private mutating func mend(
    _ keys: ArraySlice<DocumentKey>, _ damaged: [DocumentKey: String], by rebuild: DocumentRebuild, _ walks: inout Int
  ) throws -> Set<DocumentKey> {
    let id = rebuild.partition.id
    do {
      done.documents.append(try rebuild.run(on: Set(keys), transaction))
      for key in keys {
        state.quarantine.release(key, in: id)
        state.quarantine.noteMended(key, in: rebuild.partition.name)
      }
      return Set(keys)
    } catch let failure as any StoreFailure where failure.isOfOneRow {
      note(failure, in: id)
      walks -= 2
      // The payload of a change stands in the way of some of them alone.
      guard failure.isOfPayload, keys.count > 1, walks >= 0 else {
        for key in keys { state.quarantine.put(key, in: id, "\(damaged[key] ?? ""); \(failure)", state.clock.now) }
        return []
      }
      let middle = keys.startIndex + keys.count / 2
      let lower = try mend(keys[..<middle], damaged, by: rebuild, &walks)
      return lower.union(try mend(keys[middle...], damaged, by: rebuild, &walks))
    }
  }

  /// Nil for one that reads, or is not there.
  private func damage(of key: DocumentKey, in partition: PartitionID) throws -> String? {
    guard let stored = try transaction.document(key, in: partition) else { return nil }
    do throws(DamagedDocument) {
      _ = try DocumentState(stored, of: key)
      return nil
    } catch {
      return error.reason
    }
  }
}

extension NodeEngine {
  /// Documents that a reader found damaged are made anew from the log. Answers whether all of them read now.
  @discardableResult
  package func mend(_ keys: Set<DocumentKey>, in partition: PartitionID) -> Bool {
    let due = state.quarantine.due(keys, in: partition, state.clock.now)
    guard !due.isEmpty else { return false }
    var (documents, left): ([ChangedDocuments], Set<DocumentKey>) = ([], keys)
    do {
      try store { transaction in
        var writer = CommitWriter(state, transaction)
        left = try writer.mend(keys, in: partition)
        documents = writer.done.documents
      }
    } catch {
      journal.note(.error, "damaged documents could not be made anew", ["reason": .text("\(error)")])
      // As on a full disk, where each reader would have the log walked through again.
      for key in due { state.quarantine.noteTried(key, in: partition, "\(error)", state.clock.now) }
      return false
    }
    tellMended(documents, in: partition)
    return left.isEmpty
  }

  func tellMended(_ documents: [ChangedDocuments], in partition: PartitionID) {
    let count = documents.reduce(0) { $0 + $1.count }
    guard count > 0 else { return }
    listener.committed(CommitRecord(documents: documents))
    journal.note(
      .notice, "damaged documents read again",
      ["documents": .text("\(count)"), "partition": .text(state.name(partition))])
  }
}
