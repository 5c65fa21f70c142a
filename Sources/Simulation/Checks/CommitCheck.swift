import Engine
import Replication
import Wire

/// What stores take: of it the onlooker learns all that it knows.
struct CommitCheck: Check {
  private struct Place: Hashable {
    let partition: PartitionID
    let dot: Dot
  }

  let known: Knowledge
  private let (authors, holdings): (AuthorCheck, HoldingsCheck)
  private var hashes: [Place: Digest] = [:]
  private struct Drawn {
    let slot: Int
    let membership: Digest
  }

  private var drawn: [ReplicaID: Drawn] = [:]
  /// Under which of them each slot wrote last.
  private var lastWritten: [Int: ReplicaID] = [:]

  init(_ known: Knowledge) {
    self.known = known
    (authors, holdings) = (AuthorCheck(known: known), HoldingsCheck(known: known))
  }

  var changeCount: Int { hashes.count }

  /// After a transaction is durable, before anyone is told.
  mutating func check(_ commit: ObservedCommit, by node: SimulatedNode) {
    world.trace(4, UInt64(node.slot) << 32 | UInt64(commit.appended.count))
    node.directory.book.commits += 1
    checkDeclarations(commit, by: node)
    let displaced = displace(commit, node)
    for statement in commit.statements { learn(statement.encoded, node) }
    for (id, name) in commit.partitions where node.directory.book.partitions[id] == nil {
      node.directory.book.partitions[id] = NodeBook.Partition(name: name)
    }
    for payload in commit.payloads { learn(payload.hash, Array(payload.bytes), node) }
    var written: [KnownRun] = []
    for appended in commit.appended {
      checkCausality(of: appended, node)
      if let run = learn(appended, node, displaced), run.isSigned(by: node.key.publicKey) { written.append(run) }
    }
    authors.checkReissues(among: written, by: node)
    for (kept, partition) in commit.holdings { holdings.check(kept, in: partition, by: node) }
  }

  /// What others of its issuer have pushed out of the set (C26): the replicas that are declared no more. Some statements came
  /// and went within the commit, and never lay in the store.
  private func displace(_ commit: ObservedCommit, _ node: SimulatedNode) -> Set<ReplicaID> {
    for id in commit.removedStatements where node.directory.book.statements.removeValue(forKey: id) != nil {
      if node.isHonest { world.count(.displaced) }
    }
    return Set(commit.removedStatements.compactMap { known.declarations[$0] })
  }

  func learn(_ payload: Digest, _ bytes: [UInt8], _ node: SimulatedNode) {
    guard bytes.withUnsafeBytes(FakeCryptography.hash) == payload else {
      return world.violate("store", "node \(node.slot) stores another payload under the hash \(payload)")
    }
    known.payloads[payload] = bytes
    node.directory.book.payloads.insert(payload)
  }

  /// I12: a store takes no statement that its issuer did not sign for this fleet.
  func learn(_ encoded: [UInt8], _ node: SimulatedNode) {
    guard let statement = FakeCryptography.statement(encoded).statement, statement.fleet == world.fleet.id else {
      return world.violate("I12", "node \(node.slot) stores a statement that its issuer did not sign")
    }
    node.directory.book.statements[statement.id] = statement
    node.directory.book.learntAt[statement.id] = node.directory.book.commits
    known.note(statement, at: node)
  }

  /// Answers with the run where no store had it before.
  @discardableResult
  mutating func learn(
    _ appended: ObservedCommit.Appended, _ node: SimulatedNode, _ displaced: Set<ReplicaID> = []
  ) -> KnownRun? {
    let (run, isNew): (KnownRun, Bool)
    do throws(RunLibrary.Mistake) {
      (run, isNew) = try known.library.take(appended, observe: known.observe)
    } catch {
      world.violate("store", "node \(node.slot) stores what is no run: \(error)")
      return nil
    }
    // What was taken may be declared no more by the end of the commit.
    if node.isJudged, !displaced.contains(run.replica) { checkAuthor(of: run, node) }
    if isNew {
      authors.checkContext(of: run, node)
      if node.isJudged { authors.checkElements(of: run, node) }
      checkHashes(of: run)
      if node.isJudged { checkRight(toWrite: run, node) }
    }
    world.shore?.noteStored(run, at: node)
    if run.observed.changes.count > 1 { world.count(.runWithSeveralChanges) }
    if node.directory.book.partitions[run.partition]?.add(run) == false {
      world.violate("I5", "run \(run.replica) \(run.first) is stored again at node \(node.slot)")
    }
    return isNew ? run : nil
  }

  /// I12 and I10, by the statements that the node itself stores: a run that it keeps was signed by the device that declared
  /// the replica, and some right, whatever its limits, has allowed it; of others it keeps none where it may not carry (C7).
  private func checkAuthor(of run: KnownRun, _ node: SimulatedNode) {
    guard let name = node.directory.book.partitions[run.partition]?.name else {
      return world.violate("store", "node \(node.slot) stores a run in a partition that it does not have")
    }
    let (rights, key) = (rights(of: node), node.key.publicKey)
    let author = rights.author(run.replica, in: name.text)
    func violate(_ rule: String, _ why: String) {
      world.violate(rule, "node \(node.slot) stores run \(run.replica) \(run.first) of \(name.text.string), \(why)")
    }
    guard let signer = author.signer else { return violate("I12", "whose replica nobody declared") }
    guard run.isSigned(by: signer) else { return violate("I12", "which the device of its replica did not sign") }
    // What lacks a right is not stored, but where more may be allowed than this version reads (C27).
    if let refusal = author.limits.refusal(of: run.observed), !(refusal.isLackOfRight && rights.isInDoubt) {
      violate("I10", "which nothing ever allowed: \(refusal.rawValue)")
    }
    if signer != key, rights.level(of: key, in: name.text) < .carry { violate("C7", "which it may not carry") }
  }

  /// I10: a device makes changes, and issues them again, only while it may.
  private func checkRight(toWrite run: KnownRun, _ node: SimulatedNode) {
    guard let name = node.directory.book.partitions[run.partition]?.name, run.isSigned(by: node.key.publicKey),
      rights(of: node).level(of: node.key.publicKey, in: name.text) < .write
    else { return }
    world.violate("I10", "node \(node.slot) wrote to \(name.text.string) without the right to")
  }

  /// I6: a dot names one change, but where the world itself made two of a device.
  private mutating func checkHashes(of run: KnownRun) {
    for (index, change) in run.observed.changes.enumerated() {
      let dot = Dot(replica: run.replica, sequence: run.first + UInt64(index))
      let place = Place(partition: run.partition, dot: dot)
      if let other = hashes[place], other != change.hash, !mayFork(run.replica) {
        world.violate("I6", "change \(dot.sequence) of \(run.replica) has two hashes")
      }
      hashes[place] = change.hash
    }
  }

  func checkCausality(of appended: ObservedCommit.Appended, _ node: SimulatedNode) {
    let (partition, replica) = (appended.chain.partition, appended.chain.replica)
    for (other, position) in appended.run.context.entries where !mayFork(other) && !known.wasNarrowed {
      guard !node.directory.book.reaches(position.sequence, of: other, in: partition) else { continue }
      world.violate("I3", "run \(replica) \(appended.run.first) is at node \(node.slot) before what it had seen")
    }
  }

  // MARK: Under which replica ids a device writes

  /// A replica id is declared with the first change under it, never for a write that changes nothing (rule C20).
  private mutating func checkDeclarations(_ commit: ObservedCommit, by node: SimulatedNode) {
    for statement in commit.statements {
      guard case .replica(let declaration) = statement.body, statement.issuer == node.key.publicKey, node.flood == nil,
        known.owners[declaration.replica] == nil
      else { continue }
      let isUsed = commit.appended.contains { $0.chain.replica == declaration.replica }
      if !isUsed { world.violate("C20", "node \(node.slot) draws \(declaration.replica) and writes nothing under it") }
      declared(declaration, by: node)
    }
    let own = commit.appended.last { drawn[$0.chain.replica]?.slot == node.slot }
    if let own { lastWritten[node.slot] = own.chain.replica }
  }

  /// The right may be that of another membership than of what the device wrote last. Else only these give a cause for a new
  /// replica id: copies that come back, disks that fail, and peers that show signed runs that this node never wrote. What a liar
  /// claims is none; what it signs with its own key is one for itself.
  static let causes: Set<Fault> = [
    .restoredCopy, .rolledBack, .clonedDirectory, .diskFailed, .crashInCommit,
  ]

  private mutating func declared(_ declaration: Statement.ReplicaDeclaration, by node: SimulatedNode) {
    drawn[declaration.replica] = Drawn(slot: node.slot, membership: declaration.membership)
    known.noteDrawn(by: node)
    guard let last = lastWritten[node.slot].flatMap({ drawn[$0]?.membership }) else { return }
    let hasCause = world.report.faults.contains { CommitCheck.causes.contains($0.key) && $0.value > 0 }
    guard last == declaration.membership, !hasCause, node.isHonest else { return }
    world.violate("C20", "node \(node.slot) draws another replica id, \(declaration.replica), without a cause")
  }
}
