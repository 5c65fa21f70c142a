import Replication
import Wire

// What must hold when the faults are over.
extension Oracle {
  /// Why it is not over yet; nil when all who want a partition and reach one another over others who want it agree.
  func disagreement() -> String? {
    if let absent = world.nodes.first(where: { $0.process == nil }) { return "node \(absent.slot) is not there" }
    for name in world.plan.partitions {
      for group in groups(wanting: name) {
        if let difference = difference(in: group, world.fleet.partition(name)) {
          return "\(name.text.string): \(difference)"
        }
      }
    }
    return nil
  }

  /// Nodes that want the partition, in groups that reach one another.
  func groups(wanting name: PartitionName) -> [[NodeProcess]] {
    let id = world.fleet.partition(name)
    var left = world.nodes.compactMap(\.process).filter { $0.mesh.interest.wants(id, name: name) }
    var groups: [[NodeProcess]] = []
    while let first = left.popLast() {
      var group = [first]
      var index = 0
      while index < group.count {
        let slot = group[index].node.slot
        group += left.filter { world.isLinked($0.node.slot, slot) }
        left.removeAll { world.isLinked($0.node.slot, slot) }
        index += 1
      }
      groups.append(group)
    }
    return groups
  }

  private func difference(in group: [NodeProcess], _ partition: PartitionID) -> String? {
    guard let first = group.first else { return nil }
    let mine = first.mesh.partitions[partition]?.log
    for other in group.dropFirst() {
      let log = other.mesh.partitions[partition]?.log
      let pair = "nodes \(first.node.slot) and \(other.node.slot)"
      if (mine?.accepted ?? VersionVector()) != (log?.accepted ?? VersionVector()) {
        return "\(pair) accept \(Oracle.text(mine?.accepted)) and \(Oracle.text(log?.accepted))"
      }
      if (mine?.clipped ?? VersionVector()) != (log?.clipped ?? VersionVector()) {
        return "\(pair) differ in what is clipped"
      }
      if (mine?.forkPoints ?? [:]) != (log?.forkPoints ?? [:]) {
        return "\(pair) know forks at \(mine?.forkPoints ?? [:]) and \(log?.forkPoints ?? [:])"
      }
    }
    return nil
  }

  static func text(_ vector: VersionVector?) -> String {
    (vector?.sorted ?? []).map { "\(String($0.replica.high, radix: 36)):\($0.position.sequence)" }.joined(
      separator: " ")
  }

  // MARK: The end

  func finish() {
    if let difference = disagreement() { world.violate("I14", difference) }
    for name in world.plan.partitions {
      let id = world.fleet.partition(name)
      for group in groups(wanting: name) { compareDocuments(in: group, id) }
      for node in world.nodes { node.process.map { checkLog($0, id) } }
    }
    for node in world.nodes { node.process.map(checkReopening) }
    checkAcknowledged()
  }

  /// Same accepted set, same documents and inboxes, and those are what merging the set at once gives (I1).
  private func compareDocuments(in group: [NodeProcess], _ partition: PartitionID) {
    guard let first = group.first else { return }
    let documents = documents(of: first, partition)
    for other in group.dropFirst() where self.documents(of: other, partition) != documents {
      world.violate(
        "I1", "nodes \(first.node.slot) and \(other.node.slot) accept the same and show different documents")
    }
    guard let log = first.mesh.partitions[partition]?.log else { return }
    let merged = ReferenceStore.merged(accepted(by: first, log, partition))
    if merged != documents {
      world.violate("I1", "node \(first.node.slot) shows what its accepted changes do not give")
    }
    for (key, state) in merged where documents[key]?.inbox() != state.inbox() {
      world.violate("I1", "node \(first.node.slot) has another inbox than its accepted changes give")
    }
  }

  private func documents(of process: NodeProcess, _ partition: PartitionID) -> [DocumentKey: DocumentState] {
    process.node.disk.image.partitions[partition]?.documents ?? [:]
  }

  private func accepted(
    by process: NodeProcess, _ log: PartitionLog, _ partition: PartitionID
  ) -> [ReferenceChange] {
    let chains = process.node.disk.image.partitions[partition]?.chains ?? [:]
    return chains.values.flatMap(\.runs).flatMap { contents(of: $0, in: partition) }.compactMap { item in
      guard log.hasEffect(item.hash, at: item.dot) else { return nil }
      let context = WriteContext(
        dot: item.dot, timestamp: item.timestamp, context: item.context,
        ceilings: log.ceilings(of: item.context, author: item.dot))
      let isIgnored = world.has(.ignoreDeletes)
      return ReferenceChange(context, writes: item.writes.filter { !isIgnored || $0.kind != .delete })
    }
  }

  /// Vectors cover no hole: from the first change to the last, each run follows on one that is there (I8).
  private func checkLog(_ process: NodeProcess, _ partition: PartitionID) {
    guard let log = process.mesh.partitions[partition]?.log else { return }
    let chains = process.node.disk.image.partitions[partition]?.chains ?? [:]
    for (replica, position) in log.received.entries {
      var ends: [Digest: Digest] = [:]
      for run in chains[replica]?.runs ?? [] { ends[run.hashAtLast] = run.hashBefore }
      let start = ChainIdentity(fleet: world.fleet.id, partition: partition, replica: replica)
        .genesis(FakeCryptography.hash)
      var current = ends.keys.first { $0.tip == position.tip }
      while let hash = current, hash != start { current = ends[hash] }
      if current != start {
        world.violate("I8", "node \(process.node.slot) has a hole below \(position.sequence) of \(replica)")
      }
    }
  }

  /// What the directory gives is what the process had (I15).
  private func checkReopening(_ process: NodeProcess) {
    let opening = NodeOpening(node: process.node, world: world)
    guard let mesh = try? opening.mesh(instance: world.random.uuid()) else {
      return world.violate("I15", "node \(process.node.slot) cannot be opened again")
    }
    for (id, state) in process.mesh.partitions {
      let (was, now) = (state.log, mesh.partitions[id]?.log)
      guard
        was.received != now?.received ?? VersionVector() || was.accepted != now?.accepted ?? VersionVector()
          || was.forkPoints != now?.forkPoints ?? [:]
      else { continue }
      world.violate(
        "I15",
        "node \(process.node.slot) opens \(state.name.text.string) with \(Oracle.text(now?.received)) instead of \(Oracle.text(was.received))"
      )
    }
    if process.mesh.authority.digest(FakeCryptography.hash) != mesh.authority.digest(FakeCryptography.hash) {
      world.violate("I15", "node \(process.node.slot) opens with other statements than it had")
    }
  }

  /// Every acknowledged write is somewhere, and at its author's if that store lives: counting, or held for a reason (I2).
  private func checkAcknowledged() {
    for place in early.values.sorted() {
      world.violate("I2", "a write at \(place) was acknowledged and never committed")
    }
    for write in acknowledged where !write.isExcused {
      let holders = world.nodes.compactMap(\.process).filter { holds(write, $0.node.disk.image) }
      let author = world.nodes[write.slot]
      let isAuthorIntact = author.lineage == write.lineage
      if holders.isEmpty || isAuthorIntact && !holders.contains(where: { $0.node.slot == write.slot }) {
        world.violate(
          "I2", "change \(write.dot.sequence) of \(write.dot.replica), acknowledged at \(write.slot), is lost")
      }
      for holder in holders { checkCounts(write, at: holder) }
    }
  }

  private func checkCounts(_ write: Acknowledged, at holder: NodeProcess) {
    guard let log = holder.mesh.partitions[write.partition]?.log else { return }
    guard !log.hasEffect(write.hash, at: write.dot) else { return }
    if log.held.contains(where: { $0.hash == write.hash }) {
      world.count(.heldOnOtherBranch)
    } else {
      world.violate(
        "I2",
        "change \(write.dot.sequence) of \(write.dot.replica) at node \(holder.node.slot) neither counts nor is held")
    }
  }
}
