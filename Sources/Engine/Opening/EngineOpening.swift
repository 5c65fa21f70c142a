import Replication
import Wire

/// Puts an engine's state together from what its store and the mark beside it hold.
struct EngineOpening {
  let identity: EngineIdentity
  let options: EngineOptions
  let store: any LogStore
  let mark: any ReplicaMark

  struct Opened {
    /// The sync core as it was when the store was last written.
    let mesh: Mesh
    /// What counts otherwise than it did then, where the store was judged with another understanding: documents that this
    /// moves are to be built anew.
    let moved: [(PartitionID, LogChange)]
    /// Runs without which the core was put together.
    let damaged: [(partition: PartitionID, run: DamagedRun)]
  }

  func opened() throws -> Opened {
    let statements = try store.statementBytes().map { encoded in
      guard let statement = identity.cryptography.statement(encoded).statement else {
        throw DamagedLog("a stored statement does not hold")
      }
      return statement
    }
    let hash = identity.cryptography.hash
    let limit = options.mesh.statementLimit
    guard let authority = Authority(ofFleet: identity.fleet, statements, limit: limit, hash) else {
      throw EngineError.noFleet
    }
    let local = LocalIdentity(
      fleet: identity.fleet, device: identity.device, instance: options.instance,
      credentials: authority.credentials(of: identity.device), listenPort: options.listenPort)
    var loading = PartitionLoading(store: store, reader: RunReader(identity), authority: authority)
    let mesh = Mesh(
      local: local, authority: authority, statements: statements,
      partitions: try loading.all(),
      interest: try interest(), cryptography: identity.cryptography, configuration: options.mesh)
    let isJudgedAlike = try store.ownFacts().understanding == identity.cryptography.formats.understanding
    return Opened(mesh: mesh, moved: isJudgedAlike ? [] : loading.moved, damaged: loading.damaged)
  }

  /// Pieces of a transfer that was cut are not asked for again.
  func staged() throws -> StagedPayloads { StagedPayloads(try store.stagedShares()) }

  private func interest() throws -> Interest {
    var interest = Interest(prefixes: options.isRelay ? [""] : [])
    for pattern in try store.subscriptions() { interest = interest.adding(Interest(pattern: pattern, identity)) }
    return interest
  }

  /// Own chains, and every reason that store and mark show for not going on under the same replica id (rule C20).
  ///
  /// - Parameter partitions: as they were loaded.
  func ownReplica(_ partitions: PartitionTable) throws -> OwnReplica {
    var own = OwnReplica()
    let facts = try store.ownFacts()
    (own.commits, own.lastTimestamp, own.replica) = (facts.commits, facts.timestamp, facts.replica)
    var evidence = RenewalEvidence.Store(id: store.storeID, ownCommits: facts.commits)
    evidence.isRestored = facts.isRestored
    let causes = try mark.causes(evidence)
    if let replica = facts.replica {
      let (ends, isWhole) = try ends(of: replica.id, partitions)
      (own.ends, own.causes) = (ends, Set(isWhole ? causes : causes + [.corruption]))
      if own.causes.isEmpty { own.resting = try resting(beside: replica, partitions) }
    } else {
      // A store that never had a replica has nothing to fear, but the first one may have gone with the log.
      own.causes = Set(causes).intersection([.log, .reached])
    }
    return own
  }

  /// Ids that rest still: the store has of their chains just what they ended with when they were left. Each change of the present
  /// id is noted in the mark with the number of commits until then, so a store that was put back from before one gives a cause.
  private func resting(beside replica: Incarnation, _ partitions: PartitionTable) throws -> [OwnReplica.Resting] {
    try mark.resting(beside: replica).suffix(OwnReplica.restingLimit).compactMap { noted in
      let (ends, isWhole) = try ends(of: noted.incarnation.id, partitions)
      let resting = OwnReplica.Resting(noted.incarnation, ends, identity.cryptography.hash)
      return isWhole && resting.noted == noted ? resting : nil
    }
  }

  /// Where the chains of an own replica end. Not whole: of some it cannot be told, and a number that is spent must not be used
  /// again.
  private func ends(
    of replica: ReplicaID, _ partitions: PartitionTable
  ) throws -> (ends: [PartitionID: OwnReplica.End], isWhole: Bool) {
    let reader = RunReader(identity)
    var ends: [PartitionID: OwnReplica.End] = [:]
    var isWhole = !partitions.values.contains { $0.log.incompleteChains.contains(replica) }
    let written = partitions.values.filter { $0.log.received[replica] != nil }.map(\.id)
    for partition in written.sorted() {
      let chain = ChainIdentity(fleet: identity.fleet, partition: partition, replica: replica)
      // The marks know the hash of what counts; where that is less than what is here, the log knows the other.
      do {
        guard let last = try store.lastRun(of: chain) else { continue }
        let run = try reader.decode(last, in: partition)
        ends[partition] = OwnReplica.End(sequence: run.last, hash: run.hashAtLast, context: last.context)
      } catch let failure as any StoreFailure {
        guard failure.isOfOneRow else { throw failure }
        isWhole = false
      } catch is RunError {
        isWhole = false
      }
    }
    return (ends, isWhole)
  }
}

extension Authority {
  /// The authority that the statements come to. Nil where they do not hold the genesis of this very fleet.
  package init?(
    ofFleet fleet: FleetID, _ statements: [Statement], limit: Int = Allowance.statementLimit,
    _ hash: @escaping HashFunction
  ) {
    let genesis = statements.first { statement in
      guard case .genesis = statement.body else { return false }
      return FleetID(Digest.of(DomainTag.fleet.bytes + statement.issuer.bytes, hash)) == fleet
    }
    guard let genesis else { return nil }
    self.init(root: genesis.issuer, statements: statements, limit: limit, hash: hash)
  }

  /// A device's membership and, where an admin signed it, that admin's: what a peer needs to believe it.
  fileprivate func credentials(of device: PublicKey) -> [[UInt8]] {
    guard let own = member(of: device).flatMap({ self[$0.id] }) else { return [] }
    let admin = members(of: own.issuer).compactMap { self[$0.id] }.first { $0.issuer == root }
    return [admin?.encoded, own.encoded].compactMap { $0 }
  }
}

extension Interest {
  /// A name, or a prefix followed by `*`; empty for what is neither.
  package init(pattern: Text, _ identity: EngineIdentity) {
    self.init()
    if pattern.utf8.last == UInt8(ascii: "*") {
      prefixes = [Text(String(decoding: pattern.utf8.dropLast(), as: UTF8.self))]
    } else if let name = try? PartitionName(pattern) {
      partitions = [identity.id(of: name)]
    }
  }
}
