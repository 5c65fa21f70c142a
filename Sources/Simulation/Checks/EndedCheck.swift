import Replication

/// What is owed to devices that somebody ended, and to their work above limits.
struct EndedCheck: Check {
  let known: Knowledge

  /// Who is ended hears little, and goes on to tell what it knows, to whoever is a member for all it knows.
  func wordOfEndedThatIsNotHeard(_ honest: [NodeProcess]) -> String? {
    for teller in world.nodes.compactMap(\.process) where teller.node.isHonest && known.isEnded(teller) {
      let told = teller.mesh.authority.fleetStatements
      for other in honest
      where world.isLinked(teller.node.slot, other.node.slot)
        && teller.mesh.authority.member(of: other.node.key.publicKey) != nil
        && lacks(other, told)
      {
        return "node \(other.node.slot) lacks statements that node \(teller.node.slot), which was ended, holds"
      }
    }
    return nil
  }

  private func lacks(_ other: NodeProcess, _ told: [Statement]) -> Bool {
    let held = other.mesh.authority.fleetStatements
    let missing = Set(told.map(\.id)).subtracting(held.map(\.id))
    return !missing.isEmpty && !missing.isDisjoint(with: known.set(of: held + told))
  }

  /// Nodes that lack a statement which somebody holds: whom they reach over a device alone that was ended, and to which they
  /// are strangers, tells them by chance.
  func slotsThatLackStatements() -> Set<Int> {
    let honest = world.nodes.filter { $0.isHonest }.compactMap(\.process)
    let held = honest.map { $0.mesh.authority.fleetStatements }
    let all = known.set(of: held.flatMap { $0 })
    return Set(zip(honest, held).filter { !all.isSubset(of: $0.1.map(\.id)) }.map(\.0.node.slot))
  }

  /// What a device wrote before it heard that it may not is handed over, to whoever may carry it as far as it knows: only
  /// there an admin can let it count.
  func workThatIsNotHandedOver() -> String? {
    let honest = world.nodes.filter { $0.isHonest }.compactMap(\.process)
    for author in honest where !known.compromised.contains(author.node.key.publicKey) {
      for partition in author.mesh.partitions.values.sorted(by: { $0.id < $1.id }) {
        let own = partition.log.received.sorted.filter { replica, _ in
          known.owners[replica] == author.node.key.publicKey
            && (partition.log.heldAbove[replica] != nil || isUnbounded(replica, partition.name, author))
        }
        // Of a flooder that is spent nobody takes what it alone wrote in.
        guard !own.isEmpty, !mayCarry(author, partition.name), !author.node.isFlooder || known.isOwed(partition.name)
        else {
          continue
        }
        for other in known.groups(wanting: partition.name).joined()
        where isNamed(other, partition.name, author) {
          let book = other.node.directory.book.partitions[partition.id]
          for (replica, position) in own where !isShown(author, position, of: replica, partition.id, to: book) {
            return
              "node \(author.node.slot) has not shown node \(other.node.slot) what it wrote as \(replica) before its end"
          }
        }
      }
    }
    return nil
  }

  /// All that the author holds of the chain up to there lies with the other, on whatever branch, or could not be taken:
  /// a run is only where what its author had seen is held. Of others' work an author who may not carry the partition
  /// shows nothing, so that whoever reaches no one else who carries it waits for that.
  private func isShown(
    _ author: NodeProcess, _ position: ChainPosition, of replica: ReplicaID, _ partition: PartitionID,
    to other: NodeBook.Partition?
  ) -> Bool {
    let runs = author.node.directory.book.partitions[partition]?.runs[replica] ?? []
    let lacking = runs.sorted { $0.first < $1.first }.first { run in
      run.first <= position.sequence && other?.held.contains(run.number) != true
    }
    guard let lacking else { return true }
    return lacking.context.sorted.contains { seen, position in
      other?.runs[seen]?.contains { $0.hash(at: position.sequence)?.tip == position.tip } != true
    }
  }

  /// Nobody who ended the device had anything of the chain, so that nobody else need have it.
  private func isUnbounded(_ replica: ReplicaID, _ name: PartitionName, _ author: NodeProcess) -> Bool {
    !mayCarry(author, name) && rights(of: author.node).author(replica, in: name.text).limits.bound.sequence == .max
  }

  private func mayCarry(_ process: NodeProcess, _ name: PartitionName) -> Bool {
    rights(of: process.node).level(of: process.node.key.publicKey, in: name.text) >= .carry
  }

  /// Who was never told of a room takes no work in it, and who has left it, as its author has, tells nobody of it.
  private func knowsRoom(_ other: NodeProcess, _ name: PartitionName, as author: NodeProcess) -> Bool {
    func known(_ process: NodeProcess) -> Set<Digest> {
      Set(process.mesh.authority.statements(of: name.text).map(\.id))
    }
    return known(other).isSuperset(of: known(author))
  }

  /// Who is ended hears of nobody else's rights any more.
  private func isNamed(_ other: NodeProcess, _ name: PartitionName, _ author: NodeProcess) -> Bool {
    author.node.key != other.node.key && world.isLinked(author.node.slot, other.node.slot)
      && knowsRoom(other, name, as: author)
      && rights(of: author.node).level(of: other.node.key.publicKey, in: name.text) >= .carry
  }
}
