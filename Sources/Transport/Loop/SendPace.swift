/// How much should wait for one connection: what it takes away within a time. A value without IO.
struct SendPace {
  /// More than this should not wait.
  private(set) var byteMark: Int
  private let bounds: ClosedRange<Int>
  private let milliseconds: UInt64
  private var isFixed = false
  /// Since when the kernel takes only what it has sent, and how much that was: what it takes before says nothing of the link.
  private var blocked: (since: UInt64, byteCount: Int)?

  init(_ configuration: TransportConfiguration) {
    bounds =
      configuration.leastQueueByteMark...max(configuration.leastQueueByteMark, configuration.mostQueueByteMark)
    milliseconds = configuration.queueMilliseconds
    byteMark = bounds.lowerBound
  }

  /// As little as may be, however fast it goes.
  mutating func keepShort() { (byteMark, isFixed) = (bounds.lowerBound, true) }

  mutating func noteBlocked(_ now: UInt64) { if blocked == nil { blocked = (now, 0) } }
  mutating func noteWritten(_ byteCount: Int) { blocked?.byteCount += byteCount }
  /// Nothing waits: what comes next may come much later.
  mutating func noteEmpty() { blocked = nil }

  /// Half of the mark has gone. Where the kernel took it all at once more may wait. The mark moves by a factor of two at the
  /// most, since a single measure may be of a moment.
  mutating func noteDrained(_ now: UInt64) {
    defer { blocked = nil }
    guard !isFixed else { return }
    let taken = blocked.map { blocked in
      blocked.byteCount * Int(milliseconds) / max(1, Int(now) - Int(blocked.since))
    }
    let near = min(max(taken ?? .max, byteMark / 2), byteMark * 2)
    byteMark = min(max(near, bounds.lowerBound), bounds.upperBound)
  }
}
