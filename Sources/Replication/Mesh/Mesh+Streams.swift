// Streams, as far as they are not one session's alone: a commit goes to all of them, and what a peer says of its own moves
// who brings what is lacking here.
extension Mesh {
  mutating func receivePull(_ id: SessionID, _ number: UInt64, _ wanted: PartitionVector, _ step: inout Step) {
    let partition = ledger.id(of: wanted.name)
    guard number > 0, sessions[id]?.heardStream(partition, wanted.name, ledger, step.now) != nil else { return }
    let told = sessions[id]?.live?.told.take(wanted.base, of: partition, cryptography.hash)
    // Where it refers to what is not known here any more, what it left out is sent once more.
    let isWhole = wanted.base == nil || told != nil
    let wanted = wanted.whole(on: told)
    let known = sessions.bounded(ledger.declared(wanted.vector, partition), id, partition, ledger, step)
    // What is not kept of a vector is not kept as a base.
    let base = isWhole && known == wanted.vector ? sessions[id]?.base(from: known) : nil
    let isOpen = sessions[id]?.live?.streams[partition]?.outgoing.number != nil
    let unannounced = isOpen ? nil : sessions[id]?.sparing?.unannounced(partition)
    sessions[id]?.begin(number, partition, wanted, known: known, base: base, ledger, step.now)
    sessions[id]?.doubtFreed(partition, ledger)
    lookForForks(id, partition, wanted, &step)
    sessions[id]?.showForks(partition, anew: false, ledger, &step)
    pulls.consider(id, partition, &sessions, ledger, &step)
    // What it gets from here it does not pass on to who is linked with this node.
    sessions.bringWhatIsLeft(to: id, of: partition, ledger, step)
    if let unannounced, sessions[id]?.leaveUnannounced(unannounced, of: partition, ledger) == false { return }
    sessions[id]?.pump(partition, ledger, &step)
  }

  /// Durable now: tell everyone who cares, and send it to those who lack it.
  mutating func committed(_ commits: [Commit], _ step: inout Step) {
    var before: [PartitionID: VersionVector] = [:]
    for commit in commits where before[commit.partition] == nil {
      before[commit.partition] = ledger.partitions.noteCommitted(commit.partition)
    }
    for commit in commits {
      guard let before = before[commit.partition] else { continue }
      committed(commit.partition, commit.source, commit.runs, before: before, &step)
    }
  }

  private mutating func committed(
    _ partition: PartitionID, _ source: SessionID?, _ runs: [LoggedRun], before: VersionVector, _ step: inout Step
  ) {
    guard let name = ledger.partitions.look(at: partition, \.name) else { return }
    holdings.grew(partition, name, byteCount: runs.reduce(0) { $0 + $1.byteCount })
    let bytes = runs.reduce(0) { $0 + $1.encoded.count }
    let bringsMuch = source.map { pulls.catchUps.bringsMuch($0, partition, bytes) } ?? false
    let bringer = CommittedRuns.Bringer(
      source, of: runs, in: partition, name, bringsMuch: bringsMuch, sessions, ledger)
    let committed = ledger.partitions.look(at: partition) {
      CommittedRuns($0, from: source, by: bringer, runs, before: before)
    }
    guard let committed else { return }
    for id in sessions.ids { sessions[id]?.push(committed, ledger, &step) }
    if source == nil { pulls.placeGained(partition, &sessions, ledger, &step) }
    // What memory has already is told only with its own commit, and who brought it is to hear of all of it.
    guard source == nil || !pulls.catchUps.noteCommitted(partition) else {
      if pulls.catchUps.session(of: partition) == source { pulls.catchUps.noteProgress(partition, bytes, step.now) }
      return
    }
    pulls.noteProgress(partition, source, byteCount: bytes, &sessions, ledger, &step)
  }

  /// Room again: go on with whatever this peer lacks.
  mutating func resume(_ id: SessionID, _ step: inout Step) {
    guard sessions[id]?.isWritable == false else { return }
    sessions[id]?.isWritable = true
    sayStatements(id, &step)
    sessions[id]?.showRests(&step)
    sessions[id]?.goOn(ledger, &step)
  }

  /// The shell's send queue for this session is above its mark.
  package mutating func pause(_ id: SessionID) { sessions[id]?.isWritable = false }

  /// By how fast the session's link takes away what is sent.
  package mutating func limitPortions(of id: SessionID, to byteCount: Int) {
    sessions[id]?.portionByteLimit = byteCount
  }

  /// The payload has to come once more, all that is not here of it from this very peer. Evidence comes again by itself.
  mutating func payloadLost(_ id: SessionID, _ batch: RunBatch, _ step: inout Step) {
    let partition = ledger.id(of: batch.name)
    guard !batch.isForkEvidence,
      let stream = sessions[id]?.heardStream(partition, batch.name, ledger, step.now)
    else { return }
    sessions[id]?.live?.streams[partition] = stream
    guard stream.incoming.number == batch.stream else {
      return pulls.consider(id, partition, &sessions, ledger, &step)
    }
    sessions[id]?.live?.streams[partition]?.incoming.payloads.distrustOthers()
    pulls.askAnew(id, partition, &sessions, ledger, &step)
  }

  // MARK: Vectors

  mutating func receiveVectors(
    _ id: SessionID, _ list: [PartitionVector], _ step: inout Step
  ) throws(SessionEnd) {
    let isOrdered = sessions[id]?.passage.isOrdered == true
    for (index, item) in list.enumerated() {
      guard !item.hasMore || index == list.count - 1 else { throw .breach("a vector that ends in the middle") }
      guard let whole = try sessions[id]?.live?.join(item, .vectors) else { continue }
      receiveVector(id, whole, isToldWhole: true, pulls: !isOrdered, &step)
      sessions[id]?.showForks(ledger.id(of: whole.name), anew: true, ledger, &step)
    }
    pulls.considerInOrder(id, &sessions, ledger, &step)
  }

  /// - Parameters:
  ///   - isToldWhole: in `vectors`, to which a pull may refer.
  ///   - pulls: false where whoever calls looks afterwards what is to be asked for first.
  mutating func receiveVector(
    _ id: SessionID, _ item: PartitionVector, isToldWhole: Bool = false, pulls isAsked: Bool = true, _ step: inout Step
  ) {
    let partition = ledger.id(of: item.name)
    guard var stream = sessions[id]?.heardStream(partition, item.name, ledger, step.now) else { return }
    let told = sessions.bounded(ledger.declared(item.vector, partition), id, partition, ledger, step)
    let isMoreToSend = stream.note(
      told, ledger.partitions[partition]?.log,
      spared: { sessions[id]?.sparesBranches(of: $0, ledger) == true })
    if isToldWhole { stream.noteTold(item.vector) }
    sessions[id]?.live?.streams[partition] = stream
    trees.noteNamed(told, by: id, of: partition, sessions, ledger, step.now)
    if isMoreToSend { sessions[id]?.pump(partition, ledger, &step) }
    if stream.isAhead(of: ledger.partitions[partition]?.log) {
      sessions[id]?.sparing?.noteBehind(partition, stream, ledger.partitions[partition]?.log, step.now)
    }
    lookForForks(id, partition, item, &step)
    pulls.doubtLevel(id, partition, &sessions, ledger)
    pulls.repeatIfSilent(id, partition, &sessions, ledger, &step)
    if isAsked { pulls.consider(id, partition, &sessions, ledger, &step) }
  }

  /// Equal numbers with different tips are two histories; more of this node's own chain than it holds may be a lost past. What
  /// is not searched now goes no further before it is: a run that goes on from another tip is reason for it, and so is the
  /// next vector.
  private mutating func lookForForks(
    _ id: SessionID, _ partition: PartitionID, _ item: PartitionVector, _ step: inout Step
  ) {
    let log = ledger.partitions[partition]?.log
    var begun = 0
    for (replica, position) in item.vector.sorted {
      if step.surroundings.isOwn(replica), let session = sessions[id],
        ownChainClaims.judge(position, of: replica, own: log?.received[replica], of: partition, from: session, step)
      {
        pulls.askFirst(id, partition, &sessions, ledger, &step)
      }
      guard let log, begun < LiveSession.searchLimit else { continue }
      let standing = log.standing(of: position, of: replica) { _, _ in position.tip }
      let judgement = log.judge(position, of: replica) { _, _ in position.tip }
      if judgement == .differs || judgement == .known && standing < position.sequence {
        begun += sessions[id]?.searchFork(partition, replica, ledger, &step) == true ? 1 : 0
      }
    }
  }

  /// With whom a peer came to be linked, and with whom it is no more.
  mutating func receiveNews(_ id: SessionID, _ news: NeighbourNews, _ step: inout Step) {
    let before = sessions[id]?.sparing?.neighbours ?? []
    let lost = news.removed.intersection(before)
    sessions.hear(news, from: id, ledger, step)
    if let count = sessions[id]?.sparing?.neighbours.count, count != before.count {
      step.emit(.linked(id, count: count + 1))
    }
    if !lost.isEmpty { trees.lost(lost, by: id, sessions, ledger, step) }
  }

  mutating func receiveChoice(_ id: SessionID, _ choice: PushChoice, _ step: Step) {
    let partition = ledger.id(of: choice.name)
    sessions[id]?.hear(choice, of: partition, ledger, step)
    trees.wanted(choice.eager, of: partition, by: id, sessions, ledger, step)
  }
}
