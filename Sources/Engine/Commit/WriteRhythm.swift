import Replication

/// When this node was last written to, and what follows from that: transactions stay small for whoever writes, and the store's log
/// is carried over when that disturbs least.
struct WriteRhythm {
  /// Whoever wrote before may write no more.
  private static let quietMilliseconds: UInt64 = 1_000

  /// By a user of this node.
  private var written: MonotonicTime?
  private var committed = MonotonicTime(milliseconds: 0)
  private var carried = MonotonicTime(milliseconds: 0)

  mutating func noteWrite(_ now: MonotonicTime) { written = now }
  mutating func noteCommit(_ now: MonotonicTime) { committed = now }
  /// The store has been asked to carry over what lies beside its place.
  mutating func noteCarrying(_ now: MonotonicTime) { carried = now }

  /// Somebody writes on this node.
  func isAttended(_ now: MonotonicTime, within milliseconds: UInt64) -> Bool {
    written.map { now.millisecondsSince($0) < milliseconds } ?? false
  }

  /// - Parameter hasLoads: something is being read to peers.
  func occasion(_ now: MonotonicTime, hasLoads: Bool) -> CarryOccasion {
    if hasLoads || isAttended(now, within: WriteRhythm.quietMilliseconds) { return .attended }
    return now.millisecondsSince(committed) < WriteRhythm.quietMilliseconds ? .busy : .idle
  }

  /// When to ask the store again that wants to wait so long.
  func nextCarrying(after milliseconds: UInt64) -> MonotonicTime {
    max(committed, carried).advanced(byMilliseconds: milliseconds)
  }
}
