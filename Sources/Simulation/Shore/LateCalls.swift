import Forwarding

/// Batches that reached a server which hung: it carries them out when whoever sent them has given up, or was killed.
struct LateCalls {
  private(set) var calls: [(due: UInt64, batch: LedgerBatch, node: SimulatedNode)] = []
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
    calls.append((now + random.between(1...1_500), batch, node))
    return true
  }

  /// Those that are due, in the order in which they were sent.
  mutating func take(at now: UInt64) -> [(due: UInt64, batch: LedgerBatch, node: SimulatedNode)] {
    defer { calls.removeAll { $0.due <= now } }
    return calls.filter { $0.due <= now }
  }

  /// All are due.
  mutating func hurry() {
    for index in calls.indices { calls[index].due = 0 }
  }
}
