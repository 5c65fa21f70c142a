// What is said of a chain of which memory has more than its trunk, forked or held, and what a peer's word of it means. The log
// is not read for it: it would be read from end to end on every session.
extension PartitionLog {
  /// Memory has more of the chain than its trunk.
  package func isUnfolded(_ replica: ReplicaID) -> Bool { chains[replica]?.tree.isEmpty == false }

  /// Positions that are here, by which a peer tells what is: the trunk's end, where each branch ends, and those of the one that
  /// counts, dense near its end and ever wider apart. Nil where memory has the trunk alone.
  func probed(_ replica: ReplicaID, limit: Int) -> [ChainPosition]? {
    guard let chain = chains[replica], !chain.tree.isEmpty else { return nil }
    var sequences = Set([chain.trunk.sequence])
    var (distance, stride) = (UInt64(0), UInt64(1))
    while chain.received - chain.trunk.sequence > distance, sequences.count < limit / 2 {
      sequences.insert(chain.received - distance)
      if sequences.count > PartitionLog.denseCount { stride *= 2 }
      distance += stride
    }
    let chosen = sequences.compactMap(chain.position)
    // Who is told of an end takes all below it to be here.
    let rooted = rooted(replica)
    let ends = chain.endsBeside.filter { end in
      rooted.map { rooted in chain.tree.find(end).map(rooted.contains) == true } ?? true
    }.sorted { ($0.sequence, $0.tip) < ($1.sequence, $1.tip) }
    return (chosen + ends.prefix(limit - chosen.count)).sorted { ($0.sequence, $0.tip) < ($1.sequence, $1.tip) }
  }

  private static let denseCount = 16

  /// All that is here of the chain ends at one of these positions: told without a walk along the branches, of which the longest
  /// may be one that does not count.
  func isNamed(_ replica: ReplicaID, by positions: [ChainPosition]) -> Bool {
    guard let tree = chains[replica]?.tree, !tree.isEmpty else { return false }
    let tips = Set(positions.map(\.tip))
    return tree.ends.allSatisfy { tree.hasContent($0) && tips.contains($0.tip) }
  }

  /// What a peer holds of the chain who named these positions. Nil where memory cannot tell: none of them is known above the
  /// trunk or at its end.
  func holding(of replica: ReplicaID, by positions: [ChainPosition]) -> PeerHolding? {
    guard let chain = chains[replica], !chain.tree.isEmpty else { return nil }
    var (through, beside): (UInt64?, Set<Digest>) = (nil, [])
    for position in positions {
      if chain.position(at: chain.trunk.sequence) == position { through = max(through ?? 0, position.sequence) }
      guard let hash = chain.tree.find(position) else { continue }
      var (current, joint): (Digest, UInt64?) = (hash, nil)
      while joint == nil, let node = chain.tree[current] {
        if chain.hash(at: node.sequence) == current {
          joint = node.sequence
        } else {
          beside.insert(current)
          current = node.previous
        }
      }
      if joint == nil, current == chain.trunk.hash { joint = chain.trunk.sequence }
      through = joint.map { max(through ?? 0, $0) } ?? through
    }
    return through.map { PeerHolding(through: $0, beside: beside) }
  }

  /// The lowest change whose content is here and that the peer does not hold.
  func firstLacking(of replica: ReplicaID, to peer: PeerHolding) -> UInt64? {
    guard let chain = chains[replica] else { return nil }
    let beside = chain.beside.lazy.filter { $0.hasContent && !peer.beside.contains($0.hash) }.map(\.sequence).min()
    let chosen = peer.through < chain.received ? peer.through + 1 : nil
    return [beside, chosen].compactMap { $0 }.min()
  }

  /// The run that ends so is among what the peer holds.
  func isHeld(_ hash: Digest, at sequence: UInt64, of replica: ReplicaID, by peer: PeerHolding) -> Bool {
    guard let chain = chains[replica] else { return false }
    if peer.beside.contains(hash) || sequence <= chain.trunk.sequence { return true }
    return sequence <= peer.through && chain.hash(at: sequence) == hash
  }
}

/// What a peer holds of a chain that is forked or held here: all of the branch that counts up to a change, and others.
struct PeerHolding: Sendable {
  let through: UInt64
  let beside: Set<Digest>
}

extension Chain {
  /// Where other branches end, as far as their content is here.
  fileprivate var endsBeside: [ChainPosition] {
    let ends = tree.ends.filter { $0 != branch.last }.compactMap { hash in tree[hash].map { (hash, $0) } }
    if ends.allSatisfy(\.1.hasContent) { return ends.map { ChainPosition(sequence: $1.sequence, tip: $0.tip) } }
    // What follows on a change beside the branch lies beside it, too.
    return beside.compactMap { node in
      let goesOn = tree.following(node.hash, at: node.sequence + 1).contains(where: tree.hasContent)
      return node.hasContent && !goesOn ? ChainPosition(sequence: node.sequence, tip: node.hash.tip) : nil
    }
  }
}
