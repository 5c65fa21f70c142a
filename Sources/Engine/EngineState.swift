import Replication

/// The state of a node in memory: the sync core, its own chains, its subscriptions.
///
/// Memory may run ahead of the disk within one transaction alone; ``Checkpoint`` puts back what did not get there.
package final class EngineState {
  package let identity: EngineIdentity
  package let options: EngineOptions
  package let store: any LogStore
  let mark: any ReplicaMark
  package let clock: any EngineClock

  package internal(set) var mesh: Mesh
  package internal(set) var own: OwnReplica
  /// Pieces of payloads that wait for the rest, or for their run.
  var staged: StagedPayloads
  /// What waited whole and was found to be spoiled when a session brought its run. It stays when the run was taken since, until
  /// another is found after the session's end.
  var spoiledShares: [SessionID: Set<StagedKey>] = [:]
  package internal(set) var subscriptions: Set<Text>
  package internal(set) var invitations: InvitationBook
  var random: any RandomNumberGenerator
  /// What counts otherwise since the store was last written, by an earlier build: the first transaction builds the documents
  /// anew that this moves.
  package internal(set) var moved: [(PartitionID, LogChange)]
  /// Documents that do not read.
  package internal(set) var quarantine = Quarantine()
  /// Runs that the log does not give as they were written.
  package internal(set) var damagedRuns = DamagedRuns()
  package internal(set) var scrub = LogScrub()
  /// As the store has it: ``OwnFacts/isLogDamaged``.
  var isLogDamaged: Bool
  /// So it was at the start.
  let wasLogDamaged: Bool
  /// Documents are to be made anew that the log could not give.
  package internal(set) var owesDocuments = false
  /// Partitions whose logs are to be walked through in search of the runs that stand in the way.
  var unexamined: [PartitionID] = []
  /// Whether the store says what this build understands.
  var hasNotedUnderstanding: Bool
  /// For each partition what counted of it when followers of commits were last told of it.
  var toldAccepted: [PartitionID: VersionVector]

  init(_ identity: EngineIdentity, _ options: EngineOptions, _ ports: EnginePorts) throws {
    (self.identity, self.options) = (identity, options)
    (store, mark, clock, random) = (ports.store, ports.mark, ports.clock, ports.random)
    let opening = EngineOpening(identity: identity, options: options, store: ports.store, mark: ports.mark)
    let opened = try opening.opened()
    (mesh, moved) = (opened.mesh, opened.moved)
    own = try opening.ownReplica(mesh.partitions)
    staged = try opening.staged()
    let understanding = identity.cryptography.formats.understanding
    hasNotedUnderstanding = try ports.store.ownFacts().understanding == understanding
    isLogDamaged = try ports.store.ownFacts().isLogDamaged
    wasLogDamaged = isLogDamaged
    subscriptions = Set(try ports.store.subscriptions())
    invitations = InvitationBook(try ports.store.invitations())
    toldAccepted = mesh.partitions.mapValues(\.log.accepted)
    mesh.restoreHoldings(try store.holdings(), surroundings)
    try loadOwed()
    noteDamaged(opened)
  }

  private func noteDamaged(_ opened: EngineOpening.Opened) {
    for (partition, run) in opened.damaged { damagedRuns.note(run, in: partition) }
  }

  /// Reads the state anew from the store. Causes for a new replica that came up at run time stay, and so does who is not
  /// waited for.
  func readAgain() throws {
    let opening = EngineOpening(identity: identity, options: options, store: store, mark: mark)
    let (before, meshBefore) = (own, mesh)
    let opened = try opening.opened()
    (mesh, moved) = (opened.mesh, opened.moved)
    mesh.keepDistrust(of: meshBefore)
    own = try opening.ownReplica(mesh.partitions)
    staged = try opening.staged()
    mesh.restoreHoldings(try store.holdings(), surroundings)
    let understanding = identity.cryptography.formats.understanding
    hasNotedUnderstanding = try store.ownFacts().understanding == understanding
    subscriptions = Set(try store.subscriptions())
    invitations = InvitationBook(try store.invitations())
    own.causes.formUnion(before.causes)
    (own.renewedAt, own.contested) = (before.renewedAt, before.contested)
    try loadOwed()
    noteDamaged(opened)
    // The core that was to correct its words about them is gone.
    damagedRuns.moveAll()
  }

  /// Hands an event to the core and answers with what it wants done.
  func handle(_ event: Mesh.Event) -> [Mesh.Directive] {
    mesh.handle(event, surroundings, random: &random)
  }

  /// Lent, since it is asked at every turn: what a class holds is otherwise copied before it is asked.
  var nextDeadline: MonotonicTime? {
    func deadline(of mesh: inout Mesh) -> MonotonicTime? { mesh.nextDeadline }
    return deadline(of: &mesh)
  }

  /// Lent as well, for each change that is written here, and each run that comes.
  func look<Answer>(at partition: PartitionID, _ body: (PartitionState) -> Answer) -> Answer? {
    func look(at mesh: inout Mesh) -> Answer? { mesh.ledger.partitions.look(at: partition, body) }
    return look(at: &mesh)
  }

  /// What the core is told of everything else with each event.
  var surroundings: Surroundings {
    Surroundings(
      now: clock.now, wallMilliseconds: clock.wallMilliseconds, ownReplica: own.replica?.id,
      restingReplicas: own.resting.map(\.noted.incarnation.id), isRenewalDue: own.isRenewalDue, staged: staged,
      damaged: damagedRuns.chains, knowsDamage: knowsDamage)
  }

  /// Where it was damaged before the start, or a part of it is not given, more of it may be damaged than is known.
  var knowsDamage: Bool { (!wasLogDamaged || scrub.wholePassCount > 0) && scrub.failure == nil }

  /// A subscription that is stored, or gone from the store. Answers what it speaks of.
  func note(_ pattern: Text, isWanted: Bool) -> Interest {
    let interest = Interest(pattern: pattern, identity)
    if isWanted {
      subscriptions.insert(pattern)
      if let name = interest.partitions.isEmpty ? nil : try? PartitionName(pattern) { _ = mesh.ledger.begin(name) }
    } else {
      subscriptions.remove(pattern)
    }
    return interest
  }

  /// Own writes of the partition wait a little: soon it is known under which replica id they may stand (rule C20).
  func mustHold(_ name: PartitionName) -> Bool {
    guard own.isRenewalDue || !mesh.ownChainClaims.isEmpty else { return false }
    let (partition, now) = (identity.id(of: name), clock.now)
    return own.isRenewalDue ? own.isBarred(partition, now) : mesh.ownChainClaims.holds(partition, now)
  }

  /// The context goes on from an earlier one, but where the chain that it names has forked (rule C3).
  func hasSeen(_ context: VersionVector, after earlier: VersionVector, in partition: PartitionID) -> Bool {
    let log = mesh.partitions[partition]?.log
    return earlier.exceeding(context).allSatisfy { log?.forkPoints[$0.0] != nil }
  }

  /// At the end of a transaction: a start takes the marks at their word.
  func lookAtMarks(of partitions: Set<PartitionID>, _ transaction: any LogTransaction) throws {
    for partition in partitions {
      guard let log = mesh.partitions[partition]?.log, log.received.count <= Invariant.few else { continue }
      for chain in try transaction.logChains(of: partition) {
        Invariant.check(
          chain.marks.accepted.sequence <= log.accepted.sequence(of: chain.replica),
          "the store marks as counting what does not count")
        Invariant.check(
          log.incompleteChains.contains(chain.replica)
            || chain.marks.received.sequence
              <= max(log.received.sequence(of: chain.replica), chain.marks.accepted.sequence),
          "the store marks as received what is not here")
      }
    }
  }

  /// Nothing can be written there for a while, since another replica id was drawn just now.
  package func mustWait(for partition: PartitionID, _ name: PartitionName) -> Bool {
    ReplicaRenewal(self).isPutOff(for: partition, name)
  }

  func name(_ partition: PartitionID) -> String { mesh.partitions[partition]?.name.text.string ?? "?" }

  /// Partitions of which nothing is stored and that nothing asks for once `pattern` is no longer wanted.
  func unused(without pattern: Text) -> [PartitionID] {
    var interest = Interest(prefixes: options.isRelay ? [""] : [])
    for other in subscriptions where other != pattern { interest = interest.adding(Interest(pattern: other, identity)) }
    return mesh.partitions.values.filter {
      $0.log.holdsNothing && !interest.wants($0.id, name: $0.name)
    }.map(\.id).sorted()
  }
}

extension EngineState {
  /// A copy of what own writes are about to change, for a transaction that fails.
  struct Checkpoint {
    fileprivate let own: OwnReplica
    /// The partitions that are written to; nil for one that is not there yet and is forgotten again.
    fileprivate let partitions: [PartitionID: PartitionState?]
    /// The whole core, where a new replica id is due: its declaration changes more than the partitions written to.
    fileprivate let mesh: Mesh?
    fileprivate let quarantine: Quarantine
  }

  func checkpoint(_ names: some Sequence<PartitionName>) -> Checkpoint {
    var partitions: [PartitionID: PartitionState?] = [:]
    var mayDraw = own.isRenewalDue
    let renewal = ReplicaRenewal(self)
    for name in Set(names) {
      let id = identity.id(of: name)
      partitions[id] = .some(mesh.ledger.partitions[id])
      mayDraw = mayDraw || renewal.mustChange(for: id, name)
    }
    return Checkpoint(own: own, partitions: partitions, mesh: mayDraw ? mesh : nil, quarantine: quarantine)
  }

  func restore(_ checkpoint: Checkpoint) {
    (own, quarantine) = (checkpoint.own, checkpoint.quarantine)
    if let mesh = checkpoint.mesh { self.mesh = mesh } else { mesh.ledger.restore(checkpoint.partitions) }
  }
}
