import TestSupport
import Testing

@testable import Replication

@Suite("Chains: the tree above a trunk")
struct ChainTreeTests {
  private func digest(_ word: UInt64) -> Digest { Digest(words: (word / 3, word % 3, word, 0)) }

  /// The same in dictionaries.
  private struct Model {
    var nodes: [Digest: (slot: ChainTree.Slot, hasContent: Bool, origin: ChangeOrigin?)] = [:]

    func following(_ slot: ChainTree.Slot) -> [Digest] { nodes.filter { $1.slot == slot }.keys.sorted() }
  }

  private func expectEqual(_ tree: ChainTree, _ model: Model, _ asked: [Digest]) {
    #expect(tree.count == model.nodes.count)
    for hash in asked {
      let expected = model.nodes[hash]
      let node = tree[hash]
      #expect(node?.sequence == expected?.slot.sequence && node?.previous == expected?.slot.previous)
      #expect(node?.hasContent == expected?.hasContent && node?.facts.origin == expected?.origin)
      for sequence in UInt64(1)...4 {
        let slot = ChainTree.Slot(sequence: sequence, previous: hash)
        #expect(tree.following(hash, at: sequence) == model.following(slot))
        #expect(tree.firstFollowing(hash, at: sequence) == model.following(slot).first)
        let position = ChainPosition(sequence: sequence, tip: hash.tip)
        // Of those that share 16 bytes of hash the lowest stands.
        let lowest = model.nodes.keys.filter { $0.tip == hash.tip }.min()
        #expect(tree.find(position) == lowest.flatMap { model.nodes[$0]?.slot.sequence == sequence ? $0 : nil })
      }
    }
    let slots = Dictionary(grouping: model.nodes.values, by: \.slot)
    #expect(tree.forks == Set(slots.filter { $1.count > 1 }.keys))
    #expect(tree.weight == model.nodes.values.count { $0.origin != nil })
  }

  @Test(
    "what is put in and taken out in any order is found as in dictionaries, by hash, by place and by 16 bytes of hash")
  func model() {
    var random = SplitMix64(seed: 11)
    for _ in 0..<60 {
      var (tree, model) = (ChainTree(), Model())
      let names = (0..<24 as Range<UInt64>).map(digest)
      for step in 0..<120 {
        guard let hash = names.randomElement(using: &random), let previous = names.randomElement(using: &random) else {
          return
        }
        if step % 3 == 2 {
          #expect((tree.remove(hash) != nil) == (model.nodes[hash] != nil))
          model.nodes[hash] = nil
        } else {
          let slot = model.nodes[hash]?.slot ?? .init(sequence: .random(in: 1...4, using: &random), previous: previous)
          let named = ChangeOrigin(dot: Dot(replica: .zero, sequence: 1), hash: hash)
          let origin = Bool.random(using: &random) ? named : nil
          let hasContent = Bool.random(using: &random)
          _ = tree.insert(hash, at: slot, facts: hasContent ? ChangeFacts(origin: origin) : nil)
          let before = model.nodes[hash]
          model.nodes[hash] =
            hasContent ? (slot, true, origin) : (slot, before?.hasContent ?? false, before?.origin)
        }
      }
      expectEqual(tree, model, names)
    }
  }
}
