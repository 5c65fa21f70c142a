// The sending side of the stream rule (C9): one stream per session and partition, catch-up first and live as its
// continuation, in order of arrival, skipping only what the peer has announced after its commit.
extension PeerSession {
  /// As it is, or as it begins. Nil where the peer names more partitions than anybody here has begun. What is not here yet
  /// begins with its first run.
  func stream(_ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger, _ now: MonotonicTime) -> PeerStream? {
    guard let count = live?.streams.count else { return nil }
    if let stream = live?.streams[partition] { return stream }
    let limit = ledger.partitions.count + LiveSession.awaitedPartitionLimit
    guard count < limit || ledger.partitions.holds(partition) else { return nil }
    guard live?.level.contains(partition, name) == true else { return PeerStream(name, now: now) }
    return ledger.partitions[partition].map { .level($0, known: $0.committed, now) }
      ?? PeerStream(name, number: PeerStream.level, now: now)
  }

  /// It begins here where there is none. Answers whether there is one now.
  mutating func takeUpStream(
    _ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger, _ now: MonotonicTime
  ) -> Bool {
    guard !hasStream(partition) else { return true }
    guard let stream = stream(partition, name, ledger, now) else { return false }
    live?.streams[partition] = stream
    return true
  }

  func hasStream(_ partition: PartitionID) -> Bool { live?.streams.holds(partition) == true }

  /// The peer has asked for its stream of the partition. `known`: what it says that it holds, `base`: what both take for
  /// the base of the first context.
  mutating func begin(
    _ number: UInt64, _ partition: PartitionID, _ wanted: PartitionVector, known: VersionVector, base: VersionVector?,
    _ ledger: Ledger, _ now: MonotonicTime
  ) {
    guard var stream = stream(partition, wanted.name, ledger, now) else { return }
    // Who pulls did not find it level.
    if !hasStream(partition) { stream.incoming.close() }
    live?.voidLoad(of: partition)
    stream.begin(
      number, known: known, told: wanted, base: base, ledger.partitions[partition]?.log,
      spared: { sparesBranches(of: $0, ledger) })
    live?.relays.end(partition)
    live?.streams[partition] = stream
  }

  /// The peer has asked for its stream, which was not open. What was to be announced later it cannot have asked for: that is
  /// left to others, or goes out when it is announced. Answers whether the peer lacks anything else.
  mutating func leaveUnannounced(
    _ unannounced: (chains: [BroughtChains.Chain], until: MonotonicTime), of partition: PartitionID, _ ledger: Ledger
  ) -> Bool {
    guard let log = ledger.partitions[partition]?.log else { return true }
    for chain in unannounced.chains where live?.streams[partition]?.covers(chain.replica, chain.last) == false {
      let isLeft =
        isLinked(with: chain.bringer) && live?.choices.isEager(chain.replica, in: partition) != true
        && live?.streams[partition]?.leaveToOthers(chain.replica, chain.first, through: chain.last, log) == true
      guard !isLeft else { continue }
      live?.relays.begin(partition, at: unannounced.until)
      live?.relays.note(chain, of: partition)
    }
    return live?.streams[partition]?.lacks(log, beside: unannounced.chains) ?? true
  }

  /// Asks the peer for its stream of the partition, under a new number.
  mutating func pull(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard let payloads = live?.streams[partition]?.incoming.payloads, let name = live?.streams[partition]?.name,
      let comparison = live?.comparison.count, let number = live?.takeStreamNumber()
    else { return }
    let staged = step.surroundings.staged.named(in: partition, to: device, ownAlone: payloads.namesOwnAlone)
    let vector = ledger.partitions[partition]?.log.clipped ?? VersionVector()
    var pulled = PartitionVector(name: name, vector: vector, staged: staged)
    if tellsDifferences, let told = live?.streams[partition]?.referable {
      pulled = pulled.differing(from: told, ledger.cryptography.hash) ?? pulled
    }
    let base = base(from: vector)
    live?.streams[partition]?.pull(number, naming: staged, base: base, in: comparison, step.now)
    note(vector, toldOf: partition)
    sparing?.notePulled(partition)
    send(pulled, &step) { .pull(stream: number, $0) }
  }

  /// What the first context of a stream stands on that was pulled with this vector. Of one that is cut off both would not
  /// have the same.
  func base(from vector: VersionVector) -> VersionVector? {
    tellsDifferences && vector.count < PartitionVector.wholeEntryLimit ? vector : nil
  }

  /// The peer's first pull may refer to it.
  private mutating func note(_ vector: VersionVector, toldOf partition: PartitionID) {
    guard tellsDifferences, live?.streams[partition]?.isAwaitingPull != false else { return }
    live?.told.note(vector, of: partition)
  }

  /// Sends what the peer still lacks of these runs, in their order. False where a payload that travels apart comes first, or
  /// has to wait: the runs from there on go behind it.
  ///
  /// - Parameter isBehindPayload: what was left out when they were read may be held back no more.
  @discardableResult
  mutating func send(
    _ runs: ArraySlice<LoggedRun>, _ partition: PartitionID, isBehindPayload: Bool = false, _ ledger: Ledger,
    _ step: inout Step
  ) -> Bool {
    guard let number = live?.streams[partition]?.outgoing.number else { return true }
    let isAll = ledger.partitions.look(at: partition) { state in
      send(runs, on: number, state, isBehindPayload: isBehindPayload, ledger, &step)
    }
    return isAll ?? true
  }

  private mutating func send(
    _ runs: ArraySlice<LoggedRun>, on number: UInt64, _ state: PartitionState, isBehindPayload: Bool, _ ledger: Ledger,
    _ step: inout Step
  ) -> Bool {
    let partition = state.id
    // Taken out while it changes: held twice, its vectors would be copied.
    guard var stream = live?.streams.removeValue(forKey: partition) else { return true }
    var batch: [RunBatch.Entry] = []
    var (bytes, contextEntries) = (0, 0)
    func close() {
      if !batch.isEmpty { step.emit(.send(id, .runs(RunBatch(name: state.name, stream: number, entries: batch)))) }
      (batch, bytes, contextEntries) = ([], 0, 0)
    }
    var hasForks = isBehindPayload || !stream.forks.heldBack.isEmpty || !state.log.forkPoints.isEmpty
    for (place, run) in zip(runs.indices, runs)
    where !stream.covers(run.replica, run.last) && !stream.forks.holdsBack(run.replica) {
      // Statements may have come while it waited.
      guard !isBehindPayload || run.first <= state.log.shownEnd(of: run.replica) else { continue }
      // Where nothing has forked, the order of arrival is enough.
      guard !hasForks || stream.maySend(run, state.log) else { continue }
      guard stream.continues(run) else {
        hasForks = true
        guard !keepsBranches(of: run.replica, ledger) else {
          pass(run.replica, &stream, partition, ledger, &step)
          continue
        }
        if stream.forks.beginAnew(run.replica) { tellSearch(partition, run.replica, ledger, &step) }
        stream.forks.holdBack(run.replica)
        continue
      }
      Invariant.check(stream.isCovered(run, state.log), "a run goes out ahead of what it follows or has seen")
      if let apart = run.apart, stream.outgoing.lacksPieces(of: apart) {
        close()
        live?.streams[partition] = stream
        beginPayload(runs[place...], partition, &step)
        return false
      }
      let entry = stream.outgoing.put(run)
      stream.forks.noteSent(run.replica, through: run.last)
      batch.append(entry)
      // As it travels. What it comes to at the other end is bounded apart: there each takes the memory of a whole one.
      bytes += run.encoded.count + entry.context.entryCount * RunBatch.contextEntryBytes
      contextEntries += run.context.count
      if bytes >= RunBatch.byteTarget || batch.count == RunBatch.entryLimit
        || contextEntries >= RunBatch.contextEntryTarget
      {
        close()
      }
    }
    close()
    live?.streams[partition] = stream
    return true
  }

  // MARK: Vectors

  /// Names what is held of these partitions. On an open stream that is what the peer neither announced nor is being sent;
  /// all of it, where that did not make the two level since the last comparison.
  mutating func sendVectors(
    _ meant: Set<PartitionID>, inComparison: Bool = false, _ ledger: Ledger, _ step: inout Step
  ) {
    guard let count = live?.comparison.count else { return }
    var vectors: [PartitionVector] = []
    for partition in inOrder(meant, ledger) {
      guard let state = ledger.partitions[partition], isInScope(state, ledger) else { continue }
      let stream = live?.streams[partition]
      let vector = stream?.untold(state.log, in: inComparison ? count : nil) ?? state.log.clipped
      if inComparison {
        live?.streams[partition]?.noteDifference(in: count)
        showHeld(partition, ledger, &step)
        askAnew(partition, ledger, &step)
      }
      guard !vector.isEmpty else { continue }
      note(vector, toldOf: partition)
      sparing?.noteTold(partition)
      vectors.append(PartitionVector(name: state.name, vector: vector))
    }
    for batch in PartitionVector.batches(vectors) { step.emit(.send(id, .vectors(batch))) }
  }

  func send(_ vector: PartitionVector, _ step: inout Step, _ message: (PartitionVector) -> Message) {
    for part in vector.parts { step.emit(.send(id, message(part))) }
  }

  /// With whom the peer came to be linked, and with whom it is no more.
  mutating func hear(_ news: NeighbourNews, _ ledger: Ledger, _ step: Step) {
    sparing?.hear(news)
    live?.leaveWaiting(to: news.added, ledger)
    if !news.removed.isEmpty { live?.bringWhatOthersDid(step) }
  }

  /// What is due of what is gathered; all of it, where no time is named. Answers which partitions that is of.
  mutating func announceGathered(
    dueAt now: MonotonicTime? = nil, _ ledger: Ledger, _ step: inout Step
  ) -> [PartitionID] {
    let taken = sparing?.takeGathered(now) ?? []
    for (partition, vector) in taken { announce(vector, of: partition, ledger, &step) }
    return taken.map(\.partition)
  }

  /// What is gathered of the partition is announced now, unless it is held back.
  mutating func announceGathered(of partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard let vector = sparing?.takeGathered(of: partition, step.now) else { return }
    announce(vector, of: partition, ledger, &step)
  }

  private mutating func announce(
    _ vector: PartitionVector, of partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) {
    guard isInScope(partition, vector.name, ledger), let log = ledger.partitions[partition]?.log else { return }
    var told = vector
    // What statements hold above its limit since it was gathered is in no vector any more.
    for (replica, position) in vector.vector.sorted where position.sequence > log.clipped.sequence(of: replica) {
      told.vector[replica] = log.clipped[replica]
    }
    if !told.vector.isEmpty { send(told, &step) { .have($0) } }
  }

  // MARK: Pieces

  /// Of a payload that travels apart: taken on the stream that is open here, in order; what comes on another, or of what is not
  /// in common, is passed over.
  mutating func receive(_ piece: PayloadPiece, _ ledger: Ledger, _ step: inout Step) throws(SessionEnd) {
    let partition = ledger.id(of: piece.name)
    if takesHandedOver(piece, partition, ledger, &step) { return }
    guard var stream = heardStream(partition, piece.name, ledger, step.now),
      piece.stream == PayloadPiece.evidence || piece.stream == stream.incoming.number
    else { return }
    switch stream.incoming.payloads.take(piece, on: stream.incoming.number) {
    case .taken: stream.incoming.notePiece(step.now)
    case .isPassedOver: return
    case .isOutOfOrder:
      throw .breach("a piece of a payload out of order", at: BrokenRule.Place(partition: piece.name))
    }
    live?.streams[partition] = stream
    step.emit(.stage(id, StagedKey(device: device, partition: partition, hash: piece.hash), piece))
  }

  /// The stream on which the peer may send; nil outside of the common scope.
  func heardStream(
    _ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger, _ now: MonotonicTime
  ) -> PeerStream? {
    isInScope(partition, name, ledger) ? stream(partition, name, ledger, now) : nil
  }

  /// Whether the peer has done its part for a payload that a run of this batch names: all of it came ahead, or the pull
  /// said that it was here. What is not here all the same was lost on this side, or passed over with its run.
  package func wasSent(_ hash: Digest, byteCount: UInt64, aheadOf batch: RunBatch, _ ledger: Ledger) -> Bool {
    let partition = ledger.id(of: batch.name)
    // What shows a fork may come while its partition comes into the scope, with its first pieces passed over.
    guard !batch.isForkEvidence, isInScope(partition, batch.name, ledger), let stream = live?.streams[partition],
      stream.incoming.number == batch.stream
    else { return true }
    return stream.incoming.payloads.wasSent(hash, byteCount: byteCount, on: batch.stream)
  }
}
