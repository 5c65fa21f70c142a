import Forwarding
import Replication

/// What is said of the backend.
struct ReadingCheck: Check {
  let known: Knowledge

  /// A relay tells its node of no change that the ledger does not have at that moment.
  func readBack(_ name: PartitionName, _ vector: VersionVector, by node: SimulatedNode) {
    guard let shore = world.shore else { return }
    let partition = world.fleet.partition(name)
    let before = shore.readings[node.slot]?[partition]?.last ?? VersionVector()
    shore.readings[node.slot, default: [:]][partition, default: []].append(vector)
    // What stands as it was may not have been asked about again.
    let fresh = vector.entries.filter { before[$0.key] != $0.value }
    if let place = lacking(VersionVector(fresh), partition, shore.ledger) {
      world.violate("I9", "relay \(node.slot) reads back change \(place), which the ledger lacks")
    }
  }

  private func lacking(_ vector: VersionVector, _ partition: PartitionID, _ ledger: ModelLedger) -> String? {
    vector.sorted.lazy.filter { replica, position in
      !ledger.has(
        position.tip, at: position.sequence, of: ChainKey(partition: partition, replica: replica))
    }.map { "\($0.position.sequence) of \($0.replica)" }.first
  }

  /// A word about the backend says what its device had read there, and nothing else.
  func checkWord(_ holdings: Holdings, at node: SimulatedNode) {
    guard !world.nodes.contains(where: { $0.liar != nil && $0.key.publicKey == holdings.device }) else { return }
    world.count(.saidBackend)
    let partition = world.fleet.partition(holdings.partition)
    let slots = world.nodes.filter { $0.key.publicKey == holdings.device }.map(\.slot)
    if !slots.contains(where: { world.shore?.readings[$0]?[partition]?.contains(holdings.vector) == true }) {
      world.violate("I9", "node \(node.slot) keeps a word about the backend that its device had not read there")
    }
  }

  /// In the end what a relay says of the backend is so, and it knows of all that it holds that it is there.
  func difference(_ shore: Shore, _ relays: [SimulatedNode]) -> String? {
    for node in relays {
      for (place, word) in node.directory.book.holdings
      where place.subject.kind == .backend && place.subject.device == node.key.publicKey {
        if let change = lacking(word.vector, place.partition, shore.ledger) {
          return "relay \(node.slot) says that the backend has change \(change), which it lacks"
        }
      }
      for (id, partition) in node.directory.book.partitions where !partition.held.isEmpty {
        let read = shore.readings[node.slot]?[id]?.last ?? VersionVector()
        let acceptance = verdict(node, id, partition.name).acceptance
        for (replica, position) in acceptance.received where acceptance.forkPoints[replica] == nil {
          guard read.sequence(of: replica) != position.sequence else { continue }
          return "relay \(node.slot) has read back \(read.sequence(of: replica)) of \(replica), and holds "
            + "\(position.sequence)"
        }
      }
    }
    return nil
  }
}
