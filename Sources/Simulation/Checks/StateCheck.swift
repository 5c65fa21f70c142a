import Engine
import Replication
import Wire

/// What nodes hold when all is over, and now and then before.
struct StateCheck: Check {
  let known: Knowledge

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
  func checkReopening(_ process: NodeProcess) {
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
}
