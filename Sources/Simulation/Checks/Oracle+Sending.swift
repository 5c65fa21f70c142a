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
    case .chainProbe(let probe): checkRight(probe.name, node, peer)
    case .statements(let list):
      for encoded in list where !node.directory.book.statements.values.contains(where: { $0.encoded == encoded }) {
        world.violate("durable before sent", "node \(node.slot) passes on a statement that it has not stored")
      }
    default: break
    }
  }

  private func check(_ vectors: [PartitionVector], _ node: SimulatedNode, _ peer: SimulatedNode) {
    for item in vectors {
      checkRight(item.name, node, peer)
      let partition = world.fleet.partition(item.name)
      for (replica, position) in item.vector.entries {
        guard !node.directory.book.reaches(position.sequence, of: replica, in: partition) else { continue }
        world.violate("durable before sent", "node \(node.slot) tells of change \(position.sequence) of \(replica)")
      }
    }
  }

  private func check(_ batch: RunBatch, _ node: SimulatedNode, _ peer: SimulatedNode) {
    checkRight(batch.name, node, peer)
    let partition = world.fleet.partition(batch.name)
    let runs = node.directory.book.partitions[partition]?.runs ?? [:]
    for entry in batch.entries {
      let body = Array(entry.encoded)
      guard !runs.values.contains(where: { $0.contains { $0.body == body } }) else { continue }
      world.violate("durable before sent", "node \(node.slot) sends a run that it has not stored")
    }
  }

  private func checkRight(_ name: PartitionName, _ node: SimulatedNode, _ peer: SimulatedNode) {
    let level = rights(node.directory.book).level(of: peer.key.publicKey, in: name.text)
    guard level < .carry else { return }
    world.violate("I11", "node \(node.slot) tells node \(peer.slot) of \(name.text.string), which it may not carry")
  }
}
