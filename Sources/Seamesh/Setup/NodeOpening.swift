import Identity
import Replication
import Storage
import Synchronization
import Transport
import Wire

/// Puts a node together from what its directory holds. Runs on the engine thread, which then owns the store.
struct NodeOpening {
  let files: NodeFiles
  let configuration: NodeConfiguration

  static var cryptography: (SigningKey, FleetID) -> Cryptography {
    { key, fleet in
      let verifier = StatementVerifier(fleet: fleet)
      return Cryptography(
        hash: SHA256.hash, verify: Ed25519.verify, sign: key.sign, statement: { try? verifier.verify($0) })
    }
  }

  /// Statements that the store holds; each was checked before it came there, and is again.
  static func statements(_ store: Store, _ fleet: FleetID) throws -> [Statement] {
    let verifier = StatementVerifier(fleet: fleet)
    return try store.statements().map { try verifier.verify($0.encoded) }
  }

  static func authority(_ statements: [Statement], _ fleet: FleetID) throws(NodeError) -> Authority {
    let genesis = statements.first { statement in
      guard case .genesis = statement.body else { return false }
      return FleetID(root: statement.issuer) == fleet
    }
    guard let genesis else {
      throw NodeError(
        .failed,
        "the store holds nothing of this fleet: put a backup back with seamesh restore, or join in a new directory")
    }
    return Authority(root: genesis.issuer, statements: statements, hash: SHA256.hash)
  }

  /// The sync core as it was when the store was last written.
  static func mesh(
    _ store: Store, _ files: NodeFiles, _ configuration: NodeConfiguration, instance: UUIDValue, listenPort: UInt16
  ) throws -> Mesh {
    let statements = try statements(store, files.fleet)
    let authority = try authority(statements, files.fleet)
    let cryptography = cryptography(files.deviceKey, files.fleet)
    let local = LocalIdentity(
      fleet: files.fleet, device: files.deviceKey.publicKey, instance: instance,
      credentials: credentials(of: files.deviceKey.publicKey, statements, authority), listenPort: listenPort)
    let partitions = try PartitionLoading(store: store, files: files, authority: authority).all()
    let interest = try interest(store, configuration, files.fleet)
    return Mesh(
      local: local, authority: authority, statements: statements, partitions: partitions, interest: interest,
      cryptography: cryptography, configuration: configuration.mesh)
  }

  /// This device's membership and, where an admin signed it, that admin's.
  private static func credentials(
    of device: PublicKey, _ statements: [Statement], _ authority: Authority
  ) -> [[UInt8]] {
    func membership(of device: PublicKey) -> Statement? {
      authority.member(of: device).flatMap { authority[$0.id] }
    }
    guard let own = membership(of: device) else { return [] }
    guard own.issuer != authority.root, own.issuer != authority.admissionKey, let admin = membership(of: own.issuer)
    else {
      return [own.encoded]
    }
    return [admin.encoded, own.encoded]
  }

  static func interest(_ store: Store, _ configuration: NodeConfiguration, _ fleet: FleetID) throws -> Interest {
    var interest = Interest(prefixes: configuration.isRelay ? [""] : [])
    for pattern in try store.subscriptions() { interest = interest.adding(Interest(pattern: pattern, fleet)) }
    return interest
  }

  /// Own chains, and every reason that the store alone shows for not going on under the same replica id (rule C20).
  ///
  /// `isAtStart`: the log is as the last start left it. Later it is this one's.
  static func ownReplica(_ store: Store, _ files: NodeFiles, isAtStart: Bool) throws -> OwnReplica {
    var own = OwnReplica()
    own.commits = try store.integer(.ownCommits) ?? 0
    own.lastTimestamp = HybridTimestamp(rawValue: try store.integer(.timestamp) ?? 0)
    if let id = try store.meta(.replica).flatMap({ ReplicaID($0) }),
      let nonce = try store.meta(.replicaNonce).flatMap({ UUIDValue($0) })
    {
      own.replica = ReplicaSidecar.Incarnation(id: id, nonce: nonce)
      try loadEnds(of: id, store, files, into: &own)
    }
    if own.replica != nil { own.causes.formUnion(try renewalCauses(store, files, isAtStart: isAtStart)) }
    return own
  }

  /// What store and sidecar show of a copy that came back, or of something that went.
  static func renewalCauses(_ store: Store, _ files: NodeFiles, isAtStart: Bool) throws -> [RenewalCause] {
    var evidence = RenewalEvidence.Store(id: store.id, ownCommits: try store.integer(.ownCommits) ?? 0)
    evidence.starts = try store.integer(.starts) ?? 0
    evidence.wasLogEmpty = isAtStart && store.wasLogEmpty
    evidence.isRestored = try store.meta(.restored) != nil
    let host = try HostFacts.current(database: store.database.path)
    return try ReplicaSidecar.load(from: files.directory).renewalCauses(store: evidence, host: host)
  }

  private static func loadEnds(
    of replica: ReplicaID, _ store: Store, _ files: NodeFiles, into own: inout OwnReplica
  ) throws {
    let partitions = Dictionary(try store.partitions().map { ($0.number, $0.id) }) { first, _ in first }
    for chain in try store.chains() where chain.replica == replica {
      guard let partition = partitions[chain.number.partition], let last = try store.lastRun(of: chain.number) else {
        continue
      }
      // The marks know the hash of what counts; where that is less than what is here, the log knows the other.
      do throws(RunError) {
        let run = try RunCodec.decode(last.body[...], fleet: files.fleet, partition: partition, hash: SHA256.hash)
        own.ends[partition] = OwnReplica.End(sequence: run.last, hash: run.hashAtLast, context: last.context)
      } catch {
        own.causes.insert(.corruption)
      }
    }
  }
}

extension Interest {
  /// A name, or a prefix followed by `*`.
  init(pattern: Text, _ fleet: FleetID) {
    self.init()
    if pattern.string.utf8.last == UInt8(ascii: "*") {
      prefixes = [Text(String(decoding: pattern.utf8.dropLast(), as: UTF8.self))]
    } else if let name = try? PartitionName(pattern) {
      partitions = [name.id(fleet: fleet, hash: SHA256.hash)]
    }
  }
}

/// Restores every partition's acceptance state: trunks at their word, then everything above them learned anew.
struct PartitionLoading {
  let store: Store
  let files: NodeFiles
  let authority: Authority

  func all() throws -> [PartitionState] {
    let chains = Dictionary(grouping: try store.chains(), by: \.number.partition)
    return try store.partitions().compactMap { stored in
      guard let name = stored.name else { return nil }
      return PartitionState(
        id: stored.id, name: name,
        log: try log(stored.id, name, chains[stored.number] ?? [], try store.reissues(in: stored.number)))
    }
  }

  private func log(
    _ id: PartitionID, _ name: PartitionName, _ chains: [StoredChain], _ reissues: Set<Reissue>
  ) throws -> PartitionLog {
    let fleet = files.fleet
    let trunks = chains.filter { $0.accepted.sequence > 0 }.map { chain in
      (chain.replica, ChainTrunk(sequence: chain.accepted.sequence, hash: chain.accepted.hash, documents: .any))
    }
    var log = PartitionLog(
      restoring: PartitionLog.Snapshot(trunks: Dictionary(trunks) { first, _ in first }, reissues: reissues), name,
      root: authority.root
    ) { ChainIdentity(fleet: fleet, partition: id, replica: $0).genesis(SHA256.hash) }
    try settle(&log, id, name, chains) { $0.adopt(authority) }
    for chain in chains where chain.received.sequence > chain.accepted.sequence || chain.holdReason != nil {
      for run in try store.runs(of: chain.number, after: chain.accepted.sequence, byteLimit: .max) {
        let summary = try summary(run, id, name)
        try settle(&log, id, name, chains) { $0.learn(summary) }
      }
    }
    return log
  }

  /// Answers what the log asks of the disk until it is done.
  private func settle(
    _ log: inout PartitionLog, _ id: PartitionID, _ name: PartitionName, _ chains: [StoredChain],
    _ step: (inout PartitionLog) -> PartitionLog.Outcome
  ) throws {
    while case .needsHeaders(let requests) = step(&log) {
      for request in requests {
        let number = chains.first { $0.replica == request.replica }?.number
        let runs = try number.map { try store.runs(of: $0, after: request.sequences.lowerBound - 1, byteLimit: .max) }
        try log.unfold(request, runs: try (runs ?? []).map { try summary($0, id, name) })
      }
    }
  }

  private func summary(_ run: StoredRun, _ id: PartitionID, _ name: PartitionName) throws -> RunSummary {
    let decoded = try RunCodec.decode(run.body[...], fleet: files.fleet, partition: id, hash: SHA256.hash)
    guard let signer = authority.signer(of: decoded.chain.replica) else {
      throw StoreError.damaged("a stored run by a replica that no statement declares")
    }
    return RunSummary(
      partition: name, replica: decoded.chain.replica, first: decoded.first, hashBefore: decoded.hashBefore,
      hashes: decoded.hashes, context: run.context, signer: signer, facts: decoded.facts(in: name))
  }
}
