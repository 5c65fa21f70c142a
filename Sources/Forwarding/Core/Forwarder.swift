import Links
import Replication

/// Decides what a relay does to bring a backend up to its log: a value without IO. It takes what happened and answers with what
/// is to be done; time and chance are handed in.
///
/// Whoever drives it carries out one directive after the other and tells how each ended. At any moment it waits for one
/// outcome at the most, so that it holds nothing but one page of the log.
package struct Forwarder: Sendable {
  package enum Phase: Equatable, Sendable {
    /// Until the moment, or until somebody does not want to wait.
    case pausing(until: MonotonicTime)
    case connecting
    case reading
    case loading
    case committing(Page)
    /// What the ledger has is read there. `idleSince`: it had everything before; nil in the middle of sending.
    case readingBack(idleSince: MonotonicTime?)
    /// The ledger has all that this store holds, but for what was put aside.
    case idle(since: MonotonicTime)
  }

  package let limits: ForwarderLimits
  package private(set) var phase = Phase.pausing(until: MonotonicTime(milliseconds: 0))
  package private(set) var view = LedgerView()
  /// Why forwarding does not go on; nil where it does.
  package private(set) var problem: BackendProblem?
  /// Changes that the ledger had and then lacked, at the last reading that showed so.
  package private(set) var lost: UInt64 = 0
  /// The ledger has all that came to the log up to here, on the log's own form; empty: not known yet.
  package private(set) var reached = ""
  /// Documents that the backend left as another relay wrote them, when all was sent last.
  package private(set) var staleCount = 0
  /// The log as it was when it was looked at last.
  package private(set) var held = LogAmount()
  /// It was held against the ledger since the start.
  package private(set) var hasRead = false
  package private(set) var oldestWaiting: Int64?
  private var statementsAfter: Int64 = 0
  private var lanes = ForwardLanes()
  /// What counts of partitions whose marks are to be looked at.
  private var unmarked: [PartitionID: VersionVector] = [:]
  /// Where the log was when that was so, on its own form.
  private var unmarkedAt = ""
  /// With marks that the backend left alone, since another relay may know more: looked at again when something has moved.
  private var staleMarks: [PartitionID: VersionVector] = [:]
  private var hasNews = false
  /// Somebody asked while something was under way.
  private var isToReadAgain = false
  private var backOff = BackOff()
  private var share = BatchShare()
  private var isConnected = false
  private var asideSince: MonotonicTime?
  private static let gapSentence = "it does not go on from what the ledger has, which was read anew"
  /// Batches that the ledger refused since it took one whole, as a row of them did not go on from what it has.
  private var gapCount = 0
  private var readBacks = ReadBackSchedule()
  private var steps = BatchSteps()
  /// ``LedgerSums/batches`` without those of this process, when the ledger told it last.
  private var batchesOfOthers: UInt64 = 0

  package init(limits: ForwarderLimits = ForwarderLimits()) { self.limits = limits }

  package mutating func handle(
    _ event: Event, now: MonotonicTime, random: inout some RandomNumberGenerator
  ) -> [Directive] {
    switch event {
    case .start: return goOn(now)
    case .connected:
      isConnected = true
      phase = .reading
      return [.readLedger]
    case .ledgerRead(let reading): return take(reading, now)
    case .loaded(let page): return take(page, now)
    case .committed(let outcome): return committed(outcome, now)
    case .readBack(let outcome): return readBack(outcome, now)
    case .failed(let problem): return failed(problem, now, &random)
    case .news(let moved, let position):
      (hasNews, unmarkedAt) = (true, position)
      unmarked.merge(moved) { _, new in new }
      for partition in moved.keys { staleMarks[partition] = nil }
      return goOn(now)
    case .timer: return goOn(now)
    case .sendNow: return sendNow()
    case .allowance(let allowance): return take(allowance, now)
    }
  }

  /// When a ``Event/timer`` is due; nil while an outcome is awaited.
  package var nextWake: MonotonicTime? {
    switch phase {
    case .pausing(let until): until
    case .idle(let since):
      [
        since.advanced(byMilliseconds: limits.lookMilliseconds),
        lanes.isForAuthority ? nil : readBacks.due(pacedLimits),
      ].compactMap { $0 }.min()
    case .connecting, .reading, .loading, .committing, .readingBack: nil
    }
  }

  // MARK: Connecting

  private mutating func connect() -> [Directive] {
    phase = .connecting
    return [.connect]
  }

  private mutating func take(_ reading: LedgerReading, _ now: MonotonicTime) -> [Directive] {
    let missing = max(reading.lost, reading.view.lost(since: view))
    if missing > 0 { lost = missing }
    view = reading.view
    statementsAfter = 0
    lanes.begin(runsAfter: reading.runsAfter, reading.documents)
    steps.begin(at: reading.step)
    batchesOfOthers = reading.batches - min(reading.batches, reading.step)
    (unmarked, unmarkedAt) = (reading.accepted, reading.position)
    staleMarks = [:]
    (held, hasRead, problem, asideSince) = (reading.held, true, nil, nil)
    readBacks.requireEverything()
    return readBackIfDue(now) ?? load()
  }

  private mutating func failed(
    _ problem: BackendProblem, _ now: MonotonicTime, _ random: inout some RandomNumberGenerator
  ) -> [Directive] {
    self.problem = problem
    if case .committing(let page) = phase, problem.kind == .rejected { return narrow(to: page, problem.sentence, now) }
    if case .committing(let page) = phase, problem.isOfRow {
      gapCount += 1
      // The ledger was read anew, and it is so again: one of the rows is not what it should be, and is to stop nothing else.
      if gapCount > 1 { return narrow(to: page, Forwarder.gapSentence, now) }
    }
    // It ended the whole of it: less at once may take it no longer than it grants.
    if case .committing(let page) = phase, problem.isLackOfTime,
      share.slow(below: page.batch, bytes: batchBytes, limits)
    {
      return load()
    }
    // A lost connection leaves open whether a batch is in: the ledger is asked before anything is sent again.
    phase = .pausing(until: now.advanced(byMilliseconds: backOff.next(limits, &random)))
    guard isConnected else { return [] }
    isConnected = false
    return [.disconnect]
  }

  private mutating func sendNow() -> [Directive] {
    readBacks.requireEverything()
    switch phase {
    case .pausing:
      backOff.reset()
      return connect()
    case .idle where view.hasRefusals || lanes.hasDeadLetters:
      phase = .reading
      return [.readLedger]
    case .idle: return loadAnew()
    case .connecting, .reading: return []
    case .loading, .committing, .readingBack:
      isToReadAgain = true
      return []
    }
  }

  private mutating func goOn(_ now: MonotonicTime) -> [Directive] {
    switch phase {
    case .pausing(let until):
      guard now >= until else { return [] }
      if mayConnect { return connect() }
      phase = .pausing(until: now.advanced(byMilliseconds: limits.longestPauseMilliseconds))
      return []
    case .idle(let since):
      if let asideSince, now >= asideSince.advanced(byMilliseconds: pacedLimits.asideMilliseconds) {
        phase = .reading
        return [.readLedger]
      }
      if hasNews || now >= since.advanced(byMilliseconds: limits.lookMilliseconds) { return loadAnew() }
      return readBackIfDue(now, idleSince: since) ?? []
    case .connecting, .reading, .loading, .committing, .readingBack: return []
    }
  }

  // MARK: The link

  /// What the link lets pass has moved. At its limit a connection that stands is kept for statements, and none is made: to
  /// ask a ledger what it has would cost more than they.
  private mutating func take(_ allowance: LinkAllowance, _ now: MonotonicTime) -> [Directive] {
    guard lanes.allow(allowance) else { return [] }
    switch phase {
    case .idle where allowance.passage == .nothing, .pausing where allowance.passage == .nothing:
      phase = .pausing(until: now)
      guard isConnected else { return [] }
      isConnected = false
      return [.disconnect]
    case .idle: return loadAnew()
    case .pausing where mayConnect: return sendNow()
    case .pausing, .connecting, .reading, .loading, .committing, .readingBack: return []
    }
  }

  /// Over a link that is paid for the ledger is asked less often.
  private var pacedLimits: ForwarderLimits { lanes.allowance.isThin ? limits.thinned : limits }
  /// Whether the office may be asked for edits, which takes that the ledger has all that this node holds of what the link carries;
  /// so long apart at the least.
  package var editPaceMilliseconds: UInt64? {
    guard hasSentWhatIsCarried, !lanes.isForAuthority else { return nil }
    return lanes.allowance.isThin ? limits.thinEditMilliseconds : 0
  }

  /// Partitions of which changes pass over the link now, or beginnings of their names with `*` behind; nil: all.
  package var carriedPatterns: [Text]? { lanes.carriedPatterns }

  private var mayConnect: Bool {
    switch lanes.allowance.passage {
    case .everything, .partitions: true
    case .authority, .nothing: false
    }
  }

  // MARK: Sending

  private mutating func loadAnew() -> [Directive] {
    takeUpStale()
    return load()
  }

  /// What the backend left alone is sent again.
  private mutating func takeUpStale() {
    lanes.takeUpStale()
    lanes.lookAgain()
    unmarked.merge(staleMarks) { newer, _ in newer }
    (staleMarks, view.left) = ([:], [:])
  }

  private mutating func load() -> [Directive] {
    guard !lanes.isOutdated else {
      phase = .reading
      return [.readLedger]
    }
    // What came meanwhile may be what was lacking.
    if hasNews { takeUpStale() }
    hasNews = false
    phase = .loading
    let lane = lanes.current
    return [
      .load(
        LoadRequest(
          view: view, statementsAfter: statementsAfter, runsAfter: lane.runsAfter, unmarked: unmarked,
          unmarkedAt: unmarkedAt,
          bytes: share.of(batchBytes), changes: share.of(limits.batchChanges), marks: share.of(limits.batchMarks),
          documents: lane.documents, isNarrowed: share.shift > 0, isSearching: share.isNarrowed,
          filter: lane.filter, isForAuthority: lanes.isForAuthority))
    ]
  }

  private var batchBytes: Int {
    lanes.allowance.isThin ? min(limits.batchBytes, limits.thinBatchBytes) : limits.batchBytes
  }

  private mutating func take(_ page: Page, _ now: MonotonicTime) -> [Directive] {
    held = page.held
    oldestWaiting = page.oldestArrived
    if page.batch.isEmpty { return settle(page, now) }
    var page = page
    page.batch.step = steps.next(by: page.documents.writer)
    phase = .committing(page)
    return [.commit(page.batch)]
  }

  private mutating func committed(_ outcome: AppendOutcome, _ now: MonotonicTime) -> [Directive] {
    guard case .committing(let page) = phase else { return [] }
    view.take(page.batch, outcome)
    steps.take(page.batch.step)
    // In a backlog they are looked at again at its end.
    if page.isEnd { view.leave(outcome, of: page.batch) }
    backOff.reset()
    problem = nil
    // In halves it is still being looked for.
    if !share.isNarrowed { gapCount = 0 }
    share.take()
    move(to: page, now)
    lanes.current.documents.note(outcome, of: page.batch)
    readBacks.note(page.batch)
    return readBackIfDue(now) ?? load()
  }

  /// Nothing of the page is for the ledger, or all of it is in.
  private mutating func move(to page: Page, _ now: MonotonicTime) {
    for (chain, row) in page.unread {
      view.aside[chain] = row
      asideSince = asideSince ?? now
    }
    statementsAfter = page.statementsEnd
    (lanes.current.runsAfter, lanes.current.documents) = (page.runsEnd, page.documents)
    // What moved meanwhile stays to be looked at.
    let left = Set(view.left.keys.lazy.map(\.partition))
    for (partition, vector) in page.marked where unmarked[partition] == vector {
      unmarked[partition] = nil
      if left.contains(partition) { staleMarks[partition] = vector }
    }
  }

  private mutating func settle(_ page: Page, _ now: MonotonicTime) -> [Directive] {
    move(to: page, now)
    gapCount = 0
    if lanes.isForAuthority { return rest(since: now, now) }
    guard page.isEnd, !page.hasMoreDocuments, !hasNews, !lanes.endLane(), !lanes.isOutdated else { return load() }
    if view.aside.isEmpty, !lanes.isHeldBack {
      // Bytes of a backlog were an estimate; here the ledger has all.
      view.amount = held
      problem = nil
      if !view.hasRefusals { reached = lanes.current.documents.position }
    }
    staleCount = lanes.staleDocumentCount
    return rest(since: now, now)
  }

  /// The ledger has everything.
  private mutating func rest(since: MonotonicTime, _ now: MonotonicTime) -> [Directive] {
    // What the link carries has moved meanwhile.
    guard !lanes.isOutdated else { return load() }
    phase = .idle(since: since)
    guard isToReadAgain else { return readBackIfDue(now, idleSince: since) ?? [] }
    isToReadAgain = false
    return sendNow()
  }

  // MARK: Reading back

  private mutating func readBackIfDue(_ now: MonotonicTime, idleSince: MonotonicTime? = nil) -> [Directive]? {
    guard !lanes.isForAuthority, let request = readBacks.take(pacedLimits, now) else { return nil }
    phase = .readingBack(idleSince: idleSince)
    return [.readBack(request)]
  }

  private mutating func readBack(_ outcome: ReadBackOutcome, _ now: MonotonicTime) -> [Directive] {
    guard case .readingBack(let since) = phase else { return [] }
    if outcome.wentBack || outcome.documents.map(isOfElsewhere) ?? false || lacksStatements(outcome) {
      phase = .reading
      return [.readLedger]
    }
    batchesOfOthers = outcome.documents?.batchesOfOthers ?? batchesOfOthers
    let corrected = view.correct(outcome)
    unmarked.merge(corrected) { _, newer in newer }
    let isToSendUnsure = lanes.takeUp(unsure: outcome.documents?.unsure ?? [])
    let knowsOfMore = outcome.elsewhere.map { $0 != view.elsewhere } ?? false
    view.elsewhere = outcome.elsewhere ?? view.elsewhere
    guard let since else { return load() }
    // What the backend left alone may be this relay's to say by now.
    return hasNews || isToSendUnsure || knowsOfMore || !corrected.isEmpty ? loadAnew() : rest(since: since, now)
  }

  /// The backend is not as this process left it: it was put back, or a copy of this directory has sent its own documents.
  private func isOfElsewhere(_ news: DocumentNews) -> Bool {
    news.step != steps.kept || news.position != lanes.current.documents.kept
      || news.batchesOfOthers < batchesOfOthers
  }

  /// It lost some that it had, whoever brought them.
  private func lacksStatements(_ outcome: ReadBackOutcome) -> Bool {
    outcome.statements.map { !view.statements.isSubset(of: $0) } ?? false
  }

  // MARK: What a backend rejects

  /// Halves the batch until one row is left, and puts the chain of that aside: others go on.
  private mutating func narrow(to page: Page, _ sentence: String, _ now: MonotonicTime) -> [Directive] {
    guard page.batch.itemCount == 1, page.batch.marks.isEmpty || page.batch.hasNoRows else {
      share.narrow()
      return load()
    }
    if let run = page.batch.runs.first {
      view.aside[run.chain] = RefusedRow(run.first...max(run.first, run.last), sentence)
    } else if let document = page.batch.documents.first, document.isAlive, document.refusal == nil {
      // Its row goes without the body: a dead letter. A look behind finds it again.
      lanes.current.documents.refuse(document, sentence)
      return load()
    } else if !page.batch.documents.isEmpty || !page.batch.ranges.isEmpty {
      move(to: page, now)
    } else if let mark = page.batch.marks.first {
      view.aside[mark.chain] = RefusedRow(nil, sentence)
    }
    // It is not sent again until the ledger is read anew, and is not known to be there either.
    if let statement = page.batch.statements.first {
      view.refuse(statement, sentence)
      move(to: page, now)
    }
    asideSince = asideSince ?? now
    return load()
  }
}

extension Forwarder {
  /// What the backend lacks.
  package var lag: LogAmount {
    if isAtRest, view.aside.isEmpty, !lanes.isHeldBack { return LogAmount() }
    return held.exceeding(view.amount)
  }

  package var state: ForwardingState {
    if let problem { return ForwardingState(problem) }
    if hasSentWhatIsCarried, !lanes.isHeldBack || lag.changes == 0 { return .caughtUp }
    return .lagging
  }

  private var hasSentWhatIsCarried: Bool { problem == nil && isAtRest && !view.hasRefusals }

  /// Up to here the runs of the log were looked at; nil where partitions go one after the other.
  package var runsAfter: Int64? { lanes.current.filter == nil ? lanes.current.runsAfter : nil }

  /// Which process wrote down the position of documents that the ledger keeps and that this one goes on from; a dash: none.
  package var keptBy: String { lanes.current.documents.keptBy }
  /// Documents that the backend is known to hold without a body.
  package var deadLetterCount: Int { lanes.deadLetterCount }
  /// What the link lets pass keeps something back; empty where it does not.
  package var linkSentence: String {
    switch lanes.allowance.passage {
    case .everything: ""
    case .partitions: isAtRest && lag.changes > 0 ? "the link does not carry all partitions" : ""
    case .authority: "the link has carried its bytes of today, and lets authority alone pass"
    case .nothing: "the link is of the class none"
    }
  }

  private var isAtRest: Bool {
    switch phase {
    case .idle: true
    case .readingBack(let since): since != nil
    case .pausing, .connecting, .reading, .loading, .committing: false
    }
  }
}
