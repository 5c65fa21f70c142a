import Engine
import Replication
import Wire

/// What nodes say that they hold.
struct HoldingsCheck: Check {
  let known: Knowledge

  /// A word is signed, and where it is the node's own, it names nothing that the store did not have when it took it: not even
  /// words of this device that others brought.
  func check(_ kept: KeptHoldings, in partition: PartitionID, by node: SimulatedNode) {
    let holdings = kept.holdings
    let place = HoldingsPlace(partition: partition, subject: holdings.subject)
    // Of two that came at once the store keeps the later one.
    guard holdings.number >= node.directory.book.holdings[place]?.number ?? 0 else { return }
    node.directory.book.holdings[place] = holdings
    func violate(_ why: String) {
      world.violate("holdings", "node \(node.slot) keeps a word about \(holdings.partition.text.string) \(why)")
    }
    guard kept.signed.isSigned(FakeCryptography.verify) else { return violate("that its device did not sign") }
    if holdings.kind == .backend { ReadingCheck(known: known).checkWord(holdings, at: node) }
    guard holdings.device == node.key.publicKey, holdings.kind == .received else { return }
    world.count(.saidHoldings)
    let held = node.directory.book.partitions[partition]
    for (replica, position) in holdings.vector.entries {
      let isHeld =
        mayFork(replica)
        ? held?.reaches(position.sequence, of: replica) : held?.holds(position.tip, at: position.sequence, of: replica)
      if isHeld != true { violate("of change \(position.sequence) of \(replica), which it does not have") }
    }
  }

  /// What a store has at its start: all that was committed, and perhaps a last commit of which nobody knew.
  func read(_ store: any LogStore, _ node: SimulatedNode) throws {
    var missing = node.directory.book.holdings
    for kept in try store.holdings() {
      let partition = world.fleet.partition(kept.holdings.partition)
      let place = HoldingsPlace(partition: partition, subject: kept.holdings.subject)
      if missing.removeValue(forKey: place) != kept.holdings { check(kept, in: partition, by: node) }
    }
    if let place = missing.keys.first {
      world.violate("I15", "node \(node.slot) starts without a word about \(place.partition) that it had kept")
    }
  }

  /// Once asked, all who want a partition know of one another what each holds. Of a device with copies nobody can know more
  /// than what one of them said.
  func difference() -> String? {
    for name in world.partitions {
      let partition = world.fleet.partition(name)
      for group in known.groups(wanting: name) where group.count > 1 {
        for speaker in group where !hasCopy(speaker.node) {
          guard let held = speaker.mesh.partitions[partition]?.log.received, !held.isEmpty else { continue }
          let subject = Holdings.Subject(device: speaker.node.key.publicKey, kind: .received)
          for process in group where process.mesh.holdings.book[partition, subject]?.holdings.vector != held {
            let said = process.mesh.holdings.book[partition, subject]?.holdings.vector
            return
              "\(name.text.string): node \(process.node.slot) knows that node \(speaker.node.slot) holds \(Oracle.text(said)), and it holds \(Oracle.text(held))"
          }
        }
      }
    }
    return nil
  }

  private func hasCopy(_ node: SimulatedNode) -> Bool { world.nodes.contains { $0 !== node && $0.key == node.key } }
}

/// Whose word it is, about what.
struct HoldingsPlace: Hashable {
  let partition: PartitionID
  let subject: Holdings.Subject
}
