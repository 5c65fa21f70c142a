/// Whom this node asks for what it lacks, and when it asks anew; ``PushPolicy`` decides what is sent to whom.
///
/// A stream is asked for once: at once from a peer that has nothing new, else from one peer at a time. An open stream that
/// brings nothing is asked for anew: pairwise exchange is the truth.
struct PullPolicy: Sendable {
  var catchUps = CatchUps()

  mutating func consider(
    _ id: SessionID, _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    guard let session = sessions[id], let stream = session.live?.streams[partition],
      stream.incoming.number == nil
    else { return }
    if stream.isAhead(of: ledger.partitions[partition]?.log) {
      guard catchUps.session(of: partition) == nil, isItsTurnToCome(session, partition, stream.name) else { return }
      catchUps.begin(partition, on: id, for: stream.known, step.now)
    } else if session.sparing?.holdsBack(partition, step.now) == true {
      // The pull would name what is not to be announced yet. It follows the announcement.
      sessions[id]?.sparing?.noteHeldPull(partition)
      return
    }
    sessions[id]?.pull(partition, ledger, &step)
  }

  mutating func considerAll(
    _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    for id in sessions.ids { consider(id, partition, &sessions, ledger, &step) }
  }

  /// What is gathered is announced, and streams that were not asked for until then are asked for.
  mutating func announceGathered(
    _ id: SessionID, dueAt now: MonotonicTime? = nil, _ sessions: inout SessionTable, _ ledger: Ledger,
    _ step: inout Step
  ) {
    for partition in sessions[id]?.announceGathered(dueAt: now, ledger, &step) ?? [] {
      consider(id, partition, &sessions, ledger, &step)
    }
  }

  /// Nothing that goes before it on a link with an order is coming from the peer.
  private func isItsTurnToCome(_ session: PeerSession, _ partition: PartitionID, _ name: PartitionName) -> Bool {
    guard session.passage.isOrdered, let rank = session.passage.rank(partition, name) else { return true }
    return !catchUps.partitions(of: session.id).contains { other in
      session.live?.streams[other].flatMap { session.passage.rank(other, $0.name) }.map { $0 < rank } ?? false
    }
  }

  mutating func considerInOrder(
    _ id: SessionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    guard let session = sessions[id], session.passage.isOrdered else { return }
    for partition in session.inOrder { consider(id, partition, &sessions, ledger, &step) }
  }

  // MARK: Anew

  /// What comes does not fit the stream: now it is asked for, under a number of its own.
  mutating func considerAnew(
    _ id: SessionID, _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    sessions[id]?.live?.streams[partition]?.incoming.close()
    consider(id, partition, &sessions, ledger, &step)
  }

  /// The same where the session may be the one that catches this node up: a catch-up of a stream that is closed would keep
  /// everybody from being asked, until it is found to be silent.
  mutating func askAnew(
    _ id: SessionID, _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    sessions[id]?.live?.streams[partition]?.incoming.close()
    catchUps.end(partition, on: id)
    consider(id, partition, &sessions, ledger, &step)
  }

  /// Before any other peer's catch-up: own writes wait for it. Not where the stream was asked for already.
  mutating func askFirst(
    _ id: SessionID, _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    guard let stream = sessions[id]?.live?.streams[partition],
      stream.incoming.number ?? PeerStream.level == PeerStream.level
    else { return }
    catchUps.end(partition)
    considerAnew(id, partition, &sessions, ledger, &step)
  }

  /// Equal summaries open streams only where both ends held the same scope against them, and an interest that changed
  /// during the handshake may have reached one of them alone. A peer that names more than it sent is therefore asked. What
  /// others than the two wrote it may leave to others: that is asked for where nobody brings it.
  func doubtLevel(_ id: SessionID, _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger) {
    guard let session = sessions[id], let stream = session.live?.streams[partition], stream.incoming.isLevel,
      catchUps.session(of: partition) == nil
    else { return }
    let ahead = stream.chainsAhead(of: ledger.partitions[partition]?.log)
    let both = [session.peer, ledger.device]
    guard
      ahead.contains(where: { replica in
        session.sparing == nil || !sessions.hasOthers(than: id)
          || ledger.authority.author(of: replica).map(both.contains) ?? true
      })
    else { return }
    sessions[id]?.live?.streams[partition]?.incoming.close()
  }

  /// A peer that leaves chains to others, as it was told, is silent and ahead all the time: by what it has announced of what is still on its
  /// way. What nobody brings is found by whether it stands still.
  private func mayLeave(_ id: SessionID, _ sessions: SessionTable) -> Bool {
    sessions[id]?.choosesBringers == true && sessions[id]?.passage.isThin == false && sessions.hasOthers(than: id)
  }

  /// An open stream that brings nothing although the peer is ahead is asked for anew.
  mutating func repeatIfSilent(
    _ id: SessionID, _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    guard let stream = sessions[id]?.live?.streams[partition], stream.incoming.number != nil,
      stream.isAhead(of: ledger.partitions[partition]?.log),
      stream.incoming.isSilent(for: step.configuration.catchUpSilenceMilliseconds, step.now),
      catchUps.session(of: partition) ?? id == id,
      catchUps.session(of: partition) == id || !mayLeave(id, sessions)
    else { return }
    catchUps.begin(partition, on: id, for: stream.known, step.now)
    sessions[id]?.pull(partition, ledger, &step)
  }

  // MARK: How a catch-up goes on

  /// Level with the peer that did the catch-up: the others may open their streams now.
  mutating func noteProgress(
    _ partition: PartitionID, _ source: SessionID?, byteCount: Int = 0, _ sessions: inout SessionTable,
    _ ledger: Ledger, _ step: inout Step
  ) {
    guard let session = catchUps.session(of: partition) else { return }
    if session == source { catchUps.noteProgress(partition, byteCount, step.now) }
    // What the peer has named since it was asked it may have left to others, who are to be asked meanwhile.
    let (stream, state) = (sessions[session]?.live?.streams[partition], ledger.partitions[partition])
    guard let stream, catchUps.isOutstanding(partition, stream, state) else {
      catchUps.end(partition)
      // Who has brought it all hears at once that it is here.
      sessions[session]?.announceGathered(of: partition, ledger, &step)
      if stream?.isAhead(of: state?.log) != true, let name = state?.name {
        step.emit(.note(session, .levelWith(name)))
      }
      considerAll(partition, &sessions, ledger, &step)
      return considerInOrder(session, &sessions, ledger, &step)
    }
  }

  /// The session has ended.
  mutating func closed(_ id: SessionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step) {
    for partition in catchUps.partitions(of: id) {
      catchUps.end(partition)
      considerAll(partition, &sessions, ledger, &step)
    }
  }

  /// Answers what this session was to bring here, and is to be asked of others (``askOthers(_:_:_:_:)``).
  mutating func closeStreams(
    _ removed: Interest, _ id: SessionID, _ sessions: inout SessionTable, _ ledger: Ledger
  ) -> [EndedCatchUp] {
    end(sessions[id]?.closeStreams(removed, ledger) ?? [], on: id)
  }

  /// The same. `partitions`: in which somebody may carry less than before; nil: in any.
  mutating func closeStreamsOutOfScope(
    of partitions: Set<PartitionID>?, _ sessions: inout SessionTable, _ ledger: Ledger
  ) -> [EndedCatchUp] {
    guard partitions?.isEmpty != true else { return [] }
    return sessions.ids.flatMap { id in
      end(sessions[id]?.closeStreamsOutOfScope(of: partitions, ledger) ?? [], on: id)
    }
  }

  struct EndedCatchUp {
    let partition: PartitionID
    let session: SessionID
  }

  private mutating func end(_ closed: [PartitionID], on id: SessionID) -> [EndedCatchUp] {
    closed.sorted().filter { catchUps.end($0, on: id) }.map { EndedCatchUp(partition: $0, session: id) }
  }

  /// Once what each of them may carry, and wants, is known of all.
  mutating func askOthers(
    _ ended: [EndedCatchUp], _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    for end in ended { considerAll(end.partition, &sessions, ledger, &step) }
    for id in Set(ended.map(\.session)).sorted() { considerInOrder(id, &sessions, ledger, &step) }
  }

  mutating func tick(_ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step) {
    for partition in catchUps.partitions { passOnIfSilent(partition, &sessions, ledger, &step) }
  }

  private mutating func passOnIfSilent(
    _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    let isStuck = catchUps.isSilent(partition, for: step.configuration.catchUpSilenceMilliseconds, step.now)
    guard let session = catchUps.session(of: partition),
      catchUps.isSilent(partition, for: step.configuration.leftToOthersMilliseconds, step.now),
      isStuck || mayBeLeftToOthers(partition, session, sessions, ledger)
    else { return }
    catchUps.end(partition)
    // Who was asked and brought nothing is not asked once more before the others are.
    if isStuck { watch(partition, session, &sessions, ledger, after: step.configuration.antiEntropyMilliseconds, step) }
    considerAll(partition, &sessions, ledger, &step)
    considerInOrder(session, &sessions, ledger, &step)
  }

  /// The peer has sent all that it was asked for, and what it has named since others may bring, of whom none is asked while
  /// the catch-up goes on.
  private func mayBeLeftToOthers(
    _ partition: PartitionID, _ id: SessionID, _ sessions: SessionTable, _ ledger: Ledger
  ) -> Bool {
    guard let session = sessions[id], session.sparing != nil, !session.passage.isThin, sessions.hasOthers(than: id),
      let stream = session.live?.streams[partition]
    else { return false }
    let state = ledger.partitions[partition]
    let ahead = stream.chainsAhead(of: state?.log)
    return !catchUps.isOutstanding(partition, stream, state)
      && ahead.contains { ledger.authority.author(of: $0) != session.peer }
  }

  /// What was named and is brought by nobody is asked of who has named it: he may have left it to somebody. Not again before
  /// the next comparison, since a pull voids what is on its way, and over a thin link that may take longer than this waits.
  mutating func askForWhatNobodyBrings(
    _ id: SessionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    guard sessions[id]?.passage.isThin == false, sessions.hasOthers(than: id) else { return }
    let patience = step.configuration.broughtMilliseconds
    for partition in sessions[id]?.sparing?.behind(for: patience, step.now) ?? [] {
      let log = ledger.partitions[partition]?.log
      guard let session = sessions[id], let stream = session.live?.streams[partition], stream.isAhead(of: log) else {
        sessions[id]?.sparing?.noteLevel(partition)
        continue
      }
      guard session.sparing?.standsStill(partition, stream, log) == true else {
        sessions[id]?.sparing?.watch(partition, stream, log, since: step.now)
        continue
      }
      // Who was level when his stream would have opened, and has written since, waits for no catch-up of another.
      let isFree = catchUps.session(of: partition) == nil
      guard isFree || session.sparing?.isPullHeld(partition) == true,
        isItsTurnToCome(session, partition, stream.name)
      else { continue }
      watch(partition, id, &sessions, ledger, after: step.configuration.antiEntropyMilliseconds, step)
      if isFree { catchUps.begin(partition, on: id, for: stream.known, step.now) }
      sessions[id]?.pull(partition, ledger, &step)
    }
  }

  private func watch(
    _ partition: PartitionID, _ id: SessionID, _ sessions: inout SessionTable, _ ledger: Ledger,
    after milliseconds: UInt64, _ step: Step
  ) {
    guard let stream = sessions[id]?.live?.streams[partition] else { return }
    let time = step.now.advanced(byMilliseconds: milliseconds)
    sessions[id]?.sparing?.watch(partition, stream, ledger.partitions[partition]?.log, since: time)
  }

  // MARK: What was left out

  /// What was left out on the stream is asked for once more.
  mutating func reopen(
    _ id: SessionID, _ partition: PartitionID, awaiting awaited: [ReplicaID: UInt64] = [:],
    _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    guard sessions[id]?.live?.streams[partition] != nil else { return }
    let log = ledger.partitions[partition]?.log
    sessions[id]?.live?.streams[partition]?.incoming.leftOut.reopen(awaiting: awaited, in: log)
    askAnew(id, partition, &sessions, ledger, &step)
  }

  /// Statements may allow what was left out.
  mutating func reopenAll(_ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step) {
    for id in sessions.ids {
      let incomplete =
        sessions[id]?.live?.streams.filter { !$0.value.incoming.leftOut.isEmpty }.map(\.key).sorted() ?? []
      for partition in incomplete {
        sessions[id]?.live?.streams[partition]?.incoming.leftOut.forgive()
        askAnew(id, partition, &sessions, ledger, &step)
      }
    }
  }

  /// Somebody who is not spent has written in the partition, this device perhaps: who else does stands alone no more,
  /// whatever session showed his work.
  mutating func placeGained(
    _ partition: PartitionID, _ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step
  ) {
    for id in sessions.ids where sessions[id]?.live?.streams[partition]?.incoming.leftOut.awaitsPlace == true {
      reopen(id, partition, &sessions, ledger, &step)
    }
  }

  /// These runs were taken: what stood in the way of others in their partition may be gone.
  mutating func noteTaken(
    _ kept: [DeliveredRun], _ id: SessionID, _ partition: PartitionID, _ sessions: inout SessionTable,
    _ ledger: Ledger, _ step: inout Step
  ) {
    guard !ledger.takes.spent.isEmpty, let stream = sessions[id]?.live?.streams[partition] else { return }
    for id in sessions.ids { sessions[id]?.endAwaiting(in: partition, ledger) }
    let isVouchedFor = kept.contains { $0.incoming.signer.map { !ledger.takes.isSpent($0) } ?? false }
    guard isVouchedFor else {
      // Nobody else need wait for what is not taken from this peer.
      if !stream.incoming.leftOut.isEmpty { noteProgress(partition, id, &sessions, ledger, &step) }
      return
    }
    placeGained(partition, &sessions, ledger, &step)
  }

  func lookAtInvariants(_ sessions: SessionTable) {
    guard catchUps.count <= Invariant.few else { return }
    for partition in catchUps.partitions {
      let session = catchUps.session(of: partition).flatMap { sessions[$0] }
      Invariant.check(
        session?.live?.streams[partition]?.incoming.number != nil, "a catch-up is waited for that nobody was asked for")
    }
  }
}
