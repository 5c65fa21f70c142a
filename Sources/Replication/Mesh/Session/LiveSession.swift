/// What a session has once both sides have said what they know and want: streams of partitions, and the comparison that
/// repairs what they miss.
struct LiveSession: Sendable {
  var comparison: Comparison
  var level = LevelMarks()
  /// What came so far of a vector that travels in parts.
  var partial: PartialVector?
  var told = ToldVectors()
  var streams = InPlaceTable<PartitionID, PeerStream>()
  var turns = SendTurns()
  var relays = RelaysDue()
  /// Where something may be left to who passes it on to the peer.
  var passedOn: Set<PartitionID> = []
  /// Partitions of which chains may be passed over, since the peer takes no branches of who wrote them.
  var passedIn: Set<PartitionID> = []
  /// Partitions in which the chains of such devices were doubted (``PeerSession/doubtFreed(_:_:)``) since the peer last came to take
  /// branches of somebody again.
  var doubtedIn: Set<PartitionID> = []
  /// When comparisons last bounded what is awaited.
  var boundAt: MonotonicTime?
  /// Which chains the peer wants this node to push to it, and which not.
  var choices = PushChoices()
  private var nextStream: UInt64 = 1
  /// Answers of the log that are still to come to what was asked for streams that are not there any more, or were asked for
  /// anew since: what they hold follows on another vector.
  private var voidLoads: [PartitionID: Int] = [:]
  var awaited: AwaitedChains
  /// What evidence that waits takes in memory.
  var postponedByteCount = 0
  /// One of a chain whose search has not ended.
  var evidenceRests: [EvidenceRest] = []
  /// The log is asked for one of them.
  var isRestAsked = false
  /// Where among the forked chains of a partition the next searches begin.
  private var nextSearch = 0
  var handOvers = HandOvers()

  /// Partitions that are not here yet and of which the peer may name something, beyond as many as are here.
  static let awaitedPartitionLimit = 4_096
  /// Searches that one vector, or one pull, makes this node begin: each reads a chain and says up to a few kilobytes. The
  /// rest has its turn with the next.
  static let searchLimit = 16

  init(openedAt: MonotonicTime, _ own: Interest, _ peer: Interest, mustCompareAgain: Bool) {
    comparison = Comparison(mustGoOn: mustCompareAgain)
    awaited = AwaitedChains(countedAt: openedAt)
    level.begin(own, peer)
  }

  mutating func takeStreamNumber() -> UInt64 {
    defer { nextStream += 1 }
    return nextStream
  }

  /// Those of forked chains that are searched now.
  mutating func takeSearches(of forked: [ReplicaID]) -> [ReplicaID] {
    guard forked.count > LiveSession.searchLimit else { return forked }
    let start = nextSearch % forked.count
    nextSearch = start + LiveSession.searchLimit
    return Array((forked[start...] + forked[..<start]).prefix(LiveSession.searchLimit))
  }

  // MARK: Streams

  mutating func close(_ partition: PartitionID) {
    voidLoad(of: partition)
    streams[partition] = nil
    told.forget(partition)
    choices.forget(partition)
    passedIn.remove(partition)
    doubtedIn.remove(partition)
    relays.end(partition)
  }

  /// Nobody wants it any more here.
  mutating func forget(_ partition: PartitionID) {
    (streams[partition], comparison.changed[partition]) = (nil, nil)
    told.forget(partition)
    choices.forget(partition)
    passedIn.remove(partition)
    doubtedIn.remove(partition)
    relays.end(partition)
  }

  /// The peer is linked now with who brought what waits to be passed on to it.
  mutating func leaveWaiting(to neighbours: Set<DeviceMark>, _ ledger: Ledger) {
    for (partition, chains) in relays.waiting(from: neighbours) {
      guard let log = ledger.partitions[partition]?.log else { continue }
      for chain in chains where !choices.isEager(chain.replica, in: partition) {
        streams[partition]?.leaveToOthers(chain.replica, chain.first, through: chain.last, log)
      }
      if streams[partition]?.lacks(log) == false { relays.end(partition) }
    }
  }

  /// The peer has just said that others push it these chains.
  mutating func leaveWaiting(of lazy: Set<ReplicaID>, _ partition: PartitionID, _ log: PartitionLog) {
    let waiting = relays.waiting(of: partition).filter { lazy.contains($0.replica) }
    for chain in waiting where choices.isLazy(chain.replica, in: partition) {
      streams[partition]?.leaveToOthers(chain.replica, chain.first, through: chain.last, log)
    }
    if !waiting.isEmpty, streams[partition]?.lacks(log) == false { relays.end(partition) }
  }

  /// A neighbour of the peer is gone: nothing more is left to others, and what the peer does not announce meanwhile is sent. But for
  /// chains of which it chose who pushes them: it knows itself whom it has lost.
  mutating func bringWhatOthersDid(_ step: Step) {
    for partition in streams.filter({ !$0.value.outgoing.left.isEmpty }).map(\.key).sorted() {
      guard let stream = streams[partition] else { continue }
      let left = stream.outgoing.left.vector.entries.keys
      let free = left.filter { !choices.isLazy($0, in: partition) }
      guard free.count < left.count else {
        takeBackLeft(of: partition, .all, step)
        continue
      }
      let starts = free.reduce(into: [:]) { $0[$1] = stream.hasOrIsSent(of: $1) + 1 }
      if !starts.isEmpty { takeBackLeft(of: partition, .from(starts), step) }
    }
  }

  mutating func takePassedOn(
    by neighbour: DeviceMark, from bringers: Set<DeviceMark>?, of partition: PartitionID, beyond held: VersionVector
  ) -> [LeftRuns.Chain] {
    let known = streams[partition]?.known ?? VersionVector()
    let taken =
      streams[partition]?.outgoing.left.takePassedOn(by: neighbour, from: bringers, beyond: held, known) ?? []
    if streams[partition]?.outgoing.left.isAnyPassedOn != true { passedOn.remove(partition) }
    return taken
  }

  mutating func leave(_ chain: LeftRuns.Chain, of partition: PartitionID, to neighbour: DeviceMark) {
    streams[partition]?.outgoing.left.leave(chain, to: neighbour)
    passedOn.insert(partition)
  }

  /// What is being read now was asked for without it, and is read anew with it.
  mutating func takeBackLeft(of partition: PartitionID, _ back: LeftRuns.Back, _ step: Step) {
    let due = step.now.advanced(byMilliseconds: step.configuration.relayMilliseconds)
    let isLoading = streams[partition]?.outgoing.isLoading == true
    voidLoad(of: partition)
    streams[partition]?.outgoing.takeBackLeft(back)
    if isLoading { turns.putRead(partition) } else { relays.begin(partition, at: due) }
  }

  /// The whole vector once its last part is here; nil until then. Nothing else that carries vectors comes between its parts.
  mutating func join(_ part: PartitionVector, _ carrier: PartialVector.Carrier) throws(SessionEnd) -> PartitionVector? {
    guard var joined = partial else {
      guard part.hasMore else { return part }
      partial = PartialVector(part, in: carrier)
      guard partial != nil else { throw .breach("an empty part of a vector") }
      return nil
    }
    // Taken out while it grows, so that it is not copied.
    partial = nil
    guard joined.append(part, in: carrier) else {
      throw .breach("a part that does not go on from the one before")
    }
    guard part.hasMore else { return joined.whole }
    partial = joined
    return nil
  }

  /// What was asked of the log for the stream as it is now is not sent on the next one. The log answers in order.
  mutating func voidLoad(of partition: PartitionID) {
    if streams[partition]?.outgoing.isLoading == true { voidLoads[partition, default: 0] += 1 }
  }

  /// Whether the log's answer is for a stream that is not there any more.
  mutating func takesAsVoid(_ partition: PartitionID) -> Bool {
    guard let count = voidLoads[partition] else { return false }
    voidLoads[partition] = count > 1 ? count - 1 : nil
    return true
  }
}

/// Entries of chains that are not here in what the peer announced; counted anew before it matters.
struct AwaitedChains: Sendable {
  var count = 0
  var countedAt: MonotonicTime

  /// What the peers of one device may speak of at once: what lies beyond is not kept, and told again by a later comparison.
  static let limit = 65_536
}

/// Chains that one of two may not carry any more, and hands over to the other.
struct HandOvers: Sendable {
  /// The peer is live for certain: what is held of own chains was offered, and what comes to be held is.
  var mayOffer = false
  /// Chains that the peer began to hand over before their right was known here, or their partitions wanted.
  private(set) var early: Set<HandedOverChain> = []
  /// What is being handed over of a payload that travels apart.
  var arriving = ArrivingPayloads()
  /// Probes that were answered; each costs reading a chain.
  private var answered = 0

  /// Whether a probe is answered, with so many partitions here.
  mutating func takesProbe(_ partitions: Int) -> Bool {
    guard answered < ForkSearch.answeredProbeLimit * max(1, partitions) else { return false }
    answered += 1
    return true
  }

  mutating func noteEarly(_ chain: HandedOverChain) {
    if early.count < HandedOverChain.earlyLimit { early.insert(chain) }
  }

  mutating func takeEarly(_ chain: HandedOverChain) { early.remove(chain) }
}

/// A chain in a partition that is not in the common scope.
struct HandedOverChain: Hashable, Comparable, Sendable {
  let name: PartitionName
  let replica: ReplicaID

  /// Of one session; what is beyond is shown on the next.
  static let earlyLimit = 256

  static func < (a: HandedOverChain, b: HandedOverChain) -> Bool { (a.name, a.replica) < (b.name, b.replica) }
}
