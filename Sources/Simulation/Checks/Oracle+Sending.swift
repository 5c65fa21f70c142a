import Replication
import Wire

// What leaves a node.
extension Oracle {
  /// What is said to be held is on the disk (durable before sent), and goes to nobody who may not carry it (I11).
  func sending(_ frame: [UInt8], by node: SimulatedNode, to peer: SimulatedNode) {
    guard let message = try? MessageCodec.decode(frame[...]) else {
      return world.violate("wire", "node \(node.slot) sends what nobody can read")
    }
    switch message {
    case .have(let vector), .pull(_, let vector): check([vector], node, peer)
    case .vectors(let vectors): check(vectors, node, peer)
    case .runs(let batch): check(batch, node, peer)
    // Who may not carry a partition any more is told how far its own work has come.
    case .chainProbe(let probe) where owners[probe.replica] != peer.key.publicKey: checkRight(probe.name, node, peer)
    case .statements(let list, _):
      for encoded in list where !rights(of: node).holds(encoded) {
        world.violate("durable before sent", "node \(node.slot) passes on a statement that it has not stored")
      }
    default: break
    }
  }

  private func check(_ vectors: [PartitionVector], _ node: SimulatedNode, _ peer: SimulatedNode) {
    for item in vectors {
      checkRight(item.name, node, peer)
      let partition = node.directory.book.partitions[world.fleet.partition(item.name)]
      for (replica, position) in item.vector.entries {
        guard partition?.reaches(position.sequence, of: replica) != true else { continue }
        world.violate("durable before sent", "node \(node.slot) tells of change \(position.sequence) of \(replica)")
      }
    }
  }

  private func check(_ batch: RunBatch, _ node: SimulatedNode, _ peer: SimulatedNode) {
    checkRight(batch.name, node, peer)
    let partition = world.fleet.partition(batch.name)
    let held = node.directory.book.partitions[partition]?.held ?? []
    for entry in batch.entries {
      if let run = library.known(entry.encoded, in: partition), held.contains(run.number) { continue }
      world.violate("durable before sent", "node \(node.slot) sends a run that it has not stored")
    }
  }

  private func checkRight(_ name: PartitionName, _ node: SimulatedNode, _ peer: SimulatedNode) {
    let level = rights(of: node).level(of: peer.key.publicKey, in: name.text)
    guard level < .carry else { return }
    world.violate("I11", "node \(node.slot) tells node \(peer.slot) of \(name.text.string), which it may not carry")
  }
}
