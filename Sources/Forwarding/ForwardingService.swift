import Dispatch
import Glibc
import Kernel
import Links
import Replication
import Storage
import Synchronization

/// Drives a ``Forwarder`` with a node's log and a backend, on a thread of its own: whatever the backend does, the mesh does not
/// wait for it.
package final class ForwardingService: Sendable {
  private struct Shared {
    var report = ForwardingReport()
    var oldestWaiting: Int64?
    /// Nil where nothing is known of the ledger yet.
    var seen: SeenLog?
    var pace = BacklogPace()
    /// The reason that was told last, empty where it went on.
    var toldSentence: String?
    var isToSendNow = false
    var isStopped = false
  }

  private let source: any ForwardingSource
  private let backend: any Backend
  private let limits: ForwarderLimits
  private let home: EditWay?
  private let allowance: @Sendable () -> LinkAllowance
  private let stateChanged: @Sendable (ForwardingReport) -> Void
  private let shared = Mutex(Shared())
  private let lookUp: ArrivalLookUp
  private let ended = DispatchSemaphore(value: 0)

  /// - Parameters:
  ///   - home: nil where no edits are brought home.
  ///   - allowance: what the link to the backend lets pass; asked again and again, on the forwarder's thread.
  ///   - stateChanged: told on the forwarder's thread.
  package init(
    source: any ForwardingSource, backend: any Backend, limits: ForwarderLimits = ForwarderLimits(),
    home: EditWay? = nil, allowance: @escaping @Sendable () -> LinkAllowance = { .free },
    stateChanged: @escaping @Sendable (ForwardingReport) -> Void = { _ in }
  ) {
    (self.source, self.backend, self.limits, self.stateChanged) = (source, backend, limits, stateChanged)
    (self.home, self.allowance, lookUp) = (home, allowance, ArrivalLookUp(source))
    shared.withLock { $0.report.backend = backend.name }
  }

  package func start() throws(SystemError) {
    try DedicatedThread.start("seamesh forward") { [self] in
      run()
      ended.signal()
    }
  }

  /// What is under way is left as it is: the ledger is asked at the next start.
  package func stop() {
    shared.withLock { $0.isStopped = true }
    backend.interrupt()
    source.wake()
    // Looking up a host's name can take longer, and then ends with the process.
    _ = ended.wait(timeout: .now() + .seconds(5))
  }

  /// Without the pause that a failure made.
  package func sendNow() {
    shared.withLock { $0.isToSendNow = true }
    source.wake()
  }

  /// What ``allowance`` answers may have moved.
  package func linkMoved() { source.wake() }

  package var report: ForwardingReport {
    var (told, oldest, seen) = shared.withLock { ($0.report, $0.oldestWaiting, $0.seen) }
    if let seen, let held = source.held {
      let news = held.exceeding(seen.amount)
      told.add(news, of: held)
      if oldest == nil, news.changes > 0 { oldest = arrivalOfFirst(behind: seen) }
    }
    guard let oldest, told.lag.changes > 0 else { return told }
    told.lagMilliseconds = max(0, source.wallMilliseconds - oldest)
    return told
  }

  /// Nil where that is not known yet.
  private func arrivalOfFirst(behind seen: SeenLog) -> Int64? {
    guard let arrival = seen.runsAfter else { return nil }
    lookUp.first(behind: arrival) { [self] first in
      shared.withLock { if $0.seen == seen, $0.oldestWaiting == nil { $0.oldestWaiting = first } }
    }
    return shared.withLock { $0.seen == seen ? $0.oldestWaiting : nil }
  }

  // MARK: The thread

  private func run() {
    var forwarder = Forwarder(limits: limits)
    var memory = LedgerNotes(source, limits)
    let seen = seenBefore(memory.last)
    shared.withLock { $0.seen = seen }
    let process = String(UInt64.random(in: 1 ... .max), radix: 16)
    let runner = DirectiveRunner(source: source, backend: backend, limits: limits, process: process)
    let carrier = home.map { EditCarrier($0, limits, source, clock: ForwardingService.timeWithSleep) }
    var random = SystemRandomNumberGenerator()
    var allowed = allowance()
    var events: [Forwarder.Event] = [.allowance(allowed), .start]
    while !shared.withLock({ $0.isStopped }) {
      if events.isEmpty { events = wait(for: forwarder, carrier) }
      let moved = allowance()
      if moved != allowed { events.insert(.allowance(moved), at: 0) }
      allowed = moved
      guard !events.isEmpty else { continue }
      let now = ForwardingService.now()
      let directives = forwarder.handle(events.removeFirst(), now: now, random: &random)
      tell(forwarder, now)
      memory.note(forwarder, of: backend, at: now)
      for directive in directives {
        let next = forwarder.nextLoad(now: now, random: &random)
        guard let event = runner.run(directive, memory.last, next: next) else { continue }
        if case .commit(let batch) = directive, case .committed = event { noteForwarded(batch) }
        events.append(event)
      }
    }
    memory.write()
    backend.disconnect()
  }

  private func wait(for forwarder: Forwarder, _ carrier: EditCarrier?) -> [Forwarder.Event] {
    var due = forwarder.nextWake ?? ForwardingService.now()
    // Only while the ledger has all that this node holds.
    let looksForEdits = forwarder.editPaceMilliseconds.flatMap { carrier?.nextLook(paced: $0) }
    let untilLook = looksForEdits.map { $0.millisecondsSince(ForwardingService.timeWithSleep()) }
    let isForEdits = untilLook.map { ForwardingService.now().advanced(byMilliseconds: $0) < due } ?? false
    if isForEdits, let untilLook { due = ForwardingService.now().advanced(byMilliseconds: untilLook) }
    let patience = due.millisecondsSince(ForwardingService.now())
    let news = source.news(timeoutMilliseconds: patience)
    let isToSendNow = shared.withLock { shared in
      defer { shared.isToSendNow = false }
      return shared.isToSendNow
    }
    // News is told once, also where somebody asks at the same moment.
    let asked: [Forwarder.Event] = isToSendNow ? [.sendNow] : []
    switch news {
    case .moved(let vectors, let position): return [.news(vectors, at: position)] + asked
    case .missed: return [newsOfEverything] + asked
    case .nothing where isToSendNow: return asked
    case .nothing: return isForEdits ? bringHome(carrier, forwarder) : [.timer]
    case .stopped: return []
    }
  }

  private var newsOfEverything: Forwarder.Event {
    do {
      let accepted = try source.accepted()
      return .news(accepted.vectors, at: accepted.position)
    } catch {
      return .failed(BackendProblem(unreadableLog: error))
    }
  }

  private func bringHome(_ carrier: EditCarrier?, _ forwarder: Forwarder) -> [Forwarder.Event] {
    guard let carrier else { return [] }
    do throws(BackendProblem) {
      try carrier.bringHome(forwarder.view, of: forwarder.carriedPatterns)
    } catch {
      return [.failed(error)]
    }
    shared.withLock { shared in
      (shared.report.edits, shared.report.editsSentence) = (carrier.counts, carrier.problem?.sentence ?? "")
    }
    return []
  }

  private func noteForwarded(_ batch: LedgerBatch) {
    let amount = batch.amount
    shared.withLock { $0.report.forwarded += amount }
  }

  // MARK: Telling

  /// What an earlier start had in the ledger; nothing of the log where nobody wrote that down.
  private func seenBefore(_ last: LedgerMemory?) -> SeenLog? {
    guard let place = last.flatMap({ LogPosition(text: $0.position) }) else {
      return SeenLog(LogAmount(), runsAfter: 0)
    }
    return try? source.read { try SeenLog(remembered: place, $0) }
  }

  private func tell(_ forwarder: Forwarder, _ now: MonotonicTime) {
    let news = shared.withLock { shared -> ForwardingReport? in
      shared.report.state = forwarder.state
      shared.report.sentence =
        forwarder.problem?.sentence ?? forwarder.view.refusal ?? forwarder.linkSentence
      shared.report.remedy = forwarder.problem?.remedy ?? ""
      shared.report.lag = forwarder.lag
      shared.report.inLog = forwarder.held.changes
      shared.report.inBackend = max(0, forwarder.held.changes - forwarder.lag.changes)
      shared.report.aside = forwarder.view.aside
      shared.report.refusedStatements = forwarder.view.refusedStatements
      shared.report.lost = forwarder.lost
      shared.report.deadLetters = forwarder.deadLetterCount
      shared.report.staleDocuments = forwarder.staleCount
      shared.pace.note(forwarder.lag.changes, at: now)
      let isUnderWay = forwarder.problem == nil
      shared.report.remainingMilliseconds =
        isUnderWay ? shared.pace.millisecondsLeft(of: forwarder.lag.changes) : nil
      shared.oldestWaiting = forwarder.oldestWaiting
      if forwarder.hasRead { shared.seen = SeenLog(forwarder.held, runsAfter: forwarder.runsAfter) }
      // To lag for a moment behind each write is no news.
      let isSettled = shared.report.state == .caughtUp || !shared.report.sentence.isEmpty
      guard isSettled, shared.toldSentence != shared.report.sentence else { return nil }
      shared.toldSentence = shared.report.sentence
      return shared.report
    }
    if let news { stateChanged(news) }
  }

  private static func now() -> MonotonicTime { time(of: CLOCK_MONOTONIC) }

  /// As a backend's clock, it goes on while this machine sleeps.
  private static func timeWithSleep() -> MonotonicTime {
    #if os(Linux)
      time(of: CLOCK_BOOTTIME)
    #else
      time(of: CLOCK_MONOTONIC)
    #endif
  }

  private static func time(of clock: clockid_t) -> MonotonicTime {
    var time = timespec()
    clock_gettime(clock, &time)
    return MonotonicTime(milliseconds: UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000)
  }
}
