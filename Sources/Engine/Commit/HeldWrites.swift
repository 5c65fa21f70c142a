import Replication

/// Own writes that wait until it is known under which replica id they may stand: a peer claims more of the own chain than
/// is here, or the id is in doubt and was drawn too lately to be renewed (rule C20).
struct HeldWrites {
  private struct Waiting {
    let job: LocalWriteJob
    let since: MonotonicTime
  }

  private var waiting: [Waiting] = []

  /// No write waits longer than one claim may hold it, however many follow on one another.
  static let holdMilliseconds = OwnChainClaims.holdMilliseconds

  mutating func put(_ job: LocalWriteJob, _ now: MonotonicTime) { waiting.append(Waiting(job: job, since: now)) }

  func holds(_ partition: PartitionName) -> Bool { waiting.contains { $0.job.partition == partition } }

  /// When the one that waits longest goes on, whatever is known by then.
  var nextRelease: MonotonicTime? { waiting.first?.since.advanced(byMilliseconds: HeldWrites.holdMilliseconds) }

  /// Those that go on, in their order: nothing holds their partition any more, or they have waited long enough.
  mutating func take(_ now: MonotonicTime, _ mustHold: (PartitionName) -> Bool) -> [LocalWriteJob] {
    guard !waiting.isEmpty else { return [] }
    var isHeld: [PartitionName: Bool] = [:]
    var (ready, rest) = ([LocalWriteJob](), [Waiting]())
    for item in waiting {
      let name = item.job.partition
      let isOld = now.millisecondsSince(item.since) >= HeldWrites.holdMilliseconds
      if isHeld[name] == nil { isHeld[name] = mustHold(name) }
      if isOld || isHeld[name] == false { ready.append(item.job) } else { rest.append(item) }
    }
    waiting = rest
    return ready
  }

  mutating func takeAll() -> [LocalWriteJob] {
    defer { waiting = [] }
    return waiting.map(\.job)
  }
}
