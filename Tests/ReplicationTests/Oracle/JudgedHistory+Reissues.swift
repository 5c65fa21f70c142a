@testable import Replication

// What changes say that they issue again: honest authors and liars, whom all must judge alike.
extension JudgedHistory {
  /// What the next change of the device issues again, where it does.
  mutating func origin(for device: String) -> ChangeOrigin? {
    guard random.chance(reissueChance), let change = original(for: device) else { return nil }
    switch random.below(100) {
    // On a branch that nobody shows here.
    case 0..<20: return ChangeOrigin(dot: change.dot, hash: random.digest())
    // At a number where it is not.
    case 20..<25:
      return ChangeOrigin(dot: Dot(replica: change.dot.replica, sequence: change.dot.sequence + 1), hash: change.hash)
    default: return change
    }
  }

  /// Any that was written, on whatever branch; it may be a re-issue itself, though an honest author names the first original.
  private mutating func original(for device: String) -> ChangeOrigin? {
    // A device speaks for its own writes alone, and may say that it does for another's.
    let isOfAnybody = random.chance(8)
    let changes = tips.sorted { $0.key < $1.key }.flatMap { replica, known -> [ChangeOrigin] in
      guard isOfAnybody || Named.name(replica.bytes).hasPrefix(device) else { return [] }
      return known.filter { $0.sequence > 0 }.map {
        ChangeOrigin(dot: Dot(replica: replica, sequence: $0.sequence), hash: $0.hash)
      }
    }
    return changes.isEmpty ? nil : pick(changes)
  }
}
