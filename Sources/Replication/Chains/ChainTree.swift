/// The known changes of one chain above its trunk: a tree where the chain is forked, a list where it is held.
struct ChainTree: Sendable {
  struct Node: Sendable {
    let sequence: UInt64
    let previous: Digest
    /// False where only the header is known.
    fileprivate(set) var hasContent: Bool
    fileprivate(set) var facts: ChangeFacts
  }

  /// The place after one change. Changes that share a slot are a fork (rule C5).
  struct Slot: Hashable {
    let sequence: UInt64
    let previous: Digest
  }

  private(set) var nodes: [Digest: Node] = [:]
  /// In hash order.
  private(set) var slots: [Slot: [Digest]] = [:]
  /// Those with more than one change. Few: what asks for branches must not look at every slot of a long chain.
  private(set) var forks: Set<Slot> = []
  /// Changes on which nothing follows that is known.
  private(set) var ends: Set<Digest> = []
  /// Where two changes share 16 bytes of hash, the lower stands.
  private var byTip: [TipHash: Digest] = [:]

  var isEmpty: Bool { nodes.isEmpty }
  var count: Int { nodes.count }

  func find(_ position: ChainPosition) -> Digest? {
    byTip[position.tip].flatMap { nodes[$0]?.sequence == position.sequence ? $0 : nil }
  }

  func following(_ hash: Digest, at sequence: UInt64) -> [Digest] {
    slots[Slot(sequence: sequence, previous: hash), default: []]
  }

  /// The change itself or one before it; nil where that is not in the tree.
  func ancestor(of hash: Digest, at sequence: UInt64) -> Digest? {
    var current = hash
    while let node = nodes[current] {
      guard node.sequence > sequence else { return node.sequence == sequence ? current : nil }
      current = node.previous
    }
    return nil
  }

  /// Adds a change, or content to a known one. `facts`: nil for a header alone. True if its slot now holds a fork.
  mutating func insert(_ hash: Digest, at slot: Slot, facts: ChangeFacts?) -> Bool {
    if nodes[hash] != nil {
      if let facts {
        nodes[hash]?.hasContent = true
        nodes[hash]?.facts = facts
      }
      return false
    }
    nodes[hash] = Node(
      sequence: slot.sequence, previous: slot.previous, hasContent: facts != nil, facts: facts ?? ChangeFacts())
    byTip[hash.tip] = min(hash, byTip[hash.tip] ?? hash)
    ends.remove(slot.previous)
    if following(hash, at: slot.sequence + 1).isEmpty { ends.insert(hash) }
    var siblings = slots[slot, default: []]
    siblings.insert(hash, at: siblings.firstIndex { hash < $0 } ?? siblings.endIndex)
    slots[slot] = siblings
    if siblings.count > 1 { forks.insert(slot) }
    return siblings.count > 1
  }

  /// Changes that follow on this one beside what was chosen there, with all that follows on them; by what was found.
  private func grow(from hash: Digest, _ node: Node, into found: inout [Digest: Node]) {
    var waiting = [(hash, node)]
    while let (hash, node) = waiting.popLast() {
      found[hash] = node
      for next in following(hash, at: node.sequence + 1) { nodes[next].map { waiting.append((next, $0)) } }
    }
  }

  /// Takes out a change that went into the trunk.
  mutating func remove(_ hash: Digest) -> Node? {
    guard let node = nodes.removeValue(forKey: hash) else { return nil }
    let slot = Slot(sequence: node.sequence, previous: node.previous)
    slots[slot] = nil
    forks.remove(slot)
    ends.remove(hash)
    if byTip[hash.tip] == hash { byTip[hash.tip] = nil }
    return node
  }

  /// Known changes off a branch that begins above `end`: those of other branches, and those that nothing here leads to.
  ///
  /// Costs what lies there, unless some of it hangs in the air.
  func nodes(beside branch: [Digest], above end: UInt64) -> [Digest: Node] {
    guard nodes.count > branch.count else { return [:] }
    var found: [Digest: Node] = [:]
    func isChosen(_ hash: Digest, _ sequence: UInt64) -> Bool {
      guard sequence > end, case let index = Int(sequence - end) - 1, index < branch.count else { return false }
      return branch[index] == hash
    }
    for slot in forks {
      for hash in slots[slot, default: []] where found[hash] == nil && !isChosen(hash, slot.sequence) {
        nodes[hash].map { grow(from: hash, $0, into: &found) }
      }
    }
    guard nodes.count > branch.count + found.count else { return found }
    return nodes.filter { !isChosen($0.key, $0.value.sequence) }
  }

  /// The branch that counts above a trunk's end (rule C6): through the bound if its headers join the trunk; for the
  /// rest, at each fork, the lowest hash, whether its content is here or not.
  func branch(above end: (sequence: UInt64, hash: Digest), through bound: ChainPosition) -> [Digest] {
    var branch = find(bound).flatMap { path(to: $0, above: end) } ?? []
    var (sequence, hash) = (end.sequence + UInt64(branch.count), branch.last ?? end.hash)
    while let next = following(hash, at: sequence + 1).first {
      branch.append(next)
      (sequence, hash) = (sequence + 1, next)
    }
    return branch
  }

  /// Nil where the headers do not join the trunk.
  private func path(to hash: Digest, above end: (sequence: UInt64, hash: Digest)) -> [Digest]? {
    var path: [Digest] = []
    var (current, expected) = (hash, nodes[hash]?.sequence)
    while let node = nodes[current], node.sequence == expected {
      path.append(current)
      (current, expected) = (node.previous, node.sequence - 1)
    }
    return current == end.hash && expected == end.sequence ? path.reversed() : nil
  }
}
