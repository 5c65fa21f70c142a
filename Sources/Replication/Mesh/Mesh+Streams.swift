// Streams, as far as they are not one session's alone: a commit goes to all of them, and what a peer says of its own moves
// who brings what is lacking here.
extension Mesh {
  mutating func receivePull(_ id: SessionID, _ number: UInt64, _ wanted: PartitionVector, _ step: inout Step) {
    let partition = ledger.id(of: wanted.name)
    guard number > 0, let session = sessions[id], session.isInScope(partition, wanted.name, ledger),
      session.stream(partition, wanted.name, ledger, step.now) != nil
    else { return }
    let known = boundedVector(declared(wanted.vector, partition), id, partition, step.now)
    sessions[id]?.begin(number, partition, wanted, known: known, ledger, step.now)
    checkPeerVector(id, partition, wanted, &step)
    sessions[id]?.showForks(partition, anew: false, ledger, &step)
    considerPull(id, partition, &step)
    sessions[id]?.pump(partition, ledger, &step)
  }

  /// Durable now: tell everyone who cares, and send it to those who lack it.
  mutating func committed(_ commits: [Commit], _ step: inout Step) {
    for (commit, before) in zip(commits, heldBefore(commits)) {
      committed(commit.partition, commit.source, commit.runs, before: before, &step)
    }
  }

  /// What was held of its partition before each of them. The logs have all of them already.
  private func heldBefore(_ commits: [Commit]) -> [VersionVector] {
    var held: [PartitionID: VersionVector] = [:]
    let before = commits.reversed().map { commit in
      var vector = held[commit.partition] ?? ledger.partitions[commit.partition]?.log.clipped ?? VersionVector()
      for run in commit.runs.reversed() {
        vector[run.replica] =
          run.first > 1 ? ChainPosition(sequence: run.first - 1, tip: run.hashBefore.tip) : nil
      }
      held[commit.partition] = vector
      return vector
    }
    return before.reversed()
  }

  private mutating func committed(
    _ partition: PartitionID, _ source: SessionID?, _ runs: [LoggedRun], before: VersionVector, _ step: inout Step
  ) {
    guard let state = ledger.partitions[partition] else { return }
    noteGrowth(state, runs)
    let committed = CommittedRuns(state, from: source, by: bringer(source, partition, runs), runs, before: before)
    for id in sessions.keys.sorted() { sessions[id]?.push(committed, ledger, &step) }
    if source == nil { placeGained(partition, &step) }
    let bytes = byteCount(of: runs)
    // What memory has already is told only with its own commit, and who brought it is to hear of all of it.
    guard source == nil || !catchUps.noteCommitted(partition) else {
      if catchUps.session(of: partition) == source { catchUps.noteProgress(partition, bytes, step.now) }
      return
    }
    noteProgress(partition, source, byteCount: bytes, &step)
  }

  private func byteCount(of runs: [LoggedRun]) -> Int { runs.reduce(0) { $0 + $1.encoded.count } }

  /// Nil for own runs, and where the session has ended.
  private func bringer(_ source: SessionID?, _ partition: PartitionID, _ runs: [LoggedRun]) -> CommittedRuns.Bringer? {
    guard let source, let session = sessions[source] else { return nil }
    let mark = DeviceMark(session.device)
    let linked = sessions.values.filter { $0.isLinked(with: mark) && $0.isInScope(partition, ledger) }
    return CommittedRuns.Bringer(
      device: mark, authors: authors(of: runs),
      linked: linked.map { .init(device: DeviceMark($0.device), neighbours: $0.sparing?.neighbours ?? []) },
      aheadSince: catchUps.bringsMuch(source, partition, byteCount(of: runs)) ? session.openedAt : nil)
  }

  private func authors(of runs: [LoggedRun]) -> Set<DeviceMark> {
    let keys = Set(Set(runs.lazy.map(\.replica)).map { ledger.authority.author(of: $0) })
    guard keys.count <= CommittedRuns.Bringer.authorLimit, !keys.contains(nil) else { return [] }
    return Set(keys.compactMap { $0.map { DeviceMark(DeviceID.derived(from: $0, cryptography.hash)) } })
  }

  /// Room again: go on with whatever this peer lacks.
  mutating func resume(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.isWritable == false else { return }
    sessions[id]?.isWritable = true
    pumpStatements(id, &step)
    sessions[id]?.showRests(&step)
    sessions[id]?.goOn(ledger, &step)
  }

  /// The shell's send queue for this session is above its mark.
  package mutating func pause(_ id: SessionID) { sessions[id]?.isWritable = false }

  /// By how fast the session's link takes away what is sent.
  package mutating func limitPortions(of id: SessionID, to byteCount: Int) {
    sessions[id]?.portionByteLimit = byteCount
  }

  // MARK: Vectors

  mutating func receiveVectors(_ id: SessionID, _ list: [PartitionVector], _ step: inout Step) {
    let isOrdered = sessions[id]?.passage.isOrdered == true
    for (index, item) in list.enumerated() {
      guard !item.hasMore || index == list.count - 1 else {
        return fail(id, .protocolError, "a vector that ends in the middle", &step)
      }
      guard let whole = joined(item, id, .vectors, &step) else { continue }
      receiveVector(id, whole, pulls: !isOrdered, &step)
      sessions[id]?.showForks(ledger.id(of: whole.name), anew: true, ledger, &step)
    }
    pullInOrder(id, &step)
  }

  /// - Parameter pulls: false where whoever calls looks afterwards what is to be asked for first.
  mutating func receiveVector(_ id: SessionID, _ item: PartitionVector, pulls: Bool = true, _ step: inout Step) {
    let partition = ledger.id(of: item.name)
    guard let session = sessions[id], session.isInScope(partition, item.name, ledger),
      var stream = session.stream(partition, item.name, ledger, step.now)
    else { return }
    let told = boundedVector(declared(item.vector, partition), id, partition, step.now)
    stream.note(told, ledger.partitions[partition]?.log)
    sessions[id]?.live?.streams[partition] = stream
    if stream.isAhead(of: ledger.partitions[partition]?.log) { sessions[id]?.sparing?.noteBehind(partition, step.now) }
    checkPeerVector(id, partition, item, &step)
    doubtLevelStream(id, partition)
    repullIfSilent(id, partition, &step)
    if pulls { considerPull(id, partition, &step) }
  }

  /// What nobody declared may be anything, and without end.
  func declared(_ vector: VersionVector, _ partition: PartitionID) -> VersionVector {
    let log = ledger.partitions[partition]?.log
    func isKnown(_ replica: ReplicaID) -> Bool {
      ledger.authority.signer(of: replica) != nil || log?.received[replica] != nil
    }
    guard !vector.entries.keys.allSatisfy(isKnown) else { return vector }
    return VersionVector(vector.entries.filter { isKnown($0.key) })
  }

  /// The whole vector once its last part is here; nil until then, and after the session was failed. Nothing else that
  /// carries vectors comes between its parts.
  mutating func joined(
    _ part: PartitionVector, _ id: SessionID, _ carrier: PartialVector.Carrier, _ step: inout Step
  ) -> PartitionVector? {
    guard var partial = sessions[id]?.live?.partial else {
      guard part.hasMore else { return sessions[id] == nil ? nil : part }
      sessions[id]?.live?.partial = PartialVector(part, in: carrier)
      if sessions[id]?.live?.partial == nil { fail(id, .protocolError, "an empty part of a vector", &step) }
      return nil
    }
    // Taken out while it grows, so that it is not copied.
    sessions[id]?.live?.partial = nil
    guard partial.append(part, in: carrier) else {
      fail(id, .protocolError, "a part that does not go on from the one before", &step)
      return nil
    }
    guard part.hasMore else { return partial.whole }
    sessions[id]?.live?.partial = partial
    return nil
  }
}
