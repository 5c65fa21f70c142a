import Replication

/// What a store has come to hold and to count, as its node showed it last.
struct VectorCheck: Check {
  let known: Knowledge
  /// By slot: what a life of the store showed last.
  private var vectors: [Int: [PartitionID: (received: VersionVector, accepted: VersionVector)]] = [:]

  init(_ known: Knowledge) { self.known = known }

  /// What its store shows from now on may be less than before.
  mutating func forget(_ node: SimulatedNode) { vectors[node.slot] = nil }

  /// Vectors do not fall in the lifetime of a store, but for chains that changed their branch or were narrowed (I8).
  mutating func check(_ process: NodeProcess) {
    let slot = process.node.slot
    for (id, state) in process.mesh.partitions {
      let (received, accepted) = (state.log.received, state.log.accepted)
      if let before = vectors[slot]?[id] {
        if before.received == received, before.accepted == accepted { continue }
        let fallen = before.received.entries.first {
          $0.value.sequence > received.sequence(of: $0.key) && !mayFork($0.key)
        }
        let undone = before.accepted.entries.first {
          $0.value.sequence > accepted.sequence(of: $0.key) && !mayFork($0.key) && !known.wasNarrowed
        }
        if let fallen = fallen ?? undone {
          world.violate("I8", "the vector of node \(slot) falls at \(fallen.key) below \(fallen.value.sequence)")
        }
      }
      vectors[slot, default: [:]][id] = (received, accepted)
    }
  }
}
