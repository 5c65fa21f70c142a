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
  /// Passes since the start, and those of them that passed over nothing.
  package private(set) var passCount = 0
  package private(set) var wholePassCount = 0
  /// Why something of this pass or of the last one could not be read: it is not of one row, or not where it should be.
  package private(set) var failure: String?
  /// What this pass did not read, parts and rows.
  private var passedOverCount = 0
  /// The last pass left out nothing.
  private var wasWhole = true
  /// Passes since the last whole one.
  private var brokenPassCount = 0
  /// The last part that could not be read was to begin behind this arrival; the next one begins so far behind that.
  private var failedAt: Int64?
  private var step: Int64 = 1
  /// Arrivals of the damaged runs that this pass has met, or the last one has, to which contexts of later ones may refer.
  private var damagedBases: Set<Int64> = []

  package static let partByteCount = 1 << 20
  package static let partRunCount = 1_024
  package static let crowdedMilliseconds: UInt64 = 10_000
  package static let retryMilliseconds: UInt64 = 600_000
  static let noteAgainMilliseconds: UInt64 = 5_000
  package static let passMilliseconds: UInt64 = 24 * 3_600_000
  /// Of these more are taken for intact than are, until the first ones are mended.
  static let baseLimit = 4_096

  func isDue(_ now: MonotonicTime, isCrowded: Bool) -> Bool {
    now >= (isCrowded ? overdueAt : dueAt)
  }

  /// Answers whether the pass has come to its end. What has come since it began is left to the next one.
  mutating func note(_ part: ScrubbedRuns, _ now: MonotonicTime) -> Bool {
    let began = passBegan ?? now
    if passBegan == nil { end = part.logEnd }
    (passBegan, position, failedAt, step) = (began, part.end, nil, 1)
    if part.damagedBases.count <= LogScrub.baseLimit { damagedBases = part.damagedBases }
    passedOverCount += part.misplacedCount
    if part.misplacedCount > 0 { failure = "\(part.misplacedCount) of its rows are not where their index has them" }
    if passedOverCount == 0, wasWhole { failure = nil }
    dueAt = now.advanced(byMilliseconds: Mesh.tickMilliseconds)
    overdueAt = now.advanced(byMilliseconds: LogScrub.crowdedMilliseconds)
    guard part.isAll || position >= end else { return false }
    passCount += 1
    wasWhole = passedOverCount == 0
    brokenPassCount = wasWhole ? 0 : brokenPassCount + 1
    if wasWhole { (wholePassCount, failure) = (wholePassCount + 1, nil) }
    rest(until: nextPass(began, now))
    return true
  }

  /// Behind one that was not whole nothing new may be said of what is held: what was not given may be given by now. A disk that never
  /// gives it is asked less and less often.
  private func nextPass(_ began: MonotonicTime, _ now: MonotonicTime) -> MonotonicTime {
    if isDemanded { return now }
    let pause = LogScrub.retryMilliseconds << UInt64(min(max(brokenPassCount, 1) - 1, 8))
    guard brokenPassCount == 0 || pause > LogScrub.passMilliseconds else { return now.advanced(byMilliseconds: pause) }
    return max(now, began.advanced(byMilliseconds: LogScrub.passMilliseconds))
  }

  /// There is more to be found than could be remembered: another pass follows, behind one that is under way.
  mutating func demandPass(_ now: MonotonicTime) {
    if passBegan == nil { rest(until: now) } else { isDemanded = true }
  }

  var basesOfPass: Set<Int64> { passBegan == nil ? [] : damagedBases }

  /// Runs whose contexts refer to it read again: the next pass tells which.
  mutating func noteMended(_ run: DamagedRun, _ now: MonotonicTime) {
    if damagedBases.remove(run.arrival) != nil { demandPass(now) }
  }

  private mutating func rest(until time: MonotonicTime) {
    (passBegan, position, dueAt, overdueAt, isDemanded) = (nil, 0, time, time, false)
    (passedOverCount, step) = (0, 1)
  }

  /// - Parameter isOfDisk: what lies there is not given. The second time it is passed over, with all behind it that is not given,
  ///   either.
  mutating func noteFailure(_ reason: String, isOfDisk: Bool, _ now: MonotonicTime) {
    let isPassedOver = isOfDisk && (step > 1 || failedAt == position)
    (failure, failedAt) = (reason, position)
    dueAt = now.advanced(byMilliseconds: isPassedOver ? LogScrub.crowdedMilliseconds : LogScrub.retryMilliseconds)
    overdueAt = dueAt
    guard isPassedOver else { return }
    passedOverCount += 1
    position += step
    step = min(step * 2, Int64(LogScrub.partRunCount))
  }
}

extension NodeEngine {
  /// Reads the next part of the log over, if that is due. Answers whether all damage is known from now on, and was not before.
  func scrubLog(isCrowded: Bool) -> Bool {
    let now = state.clock.now
    guard storeFailure == nil, state.scrub.isDue(now, isCrowded: isCrowded) else { return false }
    do {
      let start = state.scrub.position
      var part = try state.store.scrub(
        after: start, damagedBases: state.scrub.basesOfPass, byteLimit: LogScrub.partByteCount,
        countLimit: LogScrub.partRunCount)
      try decodeRunsWithoutSum(of: &part)
      note(part, after: start)
      let (knewDamage, wholePasses) = (state.knowsDamage, state.scrub.wholePassCount)
      if state.scrub.note(part, now), state.scrub.wholePassCount > wholePasses { state.damagedRuns.noteScrubbed() }
      return !knewDamage && state.knowsDamage
    } catch {
      // Whatever reads it next tells what is to be done. Until then the node goes on as if nobody had looked.
      state.scrub.noteFailure("\(error)", isOfDisk: isOfDisk(error), now)
      journal.note(.error, "the log could not be read over", ["reason": .text("\(error)")])
      return false
    }
  }

  private func isOfDisk(_ error: any Error) -> Bool {
    (error as? any StoreFailure).map { $0.isFatal && !$0.isOfOneRow } ?? false
  }

  /// A body that is broken behind its beginning is told by nothing else. Contexts that refer to such a row are as they were.
  private func decodeRunsWithoutSum(of part: inout ScrubbedRuns) throws {
    for (partition, run) in part.withoutSum where try !decodes(run, in: partition) {
      part.intact.remove(run.arrival)
      part.damaged.append((partition, run))
    }
  }

  private func decodes(_ run: DamagedRun, in partition: PartitionID) throws -> Bool {
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: run.replica)
    do {
      let body = try state.store.body(at: RunPlace(last: run.last, arrival: run.arrival), of: chain)
      _ = try body.map { try RunReader(state.identity).decode($0, in: partition) }
      return true
    } catch let failure where DamagedLog.isOfOneRow(failure) {
      return false
    }
  }

  private func note(_ part: ScrubbedRuns, after start: Int64) {
    let found = part.damaged.count { state.damagedRuns.note($0.run, in: $0.partition) }
    if found > 0 {
      journal.note(.error, "runs of the log are not as they were written", ["runs": .text("\(found)")])
    }
    if part.misplacedCount > 0 {
      journal.note(
        .error, "rows of the log are not where their index has them", ["rows": .text("\(part.misplacedCount)")])
    }
    noteReadable(
      state.damagedRuns.known(after: start, through: part.end).filter { part.intact.contains($0.run.arrival) })
  }

  /// The disk gives these runs again by itself. What they write was left as it was if something moved meanwhile.
  private func noteReadable(_ runs: [(run: DamagedRun, chain: DamagedRuns.Chain)]) {
    var (readable, owed) = (runs, [(partition: PartitionID, key: DocumentKey)]())
    readable.removeAll { run, chain in
      do {
        owed += try documentsOwed(by: run, chain).map { (chain.partition, $0) }
        return false
      } catch {
        journal.note(.debug, "a run that reads again is left for damaged", ["reason": .text("\(error)")])
        return true
      }
    }
    guard !readable.isEmpty else { return }
    do {
      try store { transaction in
        for partition in Set(readable.map(\.chain.partition)).sorted() { try transaction.noteRebuild(of: partition) }
        for document in owed { try transaction.setAside(document.key, in: document.partition) }
      }
      state.takeSetAside(owed)
      for (run, chain) in readable { noteMended(run, chain, cameAnew: false) }
    } catch {
      journal.note(.error, "runs that read again are left for damaged", ["reason": .text("\(error)")])
    }
  }

  private func documentsOwed(by run: DamagedRun, _ chain: DamagedRuns.Chain) throws -> [DocumentKey] {
    let place = ChainIdentity(fleet: state.identity.fleet, partition: chain.partition, replica: chain.replica)
    guard let stored = try state.store.run(at: RunPlace(last: run.last, arrival: run.arrival), of: place) else {
      throw DamagedLog("a run is not where it was")
    }
    let reader = RunReader(state.identity)
    // A row without a sum counts as it is.
    _ = try reader.decode(stored, in: chain.partition)
    guard state.owesDocuments else { return [] }
    return try reader.documents(writtenBy: stored, of: chain.partition, state.store).sorted()
  }

  /// A start is to know that damage was known before, until the log was read over and is whole.
  func noteDamage() {
    let isDamaged = !state.damagedRuns.isWhole
    let isDue = isDamaged ? !state.isLogDamaged : state.isLogDamaged && state.scrub.wholePassCount > 0
    guard failure == nil, isDue, state.clock.now >= damageNoteDue else { return }
    do {
      try store { try $0.setLogDamaged(isDamaged) }
      state.isLogDamaged = isDamaged
    } catch {
      // As with a full disk. Soon: a word that was taken back meanwhile is not to be given again behind a start.
      damageNoteDue = state.clock.now.advanced(byMilliseconds: LogScrub.noteAgainMilliseconds)
      journal.note(.debug, "that the log is damaged could not be written down", ["reason": .text("\(error)")])
    }
  }
}
