/// Who pushes what to whom, as receivers choose it: what this node chooses for what comes to it, and when it chooses anew. It is lent the
/// sessions and the ledger; of what peers choose each session keeps account itself (``PushChoices``).
struct PushTrees: Sendable {
  var bringers = EagerBringers()
  private var lagging = LaggingChains()

  /// When peers are told what there is to tell.
  var toldAt: MonotonicTime? { bringers.toldAt }

  /// A run that is new here came on a stream.
  mutating func noteFirstCopy(
    _ replica: ReplicaID, _ id: SessionID, _ partition: PartitionID, _ catchUps: CatchUps, _ sessions: SessionTable,
    _ ledger: Ledger, _ step: Step
  ) {
    // Of what somebody brings who catches this node up nothing follows for what is written next.
    guard sessions[id]?.choosesBringers == true, catchUps.session(of: partition) != id else {
      return bringers.settleDoubt(about: replica, of: partition, broughtBy: id, at: step.now)
    }
    bringers.noteNew(replica, of: partition, from: id, at: step.now)
    tellNewcomers(of: replica, broughtBy: id, partition, sessions, ledger, step)
  }

  /// Who came to be linked since somebody was chosen would push the chain as well, until it has come twice: he hears with the first
  /// change that comes that he need not, unless he is nearer to the author.
  private mutating func tellNewcomers(
    of replica: ReplicaID, broughtBy id: SessionID, _ partition: PartitionID, _ sessions: SessionTable,
    _ ledger: Ledger,
    _ step: Step
  ) {
    guard let chain = bringers[replica, partition], chain.eager == id, let since = chain.chosenAt,
      sessions.lastOpenedAt >= since
    else { return }
    let newcomers = sessions.ids.filter { other in
      guard chain.lazy[other] == nil, let openedAt = sessions[other]?.openedAt, openedAt >= since, other != id else {
        return false
      }
      return !sessions.isAuthor(other, of: replica, ledger)
        && sessions[other]?.pushes(partition, ledger, step.now) == true
        && sessions.bestBringer(of: replica, partition, among: [id, other], ledger) == id
    }
    guard !newcomers.isEmpty else { return }
    bringers.choose(id, for: replica, of: partition, ratherThan: newcomers, at: step.now)
  }

  /// A run that is here already: one of those who push its chain is enough.
  mutating func noteSecondCopy(
    _ replica: ReplicaID, _ id: SessionID, _ partition: PartitionID, _ catchUps: CatchUps, _ sessions: SessionTable,
    _ ledger: Ledger, _ step: Step
  ) {
    guard sessions[id]?.choosesBringers == true, catchUps.session(of: partition) != id,
      !ledger.partitions.isForked(replica, in: partition), let chain = bringers[replica, partition]
    else { return }
    // Of several that are as near to the author who was chosen stays, and else who was first is chosen.
    let pushing = [chain.eager, chain.newest, id].compactMap { $0 }
    guard let bringer = sessions.bestBringer(of: replica, partition, among: pushing, ledger) else { return }
    let time = step.now.advanced(byMilliseconds: step.configuration.choiceMilliseconds)
    // Who was first may be gone by now.
    let others = pushing.filter { sessions[$0] != nil && !sessions.isAuthor($0, of: replica, ledger) }
    bringers.choose(bringer, for: replica, of: partition, ratherThan: others, at: time)
  }

  // MARK: The end of a choice

  /// Who pushed it is gone, or does not any more. Of those who were told not to one takes his place that is linked with the author,
  /// and so has it from him: of the others nobody knows that it does not come to them from here. Where there is none all push it as
  /// they see fit.
  private mutating func replaceBringer(
    of replica: ReplicaID, _ partition: PartitionID, _ sessions: SessionTable, _ ledger: Ledger, _ step: Step
  ) {
    guard let chain = bringers[replica, partition] else { return }
    let rest = chain.lazy.keys.filter { $0 != chain.eager }.sorted()
    if let next = sessions.bestBringer(of: replica, partition, among: rest, within: 1, ledger) {
      let before = [chain.eager].compactMap { $0 }.filter { !sessions.isAuthor($0, of: replica, ledger) }
      bringers.choose(next, for: replica, of: partition, ratherThan: before, at: step.now)
    } else {
      bringers.release(replica, of: partition, at: step.now)
    }
  }

  /// The session has ended.
  mutating func closed(_ id: SessionID, _ sessions: SessionTable, _ ledger: Ledger, _ step: Step) {
    lagging.closed(id)
    for (partition, replica) in bringers.closed(id) { replaceBringer(of: replica, partition, sessions, ledger, step) }
  }

  /// Somebody may carry a partition no more, or may have lost who brought him something, or wants it from this node.
  mutating func review(_ sessions: SessionTable, _ ledger: Ledger, _ step: Step) {
    for partition in bringers.chosenPartitions {
      bringers.keepLazy(in: partition) { sessions[$0]?.live?.streams[partition] != nil }
      for replica in bringers.chosen(in: partition) {
        guard let eager = bringers[replica, partition]?.eager,
          sessions[eager]?.mayBring(replica, partition, ledger) != true
        else { continue }
        replaceBringer(of: replica, partition, sessions, ledger, step)
      }
    }
  }

  // MARK: What stands still

  /// The peer has named this: of chains of which that is more than is here it is watched whether they go on.
  mutating func noteNamed(
    _ vector: VersionVector, by id: SessionID, of partition: PartitionID, _ sessions: SessionTable, _ ledger: Ledger,
    _ now: MonotonicTime
  ) {
    guard let session = sessions[id], session.choosesBringers, let stream = session.live?.streams[partition],
      let log = ledger.partitions[partition]?.log
    else { return }
    for (replica, position) in vector.entries where stream.isAhead(position, of: replica, log) {
      let received = log.received.sequence(of: replica)
      lagging.note(replica, of: partition, named: position.sequence, received: received, by: id, now)
    }
  }

  /// One who has more of such a chain is asked to push it, what he has left to others, too (Plumtree's graft); and where that helps
  /// nothing, all. That waits for no pull, of which there are few between two comparisons, none over a thin link, and none while
  /// somebody catches this node up.
  mutating func releaseWhatStandsStill(
    _ catchUps: CatchUps, _ sessions: SessionTable, _ ledger: Ledger, _ step: Step
  ) {
    let patience = step.configuration.standingMilliseconds
    let chosen = bringers
    let still = lagging.takeStill(
      for: patience, step.now,
      received: { ledger.partitions[$0]?.log.received.sequence(of: $1) ?? .max },
      isOnItsWay: { chain in
        let eager = chosen[chain.replica, chain.partition]?.eager
        return PushTrees.isOnItsWay(chain, from: eager, for: patience, catchUps, sessions, ledger, step.now)
      })
    for chain in still {
      if chain.isGrafted { release(chain, sessions, ledger, step) } else { graft(chain, sessions, ledger, step) }
    }
  }

  /// Who was chosen is not asked again.
  private mutating func graft(
    _ chain: LaggingChains.Still, _ sessions: SessionTable, _ ledger: Ledger, _ step: Step
  ) {
    let (replica, partition) = (chain.replica, chain.partition)
    let others = chain.namedBy.filter { $0 != bringers[replica, partition]?.eager }
    guard let next = sessions.bestBringer(of: replica, partition, among: others, ledger) else { return }
    bringers.graft(next, to: replica, of: partition, at: step.now)
  }

  /// Who was not asked for his stream has left nothing, and keeps no word.
  private mutating func release(
    _ chain: LaggingChains.Still, _ sessions: SessionTable, _ ledger: Ledger, _ step: Step
  ) {
    let holders = chain.namedBy.filter { sessions[$0]?.pushes(chain.partition, ledger, step.now) == true }
    bringers.release(Set(holders), from: chain.replica, of: chain.partition, at: step.now)
  }

  /// Behind a payload that takes long, or with what somebody catches this node up with. Whoever brings it has named it, or
  /// written it: that is not announced while it is sent.
  private static func isOnItsWay(
    _ chain: LaggingChains.Still, from eager: SessionID?, for milliseconds: UInt64, _ catchUps: CatchUps,
    _ sessions: SessionTable, _ ledger: Ledger, _ now: MonotonicTime
  ) -> Bool {
    let catchUp = catchUps.session(of: chain.partition)
    if let catchUp, chain.namedBy == [catchUp], !catchUps.isSilent(chain.partition, for: milliseconds, now) {
      return true
    }
    return [catchUp, eager].contains { session in
      guard let session, chain.isNamed(by: session) || sessions.isAuthor(session, of: chain.replica, ledger) else {
        return false
      }
      return sessions[session]?.live?.streams[chain.partition]?.incoming.hasPiece(within: milliseconds, now) == true
    }
  }

  // MARK: Telling, and being told

  mutating func tell(_ sessions: inout SessionTable, _ ledger: Ledger, _ step: inout Step) {
    for (id, partition, chains) in bringers.takeUntold(step.now) {
      guard let name = ledger.partitions[partition]?.name,
        let stream = sessions[id]?.pushedStream(partition, name, ledger, step.now)
      else {
        bringers.forgetLazy(id, in: partition)
        continue
      }
      // Equal summaries may have opened it, and no change come since.
      sessions[id]?.live?.streams[partition] = stream
      for choice in chains.choices(of: name) {
        // What it has left to others it sends now, but for what it knows to be here.
        if !choice.eager.isEmpty || !choice.released.isEmpty {
          sessions[id]?.announceGathered(of: partition, ledger, &step)
        }
        step.emit(.send(id, .pushChoice(choice)))
      }
    }
  }

  /// A peer is linked with these no more: what it had from an author among them it may have from anybody now.
  mutating func lost(
    _ neighbours: Set<DeviceMark>, by id: SessionID, _ sessions: SessionTable, _ ledger: Ledger, _ step: Step
  ) {
    for partition in bringers.chosenPartitions {
      for replica in bringers.chosen(in: partition) where bringers[replica, partition]?.eager == id {
        guard ledger.authorMark(of: replica).map(neighbours.contains) != false else { continue }
        replaceBringer(of: replica, partition, sessions, ledger, step)
      }
    }
  }

  /// The peer wants these chains from here. Two that each want one from the other have it from nobody.
  mutating func wanted(
    _ replicas: Set<ReplicaID>, of partition: PartitionID, by id: SessionID, _ sessions: SessionTable, _ ledger: Ledger,
    _ step: Step
  ) {
    for replica in replicas.sorted() where bringers[replica, partition]?.eager == id {
      guard sessions[id]?.mayBring(replica, partition, ledger) != true else { continue }
      replaceBringer(of: replica, partition, sessions, ledger, step)
    }
  }

  /// Nobody wants it any more, and nothing of it is here.
  mutating func forget(_ partition: PartitionID) {
    bringers.forget(partition)
    lagging.forget(partition)
  }
}

extension SessionTable {
  /// He sends what he writes to all, whatever they choose.
  fileprivate func isAuthor(_ id: SessionID, of replica: ReplicaID, _ ledger: Ledger) -> Bool {
    self[id]?.peer == ledger.authority.author(of: replica)
  }

  /// The first of those that are nearest to the chain's author.
  fileprivate func bestBringer(
    of replica: ReplicaID, _ partition: PartitionID, among candidates: [SessionID], within limit: Int = .max,
    _ ledger: Ledger
  ) -> SessionID? {
    let (author, mark) = (ledger.authority.author(of: replica), ledger.authorMark(of: replica))
    var best: (session: SessionID, distance: Int)?
    for id in candidates {
      guard let session = self[id], session.mayBring(replica, partition, ledger) else { continue }
      let distance = session.peer == author ? 0 : mark.map(session.isLinked) == true ? 1 : 2
      if distance <= limit, distance < best?.distance ?? .max { best = (id, distance) }
    }
    return best?.session
  }
}

extension Ledger {
  fileprivate func authorMark(of replica: ReplicaID) -> DeviceMark? {
    authority.author(of: replica).map { DeviceMark(DeviceID.derived(from: $0, cryptography.hash)) }
  }
}

extension PeerSession {
  /// Both choose by whom chains are pushed to them.
  var choosesBringers: Bool { sparing != nil && features & KnownFormats.Feature.pushChoice != 0 }

  /// On which the peer pushes what it has of the partition; nil where it pushes nothing, or keeps no word.
  fileprivate func pushedStream(
    _ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger, _ now: MonotonicTime
  ) -> PeerStream? {
    guard choosesBringers, let stream = heardStream(partition, name, ledger, now), stream.incoming.number != nil else {
      return nil
    }
    return stream
  }

  fileprivate func pushes(_ partition: PartitionID, _ ledger: Ledger, _ now: MonotonicTime) -> Bool {
    ledger.partitions[partition].flatMap { pushedStream(partition, $0.name, ledger, now) } != nil
  }

  /// The peer pushes what it has of the partition, and does not want this chain from here.
  fileprivate func mayBring(_ replica: ReplicaID, _ partition: PartitionID, _ ledger: Ledger) -> Bool {
    guard choosesBringers, !passage.isThin, let live, let stream = live.streams[partition] else { return false }
    return stream.incoming.number != nil && isInScope(partition, stream.name, ledger)
      && !live.choices.isEager(replica, in: partition)
  }

  /// What nobody else is to push to the peer any more, and was left to others, goes out. Before the peer's pull it may not have heard that
  /// its stream was closed, and with it all that it had chosen.
  mutating func hear(_ choice: PushChoice, of partition: PartitionID, _ ledger: Ledger, _ step: Step) {
    guard choosesBringers, let stream = heardStream(partition, choice.name, ledger, step.now),
      stream.outgoing.number != nil, let log = ledger.partitions[partition]?.log
    else { return }
    live?.streams[partition] = stream
    let pushed = live?.choices.hear(choice, of: partition) { log.received[$0] != nil } ?? []
    var starts: [ReplicaID: UInt64] = [:]
    for replica in pushed {
      let start = stream.hasOrIsSent(of: replica) + 1
      if stream.outgoing.left.covers(replica, start) { starts[replica] = start }
    }
    if !starts.isEmpty { live?.takeBackLeft(of: partition, .from(starts), step) }
    live?.leaveWaiting(of: choice.lazy, partition, log)
  }
}
