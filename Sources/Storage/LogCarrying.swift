import Engine

/// How far the write-ahead log has been carried into the database, and what is done where readers hold it.
struct LogCarrying {
  var plan: CarryPlan
  /// Frames of the present log that the database has.
  var carriedFrames: Int32 = 0
  private var framesInLog: Int32 = 0
  /// New readers have been held off since, in milliseconds.
  private(set) var heldOffSince: Int64?
  private(set) var hasEndedReaders = false
  /// The log is not to be freed of its readers before it is so long.
  private var nextHoldingOff: Int32 = 0
  private var wasTried = false
  /// A commit has gone on with the log behind a try: something held it.
  private var isStuck = false

  /// ``StoreOptions/readerPatienceMilliseconds``.
  let patience: Int64

  init(_ plan: CarryPlan, patience: Int64) { (self.plan, self.patience) = (plan, patience) }

  mutating func noteCommit(inLog frames: Int32) {
    if frames <= framesInLog {
      // The log has begun anew: any other commit makes it longer.
      (carriedFrames, nextHoldingOff, wasTried, isStuck) = (0, 0, false, false)
    } else if wasTried {
      isStuck = true
    }
    framesInLog = frames
  }

  func waiting(inLog frames: Int32) -> Int32 { max(0, frames - carriedFrames) }

  mutating func noteTry() { wasTried = true }

  /// What was carried over did not let the log begin anew, and it has become long: there was a reader at every moment.
  func isHeld(_ pace: WritePace, inLog frames: Int32) -> Bool {
    isStuck && heldOffSince == nil && Int64(frames) >= 2 * Int64(plan.limit(pace)) && frames >= nextHoldingOff
  }

  mutating func holdOff(at now: Int64) { (heldOffSince, hasEndedReaders) = (now, false) }
  mutating func noteEnding() { hasEndedReaders = true }

  /// Where the log goes on all the same, something else than a reader of this process holds it: a backup, as a rule.
  mutating func letIn(inLog frames: Int32) {
    heldOffSince = nil
    nextHoldingOff = Int32(clamping: 2 * Int64(frames))
  }
}

extension Store {
  package func carryOver(_ occasion: CarryOccasion) throws { try carryOverIfDue(occasion) }

  /// The commit stands, so a failure here is not thrown: a fatal one is kept for the next write.
  func carryOverBehindCommit() { try? carryOver(.busy) }

  package var carryDelay: UInt64? {
    if carrying.heldOffSince != nil { return Store.readerLookMilliseconds }
    let inLog = gauge.pages
    return carrying.plan.waitsForQuiet(waiting: carrying.waiting(inLog: inLog), inLog: inLog)
      ? Store.quietMilliseconds : nil
  }

  /// Without a commit for so long, the store is at rest.
  private static let quietMilliseconds: UInt64 = 1_000
  /// How often it is looked whether the last reader has come back.
  private static let readerLookMilliseconds: UInt64 = 10

  /// Frames of the log that wait to be carried over.
  package var waitingFrames: Int { Int(carrying.waiting(inLog: gauge.pages)) }

  private func carryOverIfDue(_ occasion: CarryOccasion) throws(StoreError) {
    guard failure == nil else { return }
    if let since = carrying.heldOffSince { return try carryOverBehindReaders(since) }
    let inLog = gauge.pages
    if carrying.plan.isDue(occasion, pace, waiting: carrying.waiting(inLog: inLog), inLog: inLog) { try carryPiece() }
    guard carrying.isHeld(pace, inLog: inLog) else { return }
    let now = monotonicMilliseconds()
    readers.holdOff(until: now + 2 * carrying.patience)
    carrying.holdOff(at: now)
    try carryOverBehindReaders(now)
  }

  private func carryPiece() throws(StoreError) {
    let (begun, syncing, earlier) = (monotonicNanoseconds(), syncs.nanoseconds, carrying.carriedFrames)
    carrying.noteTry()
    do throws(StoreError) {
      let (frames, carried) = try carryOver()
      let spent = (monotonicNanoseconds() &- begun) &- (syncs.nanoseconds &- syncing)
      carrying.plan.note(carried: carrying.carriedFrames - earlier, nanoseconds: spent)
      if frames != carried { carrying.plan.noteLeft(inLog: gauge.pages, pace) }
    } catch {
      carrying.plan.noteLeft(inLog: gauge.pages, pace)
      throw error
    }
  }

  /// With no reader in it, the next commit begins the log anew. New ones wait meanwhile; one that stays for long is ended, and
  /// what it asked is to be asked again.
  private func carryOverBehindReaders(_ since: Int64) throws(StoreError) {
    if readers.areAllBack {
      defer { letReadersIn() }
      return try carryPiece()
    }
    let waited = monotonicMilliseconds() - since
    if waited >= carrying.patience, !carrying.hasEndedReaders {
      carrying.noteEnding()
      readers.endRunning()
    }
    if waited >= 2 * carrying.patience { letReadersIn() }
  }

  func letReadersIn() {
    readers.letIn()
    carrying.letIn(inLog: gauge.pages)
  }
}
