/// What peers say, without a signature, of chains that this node writes itself (rule C20).
///
/// A claim gives no reason for a new replica id: it costs a member nothing but a vector entry. It gives reason to wait: own
/// writes of the partition are held until the signed run is here that the claim is about, or ``holdMilliseconds`` are
/// over. A device whose claim nothing followed on is not waited for again for ``distrustMilliseconds``.
package struct OwnChainClaims: Sendable {
  struct Claim: Sendable, Equatable {
    let session: SessionID
    let device: DeviceID
    /// What it is about.
    let replica: ReplicaID
    let since: MonotonicTime
  }

  /// How long own writes wait for what a claim is about.
  package static let holdMilliseconds: UInt64 = 2_000
  /// How long a device is not waited for whose claim nothing followed on.
  package static let distrustMilliseconds: UInt64 = 86_400_000
  /// Partitions in which own writes are held at once.
  static let claimLimit = 256
  /// Devices whose word is ignored; the longest ignored gives way.
  static let distrustLimit = 1_024

  /// The first claim of each partition: those that follow neither make its time longer nor are judged.
  private(set) var open: [PartitionID: Claim] = [:]
  private var distrusted: [DeviceID: MonotonicTime] = [:]

  package init() {}

  package var isEmpty: Bool { open.isEmpty }
  var distrustedCount: Int { distrusted.count }

  /// True where own writes of the partition wait.
  package func holds(_ partition: PartitionID, _ now: MonotonicTime) -> Bool {
    open[partition].map { now.millisecondsSince($0.since) < OwnChainClaims.holdMilliseconds } ?? false
  }

  /// When the first of them comes to its end.
  package var nextExpiry: MonotonicTime? {
    open.values.map(\.since).min()?.advanced(byMilliseconds: OwnChainClaims.holdMilliseconds)
  }

  /// Answers whether own writes begin to wait with it.
  mutating func add(_ claim: Claim, of partition: PartitionID) -> Bool {
    guard open[partition] == nil, open.count < OwnChainClaims.claimLimit, !ignores(claim.device, claim.since) else {
      return false
    }
    open[partition] = claim
    return true
  }

  private func ignores(_ device: DeviceID, _ now: MonotonicTime) -> Bool {
    distrusted[device].map { now.millisecondsSince($0) < OwnChainClaims.distrustMilliseconds } ?? false
  }

  /// Before anything is judged: claims about a chain that is not gone on with are void.
  mutating func look(at surroundings: Surroundings) {
    guard !open.isEmpty else { return }
    guard !surroundings.isRenewalDue else { return settle() }
    open = open.filter { surroundings.isOwn($0.value.replica) }
  }

  /// What they are about is here, or the chains are not gone on with: nothing is left to wait for.
  mutating func settle() { open = [:] }

  /// The first claim of each device that nothing followed on in time, in order of their sessions. Whose they are is not waited
  /// for any more, neither for what else it claimed, in other partitions or on other sessions.
  mutating func takeLapsed(_ now: MonotonicTime) -> [Claim] {
    let lapsed = open.filter { !holds($0.key, now) }
    for (partition, claim) in lapsed {
      open[partition] = nil
      ignore(claim.device, now)
    }
    if !lapsed.isEmpty { open = open.filter { !ignores($0.value.device, now) } }
    var charged: Set<DeviceID> = []
    return lapsed.values.sorted { $0.session < $1.session }.filter { charged.insert($0.device).inserted }
  }

  private mutating func ignore(_ device: DeviceID, _ now: MonotonicTime) {
    if distrusted[device] == nil, distrusted.count >= OwnChainClaims.distrustLimit,
      let longest = distrusted.min(by: { ($0.value, $0.key) < ($1.value, $1.key) })
    {
      distrusted[longest.key] = nil
    }
    distrusted[device] = now
  }

  // MARK: What begins and ends them

  /// A peer's word on a chain of this node's, which may rest. Where it names more than was written here, or something else, the
  /// signed runs are to be fetched from that peer at once. Answers whether own writes begin to wait for them.
  mutating func judge(
    _ position: ChainPosition, of replica: ReplicaID, own: ChainPosition?, of partition: PartitionID,
    from session: PeerSession, _ step: Step
  ) -> Bool {
    guard step.surroundings.isOwn(replica), !step.surroundings.isRenewalDue,
      RenewalEvidence.isClaim(
        position, beyond: own?.sequence ?? 0, tip: own?.sequence == position.sequence ? own?.tip : position.tip)
    else { return false }
    let claim = Claim(session: session.id, device: session.device, replica: replica, since: step.now)
    return add(claim, of: partition)
  }

  /// A run under a replica of this node that it has not written: somebody else writes as it does, or it has lost what it wrote.
  /// Of one that rests this speaks against all of its ids. Its signature is checked.
  mutating func found(_ run: DeliveredRun, _ name: PartitionName, _ step: inout Step) {
    guard step.surroundings.isOwn(run.incoming.replica) else { return }
    settle()
    step.emit(.renewReplica(name))
  }

  /// A run of another replica of this device that issues again what this node has not written under its own: a copy of it
  /// did. To write on under that id would put other changes under the numbers by which the re-issues name their originals,
  /// and list elements would go by the names of those.
  mutating func foundReissue(_ run: RunSummary, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard run.signer == ledger.device, let log = ledger.partitions[partition]?.log,
      step.surroundings.ownReplicas.contains(where: { run.replica != $0 && log.isOfOtherHistory(run, of: $0) })
    else { return }
    settle()
    step.emit(.renewReplica(run.partition))
  }
}
