/// The sync core of one node: every session, every partition's acceptance state, and what to do next.
///
/// A value without IO: it takes one event at a time and answers with directives in the order in which they are to be
/// carried out. Time, randomness and cryptography are handed in. The node and the simulator run this same code.
///
/// Invariants that the shell relies on and must keep:
/// - ``Directive/apply(_:source:_:)`` is followed by ``Event/committed(_:source:_:)`` once the runs are on disk, before
///   any later event of the same partition that reads the log; nothing is announced to anyone before that (durable before
///   sent).
/// - Statements are stored before the runs that are judged under them.
/// - Messages of one session leave in the order of their directives.
package struct Mesh: Sendable {
  package enum Event: Sendable {
    case opened(
      SessionID, isDialer: Bool, peer: PublicKey, exporter: Digest, passage: Passage = .everything)
    case received(SessionID, Message)
    /// A `runs` message, decoded and checked as far as that needs no state.
    case receivedRuns(SessionID, RunBatch, [IncomingRun])
    /// A payload that was sent ahead of these runs, as ``PeerSession/wasSent(_:byteCount:aheadOf:_:)`` says, is not here.
    case payloadLost(SessionID, RunBatch)
    /// What came on the session is no message of the protocol.
    case violated(SessionID, String, at: BrokenRule.Place? = nil)
    case closed(SessionID)
    /// The session's send queue has room again.
    case writable(SessionID)
    /// The answer to ``Directive/tellWhenSaid(_:)``.
    case said(SessionID)
    /// The answer to ``Directive/load(_:_:have:byteLimit:)``, in order of arrival.
    case loaded(SessionID, PartitionID, [LoggedRun], hasMore: Bool)
    /// All that became durable at once, in the order in which it came.
    case committed([Commit])
    /// Statements that are durable, own ones or `store` directives carried out.
    case statementsStored([Statement])
    /// The wish list changed: `added` and `removed` are what differs.
    case interestChanged(added: Interest, removed: Interest)
    /// What became of a request to join. Who is accepted is a member by now, durably.
    case joinJudged(SessionID, JoinVerdict)
    /// Records of holdings are on disk, own ones or ``Directive/keep(_:from:)`` carried out.
    case holdingsKept([(record: KeptHoldings, source: SessionID?)])
    /// Peers are to say now what they hold of these partitions.
    case holdingsAsked([PartitionName])
    /// What the backend has of a partition, as it was read there.
    case backendRead(PartitionName, VersionVector)
    /// Of chains of these partitions a run was found damaged, or came anew: ``Surroundings/damaged``.
    case damageMoved([PartitionID])
    /// All of the log was read over since the start: from now on ``Surroundings/knowsDamage``.
    case logScrubbed
    /// A run that a ledger kept; hashes, signature, context and payload checked as a peer's are.
    case ledgerRun(PartitionName, DeliveredRun)
    /// The answer to ``Directive/loadChain(_:_:from:_:)``: stored runs that reach `from` or above, ascending, all branches, or as
    /// many of them as ``ChainPurpose`` says. Their contexts may be empty.
    case chainLoaded(PartitionID, ReplicaID, [RunSummary], ChainPurpose)
    case evidenceLoaded(SessionID, PartitionID, ReplicaID, [LoggedRun], hasMore: Bool, isRest: Bool)
    /// Runs of these chains that did not read are put back. With what is stored of those that were incomplete.
    case logMended(PartitionID, Set<ReplicaID>, [StoredHeaders])
    case tick
  }

  /// Runs of one partition that became durable together.
  package struct Commit: Sendable {
    let partition: PartitionID
    /// The session that brought them; nil for own ones.
    let source: SessionID?
    let runs: [LoggedRun]

    package init(_ partition: PartitionID, source: SessionID?, _ runs: [LoggedRun]) {
      (self.partition, self.source, self.runs) = (partition, source, runs)
    }
  }

  package enum Directive: Sendable {
    /// Where too much waits for the session, the shell calls ``Mesh/pause(_:)``; ``Event/writable(_:)`` ends that.
    case send(SessionID, Message)
    case close(SessionID, Goodbye)
    /// The peer is a known member: larger messages are allowed from now on.
    case authenticated(SessionID, DeviceID, Hello)
    /// With how many devices the peer says to be linked, this one among them; where that has changed.
    case linked(SessionID, count: Int)
    /// The peer asked to join and is a member now: it has the time of one, and no larger messages.
    case admitted(SessionID)
    case load(SessionID, PartitionID, have: VersionVector, byteLimit: Int)
    /// To be answered when what the session has said so far is handed over, and ``Mesh/pause(_:)`` called if that is much.
    case tellWhenSaid(SessionID)
    case apply(PartitionID, source: SessionID, [DeliveredRun])
    case store([Statement])
    /// Statements that fell out of the set, to be taken from the store: else they would fill it.
    case discard([Digest])
    /// To be stored with the time at which it came: ``Event/holdingsKept(_:)`` follows.
    case keep(SignedHoldings, from: SessionID?)
    /// To be kept as the sender's, apart from what others send, until a run that names the payload comes on any session.
    case stage(SessionID, StagedKey, PayloadPiece)
    /// An invitation of this device is to be redeemed, on a connection with this exporter value:
    /// ``Event/joinJudged(_:_:)`` answers.
    case redeem(SessionID, JoinRequest, exporter: Digest)
    /// A signed run of this node's own chain came that it has not written (rule C20): a new replica id is due.
    case renewReplica(PartitionName)
    /// To be answered before any later event of this partition, after everything applied so far is stored.
    case loadChain(PartitionID, ReplicaID, from: UInt64, ChainPurpose)
    /// The chain's runs above, on whatever branch: to be shown to a peer.
    case loadEvidence(SessionID, PartitionID, ReplicaID, above: UInt64, isRest: Bool)
    /// Accepted positions moved without a run: documents that these changes touch are to be built anew.
    case rebuild(PartitionID, LogChange)
    /// What is stored of a chain does not fit together.
    case damaged(PartitionID, ReplicaID)
    case note(SessionID?, Note)
  }

  /// For logs and for people; ids and numbers only.
  package enum Note: Sendable, Equatable {
    case sessionReady(DeviceID)
    case peerRefused(String)
    /// Two nodes that dialled one another: one of the two connections is enough, and nothing is wrong.
    case secondConnection
    case ruleBroken(BrokenRule)
    case joinRefused(JoinRefusal)
    case forkSeen(ReplicaID)
    case clockDiffers(milliseconds: Int64)
    case levelWith(PartitionName)
  }

  package let configuration: MeshConfiguration
  package let cryptography: Cryptography
  package var local: LocalIdentity
  package var ledger: Ledger
  package internal(set) var interest: Interest
  package internal(set) var sessions = SessionTable()
  var pulls = PullPolicy()
  /// Partitions with chains that were taken apart since the last tick.
  var unfolded: Set<PartitionID> = []
  var interestCache = InterestCache()
  var neighbours = Neighbours()
  var trees = PushTrees()
  package internal(set) var ownChainClaims = OwnChainClaims()

  package internal(set) var holdings: HoldingsExchange
  package internal(set) var silent = SilentPeers()

  package init(
    local: LocalIdentity, authority: Authority, statements: [Statement], partitions: [PartitionState],
    interest: Interest, cryptography: Cryptography, configuration: MeshConfiguration = MeshConfiguration()
  ) {
    (self.local, self.interest) = (local, interest)
    (self.cryptography, self.configuration) = (cryptography, configuration)
    holdings = HoldingsExchange(configuration.holdings)
    ledger = Ledger(local, cryptography, authority, statements, partitions, configuration.takes)
  }

  package var authority: Authority { ledger.authority }
  package var partitions: PartitionTable { ledger.partitions }
  package var takes: [PublicKey: DeviceTake] { ledger.takes.all }
  package var footprint: Footprint { Footprint(sessions, ledger, interestCache) }

  package mutating func handle(
    _ event: Event, _ surroundings: Surroundings, random: inout some RandomNumberGenerator
  ) -> [Directive] {
    ownChainClaims.look(at: surroundings)
    var step = Step(surroundings, configuration)
    switch event {
    case .opened(let id, let isDialer, let peer, let exporter, let passage):
      open(id, isDialer: isDialer, peer: peer, exporter: exporter, passage, &step)
    case .received(let id, let message):
      do throws(SessionEnd) { try receive(id, message, &step) } catch { fail(id, error, &step) }
    case .receivedRuns(let id, let batch, let runs): receiveRuns(id, batch, runs, &step)
    case .payloadLost(let id, let batch): payloadLost(id, batch, &step)
    case .violated(let id, let reason, let place): fail(id, .breach(reason, at: place), &step)
    case .closed(let id): closed(id, &step)
    case .writable(let id): resume(id, &step)
    case .said(let id): sessions[id]?.said(ledger, &step)
    case .loaded(let id, let partition, let runs, let hasMore):
      sessions[id]?.loaded(partition, runs, hasMore: hasMore, ledger, &step)
    case .committed(let commits): committed(commits, &step)
    case .statementsStored(let statements): statementsStored(statements, &step)
    case .interestChanged(let added, let removed): interestChanged(added, removed, &step)
    case .joinJudged(let id, let verdict): joinJudged(id, verdict, &step)
    case .holdingsKept(let records): holdingsKept(records, &step)
    case .holdingsAsked(let names): withHoldings(&step) { $0.ask(names, $1) }
    case .backendRead(let name, let vector): withHoldings(&step) { $0.readBack(name, vector, $1) }
    case .logScrubbed:
      withHoldings(&step) { exchange, sight in
        exchange.logScrubbed(sight)
        return []
      }
    case .damageMoved(let moved):
      let names = moved.compactMap { ledger.partitions[$0]?.name }
      withHoldings(&step) { exchange, sight in
        exchange.damageMoved(names, sight)
        return []
      }
    case .ledgerRun(let name, let run): receiveFromLedger(name, run, &step)
    case .chainLoaded(let partition, let replica, let runs, let purpose):
      chainLoaded(partition, replica, runs, purpose, &step)
    case .evidenceLoaded(let id, let partition, let replica, let runs, let hasMore, let isRest):
      if isRest { sessions[id]?.live?.isRestAsked = false }
      sessions[id]?.show(runs, hasMore: hasMore, of: replica, partition, ledger, &step)
    case .logMended(let partition, let replicas, let stored): logMended(partition, replicas, stored, &step)
    case .tick: tick(&step, &random)
    }
    if Invariant.isLookedAt { lookAtInvariants() }
    return step.directives
  }

  private func lookAtInvariants() {
    guard ledger.partitions.count <= Invariant.few else { return }
    pulls.lookAtInvariants(sessions)
    sessions.lookAtInvariants(ledger)
    ledger.lookAtInvariants()
  }

  /// Nobody wants it any more, and nothing of it is here.
  package mutating func forget(_ partition: PartitionID) {
    guard let state = ledger.partitions[partition], state.log.holdsNothing else { return }
    // Evidence may wait here for what leads to it.
    for run in state.waiting.ahead.all { sessions[run.session]?.live?.postponedByteCount -= run.byteCount }
    ledger.partitions[partition] = nil
    ledger.unread.remove(partition)
    pulls.catchUps.end(partition)
    trees.forget(partition)
    sessions.forget(partition)
  }

  /// Goes on with whom the core before this one waited for in vain: a disk that refuses runs, which has the core built anew
  /// under the same process, must not let each of them hold own writes up once more. What was still waited for is not:
  /// its sessions were cut from this side, before they could show it.
  package mutating func keepDistrust(of before: Mesh) {
    ownChainClaims = before.ownChainClaims
    ownChainClaims.settle()
  }
}
