import Engine
import Replication
import Wire

/// An onlooker who sees everything and is seen by no node. It keeps book of what every store took and judges with rules of
/// its own (``PartitionVerdict``): nothing that it says rests on how the nodes merge, accept or permit.
final class Oracle {
  unowned let world: World

  struct Place: Hashable {
    let partition: PartitionID
    let dot: Dot
  }

  /// A write that somebody was told is safe.
  struct Acknowledged {
    let partition: PartitionID
    let dot: Dot
    let hash: Digest
    let slot: Int
    let lineage: Int
    /// Written when all was quiet and all agreed.
    let isLastWord: Bool
    /// The run destroyed its only holder.
    var isExcused = false
  }

  /// Runs, decoded once for all checks, by their last hash.
  private var decoded: [Digest: ObservedRun] = [:]
  private(set) var hashes: [Place: Digest] = [:]
  private var payloads: [Digest: [UInt8]] = [:]
  var acknowledged: [Acknowledged] = []
  /// By slot: what a life of the store showed last.
  private var vectors: [Int: [PartitionID: (received: VersionVector, accepted: VersionVector)]] = [:]
  /// Devices of which the run made two, and the replicas that they write under.
  private var forkable: Set<PublicKey> = []
  private var owners: [ReplicaID: PublicKey] = [:]
  /// How many replica ids each slot drew.
  private var drawn: [Int: Int] = [:]
  /// A right was narrowed: what counted may fall.
  private(set) var wasNarrowed = false
  private var rights: [Set<Digest>: NaiveRights] = [:]

  init(_ world: World) { self.world = world }

  var changeCount: Int { hashes.count }

  func expectForks(of node: SimulatedNode) { forkable.insert(node.key.publicKey) }
  func mayFork(_ replica: ReplicaID) -> Bool { owners[replica].map(forkable.contains) ?? false }

  func rights(_ book: NodeBook) -> NaiveRights {
    let ids = Set(book.statements.keys)
    if let known = rights[ids] { return known }
    if rights.count > 256 { rights = [:] }
    let made = NaiveRights(
      root: world.fleet.root.publicKey, statements: book.statements.values.sorted { $0.id < $1.id },
      certificate: NaiveRights.certificate(FakeCryptography.hash))
    rights[ids] = made
    return made
  }

  // MARK: Commits

  /// After a transaction is durable, before anyone is told.
  func committed(_ commit: ObservedCommit, by process: NodeProcess) {
    let node = process.node
    world.trace(4, UInt64(node.slot) << 32 | UInt64(commit.appended.count))
    checkDeclarations(commit, by: node)
    for statement in commit.statements { learn(statement, node) }
    for (id, name) in commit.partitions where node.directory.book.partitions[id] == nil {
      node.directory.book.partitions[id] = NodeBook.Partition(name: name)
    }
    for payload in commit.payloads { learn(payload.hash, Array(payload.bytes), node) }
    for appended in commit.appended {
      checkCausality(of: appended, node)
      learn(appended, node)
    }
  }

  func isDeclared(_ replica: ReplicaID) -> Bool { owners[replica] != nil }

  /// Answers how many it has drawn with this one.
  func countDrawn(by slot: Int) -> Int {
    drawn[slot, default: 0] += 1
    return drawn[slot, default: 0]
  }

  private func learn(_ payload: Digest, _ bytes: [UInt8], _ node: SimulatedNode) {
    payloads[payload] = bytes
    node.directory.book.payloads.insert(payload)
  }

  private func learn(_ statement: Statement, _ node: SimulatedNode) {
    node.directory.book.statements[statement.id] = statement
    if case .replica(let declaration) = statement.body { owners[declaration.replica] = statement.issuer }
    if case .grant(let grant) = statement.body, grant.level < .write, statement.sequence > Fleet.lastFoundingSequence {
      wasNarrowed = true
    }
  }

  private func learn(_ appended: ObservedCommit.Appended, _ node: SimulatedNode) {
    let (partition, replica) = (appended.chain.partition, appended.chain.replica)
    let run: NodeBook.StoredRun
    do throws(RunError) {
      run = try stored(appended)
    } catch {
      return world.violate("store", "node \(node.slot) stores what is no run: \(error)")
    }
    let twins = node.directory.book.partitions[partition]?.runs[replica]?.count { $0.body == run.body } ?? 0
    if twins > 0 { world.violate("I5", "run \(replica) \(run.first) is stored again at node \(node.slot)") }
    for (index, change) in run.observed.changes.enumerated() {
      let place = Place(partition: partition, dot: Dot(replica: replica, sequence: run.first + UInt64(index)))
      if let known = hashes[place], known != change.hash, !mayFork(replica) {
        world.violate("I6", "change \(place.dot.sequence) of \(replica) has two hashes")
      }
      hashes[place] = change.hash
    }
    if run.observed.changes.count > 1 { world.count(.runWithSeveralChanges) }
    node.directory.book.partitions[partition]?.runs[replica, default: []].append(run)
  }

  private func checkCausality(of appended: ObservedCommit.Appended, _ node: SimulatedNode) {
    let (partition, replica) = (appended.chain.partition, appended.chain.replica)
    for (other, position) in appended.run.context.entries where !mayFork(other) && !wasNarrowed {
      guard !node.directory.book.reaches(position.sequence, of: other, in: partition) else { continue }
      world.violate("I3", "run \(replica) \(appended.run.first) is at node \(node.slot) before what it had seen")
    }
  }

  private func stored(_ appended: ObservedCommit.Appended) throws(RunError) -> NodeBook.StoredRun {
    let (run, chain) = (appended.run, appended.chain)
    let decoded = try RunCodec.decode(
      run.body, fleet: chain.fleet, partition: chain.partition, hash: FakeCryptography.hash)
    // I12: whoever stores a run has made sure that the device wrote it that declared its replica.
    guard let owner = owners[chain.replica] else { throw .signature }
    try decoded.verifySignature(of: owner, FakeCryptography.verify)
    return NodeBook.StoredRun(
      first: run.first, last: run.last, hashBefore: decoded.hashBefore, hashAtLast: decoded.hashAtLast,
      context: run.context, body: Array(run.body), observed: observed(decoded, run.context))
  }

  private func observed(_ run: DecodedRun, _ context: VersionVector) -> ObservedRun {
    if let known = decoded[run.hashAtLast] { return known }
    let changes = zip(run.changes, run.hashes).map { change, hash in
      let dot = Dot(replica: run.chain.replica, sequence: change.header.sequence)
      let payload = payloads[change.header.payloadHash].map { $0[...] } ?? change.payload
      let writes = (try? PayloadDecoder.decodeWrites(payload, dot: dot)) ?? []
      return ObservedChange(
        hash: hash, timestamp: change.header.timestamp.rawValue, owner: ObservedChange.owner(of: writes),
        origin: change.header.origin, writes: writes)
    }
    let observed = ObservedRun(
      replica: run.chain.replica, first: run.first, hashBefore: run.hashBefore,
      context: NaivePosition.entries(of: context), changes: changes)
    decoded[run.hashAtLast] = observed
    return observed
  }

  // MARK: Answers

  func answered(_ job: WriteJob, _ result: Result<ChangeReceipt, RefusedWrite>, by process: NodeProcess) {
    let node = process.node
    guard case .success(let receipt) = result else {
      world.count(.writeRefused)
      if world.lastWords.contains(job.number) { world.violate("I14", "node \(node.slot) refuses to write: \(result)") }
      return
    }
    guard let dot = receipt.dot else { return }
    let partition = world.fleet.partition(job.partition)
    if rights(node.directory.book).level(of: node.key.publicKey, in: job.partition.text) < .write {
      world.violate("I10", "node \(node.slot) wrote to \(job.partition.text.string) without the right to")
    }
    let runs = node.directory.book.partitions[partition]?.runs[dot.replica] ?? []
    guard let run = runs.last(where: { $0.first <= dot.sequence && dot.sequence <= $0.last }) else {
      return world.violate("I2", "change \(dot.sequence) was acknowledged at node \(node.slot) and is not stored")
    }
    let change = run.observed.changes[Int(dot.sequence - run.first)]
    checkStamp(change, by: node)
    acknowledged.append(
      Acknowledged(
        partition: partition, dot: dot, hash: change.hash, slot: node.slot, lineage: node.lineage,
        isLastWord: world.lastWords.contains(job.number)))
  }

  /// A stamp runs at most ten minutes ahead of its author's clock: one that was wrong once does not drag all later ones.
  private func checkStamp(_ change: ObservedChange, by node: SimulatedNode) {
    let ahead = Int64(clamping: change.timestamp >> 16) - world.wall(of: node)
    guard ahead > 600_000 else { return }
    world.violate("clock", "node \(node.slot) stamps a write \(ahead) ms ahead of its clock")
  }

  /// An older copy takes the place of a store: what it alone held is gone, and nobody's fault.
  func storeIsLost(of node: SimulatedNode, to older: NodeBook) {
    vectors[node.slot] = nil
    let others = world.nodes.filter { $0.slot != node.slot && $0.liar == nil }
    for index in acknowledged.indices where !acknowledged[index].isExcused {
      let write = acknowledged[index]
      func holds(_ book: NodeBook) -> Bool { book.holds(write.hash, at: write.dot, in: write.partition) }
      guard holds(node.directory.book), !holds(older), !others.contains(where: { holds($0.directory.book) }) else {
        continue
      }
      acknowledged[index].isExcused = true
      world.count(.excusedLoss)
    }
  }

  // MARK: While the run goes on

  /// The store that was opened has what was committed to it, and perhaps a last commit whose outcome nobody knew.
  func opened(_ process: NodeProcess) {
    process.told = process.mesh.partitions.mapValues(\.log.accepted)
    do { try readAgain(process) } catch {
      world.violate("I15", "the store of node \(process.node.slot) does not read: \(error)")
    }
    checkVectors(process)
  }

  private func readAgain(_ process: NodeProcess) throws {
    let (node, store) = (process.node, process.store.base)
    for encoded in try store.statementBytes() {
      if let statement = FakeCryptography.statement(encoded) { learn(statement, node) }
    }
    for partition in try store.logPartitions() where node.directory.book.partitions[partition.id] == nil {
      node.directory.book.partitions[partition.id] = NodeBook.Partition(name: partition.name)
    }
    var unknown: [ObservedCommit.Appended] = []
    var missing = node.directory.book.partitions.mapValues { $0.runs.mapValues { Set($0.map(\.body)) } }
    for chain in try store.logChains() {
      let identity = ChainIdentity(fleet: world.fleet.id, partition: chain.partition, replica: chain.replica)
      for run in try store.runs(of: identity, after: 0, byteLimit: .max)
      where missing[chain.partition]?[chain.replica]?.remove(run.body) == nil {
        let appended = AppendedRun(first: run.first, last: run.last, context: run.context, body: run.body[...])
        unknown.append(ObservedCommit.Appended(chain: identity, run: appended))
      }
    }
    for appended in unknown { try learnLargePayloads(of: appended, node, store) }
    // They are read chain by chain, so that only all of them together have what each had seen.
    for appended in unknown { learn(appended, node) }
    for appended in unknown { checkCausality(of: appended, node) }
    for (replica, bodies) in missing.values.joined() where !bodies.isEmpty {
      world.violate("I15", "node \(node.slot) starts without runs of \(replica) that it had committed")
    }
  }

  private func learnLargePayloads(
    of appended: ObservedCommit.Appended, _ node: SimulatedNode, _ store: any LogStore
  ) throws {
    let run = try RunCodec.decode(
      appended.run.body, fleet: appended.chain.fleet, partition: appended.chain.partition, hash: FakeCryptography.hash)
    for hash in run.changes.map(\.header.payloadHash) {
      if let bytes = try store.largePayload(hash) { learn(hash, bytes, node) }
    }
  }

  func turnEnded(_ process: NodeProcess) {
    let moved = process.ports.takeRecords()
    let footprint = process.mesh.footprint
    if footprint.parkedBatches > 0 || footprint.awaitedHeaders > 0 {
      world.violate("I13", "node \(process.node.slot) leaves \(footprint.parkedBatches) batches parked")
    }
    if footprint.streams > footprint.sessions * max(1, process.mesh.partitions.count) {
      world.violate("I13", "node \(process.node.slot) has \(footprint.streams) streams")
    }
    if footprint.sessions > 4 * world.nodes.count {
      world.violate("I13", "node \(process.node.slot) has \(footprint.sessions) sessions")
    }
    checkFeed(moved, of: process)
    guard !moved.isEmpty, process.node.liar == nil else { return }
    checkVectors(process)
    // Judging is slow: now and then while the run goes on, and everywhere at its end.
    guard world.random.chance(world.options.judgedPercent) else { return }
    for partition in Set(moved.flatMap { $0.partitions.map(\.partition) }).sorted() { judge(process, partition) }
  }

  /// Vectors do not fall in the lifetime of a store, but for chains that changed their branch or were narrowed (I8).
  private func checkVectors(_ process: NodeProcess) {
    for (id, state) in process.mesh.partitions {
      let (received, accepted) = (state.log.received, state.log.accepted)
      if let before = vectors[process.node.slot]?[id] {
        let fallen = before.received.entries.first {
          $0.value.sequence > received.sequence(of: $0.key) && !mayFork($0.key)
        }
        let undone = before.accepted.entries.first {
          $0.value.sequence > accepted.sequence(of: $0.key) && !mayFork($0.key) && !wasNarrowed
        }
        if let fallen = fallen ?? undone {
          world.violate(
            "I8", "the vector of node \(process.node.slot) falls at \(fallen.key) below \(fallen.value.sequence)")
        }
      }
      vectors[process.node.slot, default: [:]][id] = (received, accepted)
    }
  }
}
