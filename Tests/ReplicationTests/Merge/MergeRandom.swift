import Replication
import Simulation
import TestSupport

/// What random histories draw, with a seed, so that a failing one can be run again.
struct MergeRandom: RandomNumberGenerator {
  private var generator: SplitMix64

  init(seed: UInt64) { generator = SplitMix64(seed: seed) }

  mutating func next() -> UInt64 { generator.next() }

  mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
  mutating func pick<Item>(_ items: [Item]) -> Item { items[below(items.count)] }

  /// A random order that keeps chains contiguous and, if `causal`, delivers what a context names first.
  mutating func order(_ changes: [ReferenceChange], causal: Bool) -> [ReferenceChange] {
    var queues: [[ReferenceChange]] = []
    for change in changes {
      if let index = queues.firstIndex(where: { $0[0].dot.replica == change.dot.replica }) {
        queues[index].append(change)
      } else {
        queues.append([change])
      }
    }
    for index in queues.indices { queues[index].sort { $0.dot < $1.dot } }
    var (ordered, have): ([ReferenceChange], [ReplicaID: UInt64]) = ([], [:])
    while !queues.isEmpty {
      let ready = queues.indices.filter { index in
        !causal
          || queues[index][0].context.context.entries.allSatisfy { have[$0.key, default: 0] >= $0.value.sequence }
      }
      let index = pick(ready)
      let change = queues[index].removeFirst()
      if queues[index].isEmpty { queues.remove(at: index) }
      have[change.dot.replica] = change.dot.sequence
      ordered.append(change)
    }
    return ordered
  }
}

extension ReferenceStore {
  init(_ changes: [ReferenceChange], groups: [[Dot]] = []) {
    self.init(groups: groups)
    for change in changes { accept(change) }
  }
}
