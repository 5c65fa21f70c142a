import Replication

/// How fast a backlog gets smaller, by what it was at moments of the last minute: what comes to it meanwhile is in that.
struct BacklogPace: Equatable, Sendable {
  private struct Sample: Equatable, Sendable {
    let at: MonotonicTime
    let changes: Int64
  }

  /// The oldest first.
  private var samples: [Sample] = []

  static let windowMilliseconds: UInt64 = 60_000
  static let stepMilliseconds: UInt64 = 1_000
  /// Less tells too little.
  static let leastMilliseconds: UInt64 = 2_000

  mutating func note(_ changes: Int64, at now: MonotonicTime) {
    guard changes > 0 else {
      samples.removeAll()
      return
    }
    if let last = samples.last, now.millisecondsSince(last.at) < BacklogPace.stepMilliseconds { return }
    samples.append(Sample(at: now, changes: changes))
    samples.removeAll { now.millisecondsSince($0.at) > BacklogPace.windowMilliseconds }
  }

  /// Until nothing is left of so many changes, if it goes on like that; nil where it does not get smaller, or is not known.
  func millisecondsLeft(of changes: Int64) -> Int64? {
    guard let first = samples.first, let last = samples.last, changes > 0, first.changes > last.changes else {
      return nil
    }
    let time = last.at.millisecondsSince(first.at)
    guard time >= BacklogPace.leastMilliseconds else { return nil }
    return Int64(Double(changes) * Double(time) / Double(first.changes - last.changes))
  }
}
