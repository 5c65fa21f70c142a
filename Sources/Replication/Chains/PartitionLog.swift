/// What counts of one partition's chains: received, accepted, held and why, forks (rules C4–C6, C13, C22).
///
/// A function of the set of changes learned and of the statements, whatever the order in which either came. In memory a
/// chain costs its tip, unless it is forked or held: then also what lies above the first change that is not plain.
/// Reading storage is the caller's: where memory does not reach, the log answers ``Outcome/needsHeaders(_:)``, leaves
/// everything as it was, and is asked again after ``unfold(_:runs:)``.
package struct PartitionLog: Sendable {
  package let partition: PartitionName
  package internal(set) var authority: Authority
  /// Contiguous content of each chosen branch.
  package internal(set) var received = VersionVector()
  /// The prefix of each chain that counts.
  package internal(set) var accepted = VersionVector()
  /// ``received``, bounded by statements: what a node announces.
  package internal(set) var clipped = VersionVector()
  /// Where what is held above their limits ends, of chains whose work an admin may yet let count. It is not announced, and
  /// shown as forks are.
  package internal(set) var heldAbove = VersionVector()
  /// Lowest sequence before any known fork, per forked chain.
  package internal(set) var forkPoints: [ReplicaID: UInt64] = [:]
  /// Accepted changes of which another re-issue, or the original, takes the effect (rule C22).
  package internal(set) var withoutEffect: [Digest: Dot] = [:]
  /// What of the writes that were issued again is one write to the merge (rule M17).
  package internal(set) var kin = KinTable()
  /// Originals of accepted re-issues, by whose chains these are and by who issued them again.
  var reissuedBranches: [ReissuedBranch: Set<ChainPosition>] = [:]

  /// Chains of which the disk does not give the headers below the trunk's end that were asked for. What their trunks hold
  /// counts on meanwhile. At most all chains that are here.
  package internal(set) var unreadTrunks: Set<ReplicaID> = []
  /// Chains of which stored runs above the trunk did not read when the log was opened. What follows on those is known, and
  /// leads nowhere until they have come anew; another branch may count meanwhile. At most all chains that are stored.
  package internal(set) var incompleteChains: Set<ReplicaID> = []

  /// ``summaryDigest(_:)``, until what it is made of changes.
  private var knownDigest: Digest?
  var chains = ChainTable()
  /// What contexts name above what counted when they came. Nil for a log whose stored contexts were not looked at.
  private var seenAhead: [ReplicaID: UInt64]?
  /// Changes of each chain that memory holds although they do not count: held, or on other branches. Only chains that have
  /// any. What counts is left out: it may be taken apart, and is put together again, by what its author has no part in.
  private(set) var heldCounts: [ReplicaID: Int] = [:]
  var reissues = ReissueTable()
  let genesis: @Sendable (ReplicaID) -> Digest
  /// False only in tests: then every change stays in memory.
  let folds: Bool

  package enum Outcome: Hashable, Sendable {
    case done(LogChange)
    case needsHeaders([HeaderRequest])
    /// Malformed, or one branch too many of a chain whose author forks it without end.
    case ignored
  }

  /// What outlasts a restart. Of the log's chains only what lies above the trunks needs to be learned again.
  package struct Snapshot: Hashable, Sendable {
    package var trunks: [ReplicaID: ChainTrunk]
    package var reissues: Set<Reissue>

    package init(trunks: [ReplicaID: ChainTrunk] = [:], reissues: Set<Reissue> = []) {
      (self.trunks, self.reissues) = (trunks, reissues)
    }
  }

  /// `genesis`: the hash before the first change of a replica in this partition, ``ChainIdentity/genesis(_:)``.
  package init(
    _ partition: PartitionName, authority: Authority, genesis: @escaping @Sendable (ReplicaID) -> Digest
  ) {
    self.init(partition, authority: authority, genesis: genesis, folds: true)
  }

  init(
    _ partition: PartitionName, authority: Authority, genesis: @escaping @Sendable (ReplicaID) -> Digest, folds: Bool
  ) {
    (self.partition, self.authority, self.genesis, self.folds) = (partition, authority, genesis, folds)
    seenAhead = [:]
  }

  /// A log as it was. ``adopt(_:)`` must follow, then ``learn(_:content:)`` of everything stored above the trunks: the
  /// trunks are taken at their word until then.
  package init(
    restoring snapshot: Snapshot, _ partition: PartitionName, root: PublicKey,
    genesis: @escaping @Sendable (ReplicaID) -> Digest
  ) {
    let nobody = Authority(root: root, statements: [Statement]()) { _, _ in false }
    self.init(partition, authority: nobody, genesis: genesis, folds: true)
    seenAhead = nil
    for reissue in snapshot.reissues { reissues.insert(reissue, nobody) }
    chains.reserveCapacity(snapshot.trunks.count)
    var ends = VersionVector()
    ends.reserveCapacity(snapshot.trunks.count)
    for (replica, trunk) in snapshot.trunks.sorted(by: { $0.key < $1.key }) where trunk.sequence > 0 {
      let limits: ChainLimits =
        if case .own(let user) = trunk.documents {
          ChainLimits(bound: .unbounded, reason: .noGrant, free: 0, ownDocuments: [OwnDocumentLimit(user: user)])
        } else {
          .open
        }
      chains[replica] = Chain(trunk: trunk, limits: limits)
      ends[replica] = ChainPosition(sequence: trunk.sequence, tip: trunk.hash.tip)
    }
    // One piece of memory, until they differ: of most partitions nothing comes for long.
    (received, accepted, clipped) = (ends, ends, ends)
  }

  package var snapshot: Snapshot {
    Snapshot(trunks: chains.compactMapValues { $0.trunk.sequence > 0 ? $0.trunk : nil }, reissues: reissues.all)
  }

  /// Chains of which more is here than vectors say, ascending: forked ones, and those held above their limits.
  package var shownApart: [ReplicaID] { Set(forkPoints.keys).union(heldAbove.entries.keys).sorted() }

  /// Changes that memory holds one by one.
  package var nodeCount: Int { chains.values.reduce(0) { $0 + $1.tree.count } }
}

extension PartitionLog {
  /// Takes a verified run, or its headers alone. Twice is as good as once.
  package mutating func learn(_ run: RunSummary, content: Bool = true) -> Outcome {
    guard run.partition == partition, isWellFormed(run) else { return .ignored }
    let requests = content ? originsInTrunk(of: run) : []
    guard requests.isEmpty else { return .needsHeaders(requests) }
    var chain = chains.take(run.replica) ?? newChain(run.replica)
    let outcome = learn(run, content: content, into: &chain)
    store(chain, run.replica)
    guard case .done(var change) = outcome else { return outcome }
    if content { noteSeen(run.context) }
    if reissues.mayBeMoved(by: run, chain) { settleEffects(&change) }
    return .done(change)
  }

  // MARK: What has been seen

  private mutating func noteSeen(_ context: VersionVector) {
    guard seenAhead != nil else { return }
    for (replica, position) in context.exceeding(accepted) {
      let before = seenAhead?[replica] ?? 0
      seenAhead?[replica] = max(position.sequence, before)
    }
  }

  /// Nothing here has seen these changes, whatever statements say or said. False where that is not known.
  func isUnseen(_ replica: ReplicaID, from first: UInt64) -> Bool {
    seenAhead.map { first > $0[replica] ?? 0 } ?? false
  }

  /// Whether contexts that came before this log was opened are known.
  package var knowsContexts: Bool { seenAhead != nil }

  /// The contexts of everything stored, joined.
  package mutating func learnContexts(_ joined: VersionVector) {
    if seenAhead == nil { seenAhead = [:] }
    noteSeen(joined)
  }

  private mutating func learn(_ run: RunSummary, content: Bool, into chain: inout Chain) -> Outcome {
    var change = LogChange()
    let pin = reissues.pins[run.replica] ?? .max
    if mayFold(run.replica), content, run.last < pin, chain.extendTrunk(by: run) {
      change.acceptance = [
        AcceptanceChange(replica: run.replica, shared: run.first - 1, lost: [], gained: run.hashes)
      ]
      return .done(change)
    }
    guard chain.matchesTrunk(run) == .agrees else {
      // Whoever shows another branch of it shows that again.
      guard !unreadTrunks.contains(run.replica) else { return .ignored }
      return .needsHeaders([
        HeaderRequest(replica: run.replica, sequences: run.first...chain.trunk.sequence)
      ])
    }
    guard chain.admits(run) else { return .ignored }
    let forkPoint = chain.forkPoint
    let moved: AcceptanceChange?
    if content, chain.endsBefore(run) {
      moved = chain.extend(by: run, run.replica)
    } else {
      if chain.insert(run, content: content) { change.branchedReplica = run.replica }
      moved = chain.settle(run.replica)
    }
    if content { rememberReissues(of: run) }
    if let moved { change.acceptance = [moved] }
    if chain.forkPoint != forkPoint { change.forkedReplica = run.replica }
    if mayFold(run.replica) { chain.fold(below: reissues.pins[run.replica]) }
    return .done(change)
  }

  /// A chain that is incomplete stays as it is above its trunk: the next opening begins there to look for what did not read.
  private func mayFold(_ replica: ReplicaID) -> Bool { folds && !incompleteChains.contains(replica) }

  /// Memory would hold the run's changes one by one, for they do not count at the end of a plain chain.
  func wouldHold(_ run: RunSummary) -> Bool {
    var chain = chains[run.replica] ?? newChain(run.replica)
    return run.last >= reissues.pins[run.replica] ?? .max || !mayFold(run.replica) || !chain.extendTrunk(by: run)
  }

  /// Goes over to another set of statements. So do chains of ``unreadTrunks``, but for what their trunks hold.
  package mutating func adopt(_ authority: Authority) -> Outcome {
    let limits = chains.keys.map { ($0, self.limits(of: $0, under: authority)) }
    let requests = PartitionLog.merged(
      limits.compactMap { replica, limits in chains[replica].flatMap { inDoubt($0, replica, limits) } }
        + reissues.all.compactMap { originInTrunk($0.origin, of: $0.dot.replica, authority) })
    guard requests.isEmpty else { return .needsHeaders(requests) }

    self.authority = authority
    reissues.regroup(authority)
    var change = LogChange()
    for (replica, limits) in limits {
      guard isMoved(replica, by: limits), var chain = chains.take(replica) else { continue }
      chain.limits = limits
      if let moved = chain.settle(replica) { change.acceptance.append(moved) }
      if mayFold(replica) { chain.fold(below: reissues.pins[replica]) }
      store(chain, replica)
    }
    change.acceptance.sort { $0.replica < $1.replica }
    settleEffects(&change)
    return .done(change)
  }

  /// Nothing is known here of these replicas, and nobody has issued anything again: who declares them moves nothing.
  func isUntouched(by declared: Set<ReplicaID>) -> Bool {
    reissues.all.isEmpty && declared.allSatisfy { chains[$0] == nil }
  }

  /// Goes over to a set of statements that says nothing new of any chain here.
  mutating func takeOver(_ authority: Authority) { self.authority = authority }

  /// Answers ``Outcome/needsHeaders(_:)`` with the chain's stored runs that hold any of the requested sequences, in any
  /// order, other branches among them or not.
  package mutating func unfold(_ request: HeaderRequest, runs: [RunSummary]) throws(UnfoldError) {
    guard var chain = chains[request.replica] else { return }
    try chain.unfold(from: request.sequences.lowerBound, runs)
    store(chain, request.replica)
  }

  /// Folds again what was unfolded to judge a run that then was not learned.
  package mutating func fold(_ replica: ReplicaID) {
    guard mayFold(replica), var chain = chains[replica] else { return }
    chain.fold(below: reissues.pins[replica])
    store(chain, replica)
  }
}

extension PartitionLog {
  /// Stands for what two nodes must hold alike: the vector that is announced, what is known of forks, and what is held
  /// above limits. Nil where there is nothing. Costs a hash over all of it only after a change.
  mutating func summaryDigest(_ hash: HashFunction) -> Digest? {
    guard !clipped.isEmpty || !heldAbove.isEmpty else { return nil }
    if let knownDigest {
      Invariant.check(knownDigest == makeDigest(hash), "a digest is not of what it stands for")
      return knownDigest
    }
    knownDigest = makeDigest(hash)
    return knownDigest
  }

  private func makeDigest(_ hash: HashFunction) -> Digest {
    var digest = forkProofs.digest(beside: clipped.digest(.vector, hash), hash)
    if !heldAbove.isEmpty { digest = heldAbove.digest(besideHeld: digest, hash) }
    return digest
  }

  func newChain(_ replica: ReplicaID) -> Chain {
    Chain(
      trunk: ChainTrunk(sequence: 0, hash: genesis(replica), documents: .none),
      limits: authority.limits(of: replica, in: partition))
  }

  private mutating func store(_ chain: Chain, _ replica: ReplicaID) {
    guard chain.trunk.sequence > 0 || !chain.tree.isEmpty else {
      chains[replica] = nil
      return
    }
    Invariant.check(chain.isInOrder, "of a chain more counts than is received, or is received than is known")
    Invariant.check(
      !chain.hasFallen(below: (received.sequence(of: replica), accepted.sequence(of: replica))),
      "a chain falls that neither forked nor was limited")
    chains[replica] = chain
    let heldCount = chain.heldCount
    if heldCounts[replica] ?? 0 != heldCount { heldCounts[replica] = heldCount > 0 ? heldCount : nil }
    received[replica] = chain.position(at: chain.received)
    accepted[replica] = chain.position(at: chain.accepted)
    let offered = chain.position(at: min(chain.received, chain.limits.bound.sequence))
    let above = positionHeldAbove(chain, replica)
    if chain.isForked || clipped[replica] != offered || heldAbove[replica] != above { knownDigest = nil }
    (clipped[replica], heldAbove[replica]) = (offered, above)
    if let forkPoint = chain.forkPoint { forkPoints[replica] = forkPoint }
  }

  /// Whether what lies above a limit is held for a raise may move though the limit stays.
  private func isMoved(_ replica: ReplicaID, by limits: ChainLimits) -> Bool {
    guard let chain = chains[replica] else { return false }
    return chain.limits != limits || heldAbove[replica] != positionHeldAbove(chain, replica)
  }

  private func positionHeldAbove(_ chain: Chain, _ replica: ReplicaID) -> ChainPosition? {
    guard chain.received > chain.limits.bound.sequence, authority.isHeldForRaise(replica, chain.limits.reason) else {
      return nil
    }
    return chain.position(at: chain.received)
  }

  /// Runs that begin above are shown to nobody: what lies above a limit and is not held for a raise, as where somebody else may
  /// have the author's key (rule C15). Branches of a forked chain may be longer than the one that is chosen.
  package func shownEnd(of replica: ReplicaID) -> UInt64 {
    heldAbove[replica] == nil && forkPoints[replica] == nil ? clipped.sequence(of: replica) : .max
  }

  private func limits(of replica: ReplicaID, under authority: Authority) -> ChainLimits {
    let limits = authority.limits(of: replica, in: partition)
    guard unreadTrunks.contains(replica), let trunk = chains[replica]?.trunk else { return limits }
    return limits.keeping(trunk)
  }

  private func inDoubt(_ chain: Chain, _ replica: ReplicaID, _ limits: ChainLimits) -> HeaderRequest? {
    chain.trunk.firstInDoubt(under: limits).map {
      HeaderRequest(replica: replica, sequences: $0...chain.trunk.sequence)
    }
  }

  /// Originals that the trunk has swallowed, so that their hash cannot be compared.
  private func originsInTrunk(of run: RunSummary) -> [HeaderRequest] {
    PartitionLog.merged(
      run.facts.compactMap { $0.origin.flatMap { originInTrunk($0, of: run.replica, authority) } })
  }

  private func originInTrunk(_ origin: ChangeOrigin, of replica: ReplicaID, _ authority: Authority) -> HeaderRequest? {
    guard ReissueTable.counts(origin, in: replica, authority), let chain = chains[origin.dot.replica],
      origin.dot.sequence <= chain.trunk.sequence, !unreadTrunks.contains(origin.dot.replica)
    else { return nil }
    return HeaderRequest(replica: origin.dot.replica, sequences: origin.dot.sequence...chain.trunk.sequence)
  }

  /// One request per chain, the widest.
  private static func merged(_ requests: [HeaderRequest]) -> [HeaderRequest] {
    Dictionary(requests.map { ($0.replica, $0) }) {
      $0.sequences.lowerBound < $1.sequences.lowerBound ? $0 : $1
    }
    .values.sorted { $0.replica < $1.replica }
  }
}
