import Engine
import Replication
import Wire

// What nodes hold when all is over, and now and then before.
extension Oracle {
  func finish() {
    if let difference = disagreement() { world.violate("I14", difference) }
    for process in world.nodes.filter({ $0.liar == nil }).compactMap(\.process) {
      for partition in process.mesh.partitions.keys.sorted() { judge(process, partition) }
      if process.node.isJudged { checkWipe(of: process) }
      checkReopening(process)
    }
    checkAcknowledged()
    checkLastWords()
    if let difference = differenceAshore() { world.violate("I9", difference) }
  }

  /// What is written after all have met counts at all: whoever had a fork has learned of it, and goes on beside it.
  private func checkLastWords() {
    for write in acknowledged {
      guard let statements = write.lastWordUnder, !hasHeardOfLiar(world.nodes[write.slot].process, since: statements),
        !world.lackedStatements.contains(write.slot),
        let name = world.partitions.first(where: { world.fleet.partition($0) == write.partition }), isOwed(name)
      else { continue }
      let group = groups(wanting: name).first { $0.contains { $0.node.slot == write.slot } } ?? []
      for process in group {
        let verdict = verdict(process.node, write.partition, name)
        guard !verdict.counts(write.hash, at: write.dot), !isIssuedAgain(write, verdict, process.node) else { continue }
        world.violate(
          "I14",
          "change \(write.dot.sequence) of \(write.dot.replica), written at node \(write.slot) when all was quiet, does not count at node \(process.node.slot)"
        )
      }
    }
  }

  /// A peer that lies may have kept a narrowing that a disk lost and nobody else had, and tells of it when it likes.
  private func hasHeardOfLiar(_ author: NodeProcess?, since statements: Digest) -> Bool {
    guard world.nodes.contains(where: { $0.liar != nil }) else { return false }
    return author?.mesh.authority.digest(FakeCryptography.hash) != statements
  }

  /// What a node holds to count, and what it shows, is what the naive rules make of what it stores (I1, I4, I8, I10).
  func judge(_ process: NodeProcess, _ partition: PartitionID) {
    guard let state = process.mesh.partitions[partition] else { return }
    world.report.judgements += 1
    let verdict = verdict(process.node, partition, state.name)
    let (log, acceptance) = (state.log, verdict.acceptance)
    let at = "node \(process.node.slot), \(state.name.text.string)"
    let pairs: [(String, VersionVector, [ReplicaID: NaivePosition])] = [
      ("received", log.received, acceptance.received), ("accepted", log.accepted, acceptance.accepted),
      ("clipped", log.clipped, acceptance.clipped),
    ]
    for (what, mine, naive) in pairs where NaivePosition.entries(of: mine) != naive {
      return world.violate("I1", "\(at): \(what) is \(Oracle.text(mine)), and by the rules \(naive)")
    }
    if log.forkPoints != acceptance.forkPoints {
      return world.violate("I1", "\(at): forks at \(log.forkPoints), and by the rules \(acceptance.forkPoints)")
    }
    if Set(log.forkProofs) != acceptance.forks {
      return world.violate(
        "I1", "\(at): forks are proven by \(log.forkProofs), and by the rules by \(acceptance.forks)")
    }
    for document in verdict.documents { judge(document, process, partition, at) }
    let alive = verdict.documents.count { $0.body != nil }
    let totals = try? process.store.base.logPartitions().first { $0.id == partition }?.totals
    if let totals, totals.documents != alive {
      world.violate("I1", "\(at): \(totals.documents) documents are there, and by the rules \(alive)")
    }
  }

  func verdict(_ node: SimulatedNode, _ id: PartitionID, _ name: PartitionName) -> PartitionVerdict {
    let (rights, partition) = (rights(of: node), node.directory.book.partitions[id])
    return verdicts.verdict(id, rights, partition?.held ?? []) {
      PartitionVerdict(of: name.text, rights: rights.rights, runs: partition?.observed ?? []) { replica in
        ChainIdentity(fleet: world.fleet.id, partition: id, replica: replica).genesis(FakeCryptography.hash)
      }
    }
  }

  private func judge(_ document: NaiveDocument, _ process: NodeProcess, _ partition: PartitionID, _ at: String) {
    let key = DocumentKey(
      collection: Text(String(decoding: document.key.collection, as: UTF8.self)), id: document.key.id)
    let stored = try? process.store.base.document(key, in: partition)
    let state = stored.flatMap { try? DocumentState(encoded: $0.state) }
    guard document.shows(state?.shown()) else {
      return world.violate(
        "I1",
        "\(at): a document shows \(String(describing: state?.shown())), and by the rules \(String(describing: document.body))"
      )
    }
    guard (state?.inbox() ?? []).count == document.inbox.count else {
      return world.violate(
        "I1", "\(at): an inbox of \(state?.inbox().count ?? 0) entries, and by the rules of \(document.inbox.count)")
    }
  }

  /// What the directory gives is what the process had (I15), even if only what was synced is left of it.
  private func checkReopening(_ process: NodeProcess) {
    let node = process.node
    let place = SimulatedNode(slot: node.slot, key: node.key, user: node.user, node.directory.copy())
    guard let again = try? NodeProcess(place, in: world, life: 0) else {
      return world.violate("I15", "node \(node.slot) cannot be opened again")
    }
    // The process alone does not keep the place that it runs in.
    defer { withExtendedLifetime(place) { again.die() } }
    for (id, state) in process.mesh.partitions {
      let (was, now) = (state.log, again.mesh.partitions[id]?.log)
      guard
        was.received != now?.received ?? VersionVector() || was.accepted != now?.accepted ?? VersionVector()
          || was.forkPoints != now?.forkPoints ?? [:]
      else { continue }
      world.violate(
        "I15",
        "node \(node.slot) opens \(state.name.text.string) with \(Oracle.text(now?.received)) instead of \(Oracle.text(was.received))"
      )
    }
    if process.mesh.authority.digest(FakeCryptography.hash) != again.mesh.authority.digest(FakeCryptography.hash) {
      world.violate("I15", "node \(node.slot) opens with other statements than it had")
    }
  }

  /// Every acknowledged write is somewhere, and at its author's if that store lives: counting, or held for a reason (I2).
  private func checkAcknowledged() {
    var verdicts: [Int: [PartitionID: PartitionVerdict]] = [:]
    for write in acknowledged where !write.isExcused {
      let holders = world.nodes.filter {
        $0.process != nil && $0.liar == nil && $0.directory.book.holds(write.hash, at: write.dot, in: write.partition)
      }
      let author = world.nodes[write.slot]
      let isAuthorIntact = author.lineage == write.lineage && author.liar == nil
      if holders.isEmpty && author.liar == nil || isAuthorIntact && !holders.contains(where: { $0.slot == write.slot })
      {
        world.violate(
          "I2", "change \(write.dot.sequence) of \(write.dot.replica), acknowledged at \(write.slot), is lost")
      }
      for holder in holders {
        guard let name = holder.directory.book.partitions[write.partition]?.name else { continue }
        let verdict = verdicts[holder.slot]?[write.partition] ?? verdict(holder, write.partition, name)
        verdicts[holder.slot, default: [:]][write.partition] = verdict
        checkCounts(write, verdict, at: holder, mayWrite: mayWrite(holder, name))
      }
    }
  }

  /// Does a re-issue count, or is one held for another reason than the branch on which it stands?
  private func isIssuedAgain(_ write: Acknowledged, _ verdict: PartitionVerdict, _ node: SimulatedNode) -> Bool {
    let onLostBranches = Set(verdict.acceptance.held.filter { $0.reason == .otherBranch }.map(\.hash))
    let origin = ChangeOrigin(dot: write.dot, hash: write.hash)
    return node.directory.book.partitions[write.partition]?.observed.contains { run in
      run.changes.contains { $0.origin == origin && !onLostBranches.contains($0.hash) }
    } ?? false
  }

  private func checkCounts(
    _ write: Acknowledged, _ verdict: PartitionVerdict, at holder: SimulatedNode, mayWrite: Bool
  ) {
    guard !verdict.counts(write.hash, at: write.dot) else { return }
    if let held = verdict.acceptance.held.first(where: { $0.hash == write.hash }) {
      world.count(.heldOnOtherBranch)
      // C22: the device that wrote it issues it again, as soon as it may write (I10).
      if held.reason == .otherBranch, mayWrite, holder.key == world.nodes[write.slot].key,
        !isIssuedAgain(write, verdict, holder)
      {
        world.violate(
          "I2",
          "change \(write.dot.sequence) of \(write.dot.replica) lost, and node \(holder.slot) has not issued it again")
      }
      return
    }
    // Another of the same original has the effect.
    let accepted = verdict.acceptance.accepted[write.dot.replica]?.sequence ?? 0
    guard accepted < write.dot.sequence else { return }
    world.violate(
      "I2", "change \(write.dot.sequence) of \(write.dot.replica) at node \(holder.slot) neither counts nor is held")
  }
}
