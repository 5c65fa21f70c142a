import Forwarding

/// Batches that reached a server which hung: it carries them out when whoever sent them has given up, or was killed.
struct LateCalls {
  struct Call {
    fileprivate(set) var due: UInt64
    let batch: LedgerBatch
    let node: SimulatedNode
    /// What the node held when it sent the batch. A store that goes back meanwhile takes nothing from what was said.
    let book: NodeBook
  }

  private(set) var calls: [Call] = []
  private var random: SimulationRandom

  static let percent = 50
  static let limit = 8

  /// It draws for itself, so that worlds in which nothing comes late are what they were.
  init(of random: SimulationRandom) {
    var random = random
    self.random = random.fork()
  }

  /// Whether a lost call is one of them.
  mutating func keep(_ batch: LedgerBatch, by node: SimulatedNode, at now: UInt64) -> Bool {
    guard calls.count < LateCalls.limit, random.chance(LateCalls.percent) else { return false }
    calls.append(Call(due: now + random.between(1...1_500), batch: batch, node: node, book: node.directory.book))
    return true
  }

  /// Those that are due, in the order in which they were sent.
  mutating func take(at now: UInt64) -> [Call] {
    defer { calls.removeAll { $0.due <= now } }
    return calls.filter { $0.due <= now }
  }

  /// All are due.
  mutating func hurry() {
    for index in calls.indices { calls[index].due = 0 }
  }
}
