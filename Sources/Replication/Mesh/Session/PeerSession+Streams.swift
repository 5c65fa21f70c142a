// The sending side of the stream rule (C9): one stream per session and partition, catch-up first and live as its
// continuation, in order of arrival, skipping only what the peer has announced after its commit.
extension PeerSession {
  /// As it is, or as it begins. Nil where the peer names more partitions than anybody here has begun. What is not here yet
  /// begins with its first run.
  func stream(_ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger, _ now: MonotonicTime) -> PeerStream? {
    guard let live else { return nil }
    if let stream = live.streams[partition] { return stream }
    let state = ledger.partitions[partition]
    guard state != nil || live.streams.count < ledger.partitions.count + LiveSession.awaitedPartitionLimit else {
      return nil
    }
    guard live.level.contains(partition, name) else { return PeerStream(name, now: now) }
    return PeerStream(name, known: state?.log.clipped ?? VersionVector(), number: PeerStream.level, now: now)
  }

  /// The peer has asked for its stream of the partition. `known`: what it says that it holds.
  mutating func begin(
    _ number: UInt64, _ partition: PartitionID, _ wanted: PartitionVector, known: VersionVector, _ ledger: Ledger,
    _ now: MonotonicTime
  ) {
    guard var stream = stream(partition, wanted.name, ledger, now) else { return }
    // Who pulls did not find it level.
    if live?.streams[partition] == nil { stream.incoming.close() }
    stream.known = known
    live?.voidLoad(of: partition)
    stream.outgoing.begin(number, naming: wanted.staged)
    live?.relays.end(partition)
    live?.streams[partition] = stream
  }

  /// Asks the log for what the peer lacks, if there is room to send it.
  mutating func pump(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard isWritable, let state = ledger.partitions[partition], let stream = live?.streams[partition],
      stream.outgoing.number != nil, !stream.outgoing.isLoading, stream.lacks(state.log),
      isItsTurn(partition, stream.name)
    else { return }
    live?.relays.end(partition)
    let usual = loadByteLimit(step)
    let byteLimit = live?.streams[partition]?.outgoing.beginLoad(usual) ?? usual
    step.emit(.load(id, partition, have: stream.have(of: state.log), byteLimit: byteLimit))
  }

  private func loadByteLimit(_ step: Step) -> Int {
    let usual = step.configuration.loadByteLimit
    return passage.isThin ? min(usual, MeshConfiguration.thinLoadByteLimit) : usual
  }

  /// Asks the peer for its stream of the partition, under a new number.
  mutating func pull(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard let payloads = live?.streams[partition]?.incoming.payloads, let name = live?.streams[partition]?.name,
      let comparison = live?.comparison.count, let number = live?.takeStreamNumber()
    else { return }
    let staged = step.surroundings.staged.named(in: partition, to: device, ownAlone: payloads.namesOwnAlone)
    live?.streams[partition]?.pull(number, naming: staged, in: comparison, step.now)
    let vector = ledger.partitions[partition]?.log.clipped ?? VersionVector()
    send(PartitionVector(name: name, vector: vector, staged: staged), &step) { .pull(stream: number, $0) }
  }

  /// What the log answered.
  mutating func loaded(
    _ partition: PartitionID, _ runs: [LoggedRun], hasMore: Bool, _ ledger: Ledger, _ step: inout Step
  ) {
    guard live?.takesAsVoid(partition) == false, let sent = live?.streams[partition]?.outgoing.sent else { return }
    live?.streams[partition]?.outgoing.endLoad()
    send(runs, partition, ledger, &step)
    let isStuck = hasMore && live?.streams[partition]?.outgoing.sent == sent
    let usual = loadByteLimit(step)
    if live?.streams[partition]?.outgoing.setNextLoad(isStuck: isStuck, usual: usual) == true, hasMore {
      pump(partition, ledger, &step)
    }
    pumpBehind(partition, ledger, &step)
  }

  /// What waited while this partition was read goes on: what goes behind it alone, since of others something may be left that
  /// cannot be sent yet, and they would be read by turns without end.
  private mutating func pumpBehind(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard passage.isOrdered, let live,
      let rank = live.streams[partition].flatMap({ passage.rank(partition, $0.name) })
    else { return }
    let behind = inOrder.filter { other in
      live.streams[other].flatMap { passage.rank(other, $0.name) }.map { $0 > rank } ?? false
    }
    for other in behind { pump(other, ledger, &step) }
  }

  /// Room again: on with whatever this peer lacks.
  mutating func pumpAll(_ ledger: Ledger, _ step: inout Step) {
    showRests(&step)
    for partition in inOrder { pump(partition, ledger, &step) }
  }

  /// Sends what the peer still lacks of these runs, in their order.
  mutating func send(_ runs: [LoggedRun], _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard var stream = live?.streams[partition], let number = stream.outgoing.number,
      let state = ledger.partitions[partition]
    else { return }
    var batch: [RunBatch.Entry] = []
    var (bytes, contextEntries) = (0, 0)
    func close() {
      if !batch.isEmpty { step.emit(.send(id, .runs(RunBatch(name: state.name, stream: number, entries: batch)))) }
      (batch, bytes, contextEntries) = ([], 0, 0)
    }
    var hasForks = !stream.forks.heldBack.isEmpty || !state.log.forkPoints.isEmpty
    for run in runs where !stream.covers(run.replica, run.last) && !stream.forks.holdsBack(run.replica) {
      // Where nothing has forked, the order of arrival is enough.
      guard !hasForks || stream.maySend(run, state.log) else { continue }
      guard stream.continues(run) else {
        hasForks = true
        if !sparesBranches(of: run.replica, ledger), stream.forks.beginAnew(run.replica) {
          tellSearch(partition, run.replica, ledger, &step)
        }
        stream.forks.holdBack(run.replica)
        continue
      }
      Invariant.check(stream.isCovered(run, state.log), "a run goes out ahead of what it follows or has seen")
      if let apart = run.apart {
        close()
        for piece in stream.outgoing.pieces(of: apart, in: state.name, on: number) {
          step.emit(.send(id, .payloadPiece(piece)))
        }
      }
      let entry = stream.outgoing.put(run)
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
      }
      if !vector.isEmpty { vectors.append(PartitionVector(name: state.name, vector: vector)) }
    }
    for batch in PartitionVector.batches(vectors) { step.emit(.send(id, .vectors(batch))) }
  }

  func send(_ vector: PartitionVector, _ step: inout Step, _ message: (PartitionVector) -> Message) {
    for part in vector.parts { step.emit(.send(id, message(part))) }
  }
}
