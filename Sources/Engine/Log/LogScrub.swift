import Replication

/// Reads the log over, a part at a time while nobody waits: what the disk no longer gives as it was written is to be found
/// while others have it still (S3, decision 61).
package struct LogScrub: Sendable {
  /// The arrival of the last run that this pass has read, and of the last that it is to read.
  private(set) var position: Int64 = 0
  private var end: Int64 = .max
  private var dueAt = MonotonicTime(milliseconds: 0)
  /// When somebody waits, the next part is read at this time all the same.
  private var overdueAt = MonotonicTime(milliseconds: 0)
  private var passBegan: MonotonicTime?
  private var isDemanded = false
  /// Whole passes since the start.
  package private(set) var passCount = 0
  /// Why the next part could not be read: something is wrong that is not of one row.
  package private(set) var failure: String?

  package static let partByteCount = 1 << 20
  package static let partRunCount = 1_024
  package static let crowdedMilliseconds: UInt64 = 10_000
  package static let retryMilliseconds: UInt64 = 600_000
  package static let passMilliseconds: UInt64 = 24 * 3_600_000

  func isDue(_ now: MonotonicTime, isCrowded: Bool) -> Bool {
    now >= (isCrowded ? overdueAt : dueAt)
  }

  /// Answers whether the pass has come to its end. What has come since it began is left to the next one.
  mutating func note(_ part: ScrubbedRuns, _ now: MonotonicTime) -> Bool {
    let began = passBegan ?? now
    if passBegan == nil { end = part.logEnd }
    (passBegan, position, failure) = (began, part.end, nil)
    dueAt = now.advanced(byMilliseconds: Mesh.tickMilliseconds)
    overdueAt = now.advanced(byMilliseconds: LogScrub.crowdedMilliseconds)
    guard part.isAll || position >= end else { return false }
    passCount += 1
    rest(until: isDemanded ? now : max(now, began.advanced(byMilliseconds: LogScrub.passMilliseconds)))
    return true
  }

  /// There is more to be found than could be remembered: another pass follows, behind one that is under way.
  mutating func demandPass(_ now: MonotonicTime) {
    if passBegan == nil { rest(until: now) } else { isDemanded = true }
  }

  private mutating func rest(until time: MonotonicTime) {
    (passBegan, position, dueAt, overdueAt, isDemanded) = (nil, 0, time, time, false)
  }

  mutating func noteFailure(_ reason: String, _ now: MonotonicTime) {
    failure = reason
    dueAt = now.advanced(byMilliseconds: LogScrub.retryMilliseconds)
    overdueAt = dueAt
  }
}

extension NodeEngine {
  /// Reads the next part of the log over, if that is due. Answers whether the first pass since the start has come to its end.
  func scrubLog(isCrowded: Bool) -> Bool {
    let now = state.clock.now
    guard storeFailure == nil, state.scrub.isDue(now, isCrowded: isCrowded) else { return false }
    do {
      let start = state.scrub.position
      let part = try state.store.scrub(
        after: start, byteLimit: LogScrub.partByteCount, countLimit: LogScrub.partRunCount)
      note(part, after: start)
      guard state.scrub.note(part, now) else { return false }
      state.damagedRuns.noteScrubbed()
      return state.scrub.passCount == 1
    } catch {
      // Whatever reads it next tells what is to be done. Until then the node goes on as if nobody had looked.
      state.scrub.noteFailure("\(error)", now)
      journal.note(.error, "the log could not be read over", ["reason": .text("\(error)")])
      return false
    }
  }

  private func note(_ part: ScrubbedRuns, after start: Int64) {
    let found = part.damaged.count { state.damagedRuns.note($0.run, in: $0.partition) }
    if found > 0 {
      journal.note(.error, "runs of the log are not as they were written", ["runs": .text("\(found)")])
    }
    let damaged = part.misplaced.union(part.damaged.map(\.run.arrival))
    for (run, chain) in state.damagedRuns.known(after: start, through: part.end) where !damaged.contains(run.arrival) {
      noteReadable(run, chain)
    }
  }

  /// The disk gives a run again by itself. What it writes was left as it was if something moved meanwhile.
  private func noteReadable(_ run: DamagedRun, _ chain: DamagedRuns.Chain) {
    let place = ChainIdentity(fleet: state.identity.fleet, partition: chain.partition, replica: chain.replica)
    do {
      if state.owesDocuments,
        let stored = try state.store.run(at: RunPlace(last: run.last, arrival: run.arrival), of: place)
      {
        let owed = try RunReader(state.identity).documents(writtenBy: stored, of: chain.partition, state.store)
        try store { transaction in for key in owed { try transaction.setAside(key, in: chain.partition) } }
        state.takeSetAside(owed.map { (chain.partition, $0) })
      }
      noteMended(run, chain, cameAnew: false)
    } catch {
      journal.note(.debug, "a run that reads again is left for damaged", ["reason": .text("\(error)")])
    }
  }

  /// A start is to know that damage was known before, until the log was read over and is whole.
  func noteDamage() {
    let isDamaged = !state.damagedRuns.isWhole
    let isDue = isDamaged ? !state.isLogDamaged : state.isLogDamaged && state.scrub.passCount > 0
    guard failure == nil, isDue, state.clock.now >= damageNoteDue else { return }
    do {
      try store { try $0.setLogDamaged(isDamaged) }
      state.isLogDamaged = isDamaged
    } catch {
      // As with a full disk.
      damageNoteDue = state.clock.now.advanced(byMilliseconds: LogScrub.retryMilliseconds)
      journal.note(.debug, "that the log is damaged could not be written down", ["reason": .text("\(error)")])
    }
  }
}
