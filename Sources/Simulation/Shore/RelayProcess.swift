import Engine
import Forwarding
import Links
import Replication
import Storage

/// One life of a node's forwarder: the shipped one, with the shipped readers of the log, on the thread that a node gives it.
/// It does one thing at a time, and the world may do anything in between.
///
final class RelayProcess {
  private unowned let process: NodeProcess
  private unowned let shore: Shore
  private let backend: ModelBackend
  private(set) var forwarder: Forwarder
  private let runner: DirectiveRunner
  private var notes: LedgerNotes
  private var directives: [Forwarder.Directive] = []
  private var events: [Forwarder.Event] = [.start]
  private var moved: [PartitionID: VersionVector] = [:]
  private var movedAt = ""
  private let log: RelayLog
  private var hasNews = false
  private var isToSendNow = false
  /// Nil where no edits are brought home.
  private(set) var carrier: EditErrand?
  /// When the next step is due; `max`: none is planned.
  private(set) var plannedStep = UInt64.max

  /// Nil where the store is not the shipped one.
  init?(_ process: NodeProcess, _ shore: Shore) {
    guard let store = process.store.shipped else { return nil }
    (self.process, self.shore) = (process, shore)
    backend = ModelBackend(shore, process.node)
    let limits = shore.plan.limits
    log = RelayLog(process, store)
    forwarder = Forwarder(limits: limits)
    runner = DirectiveRunner(
      source: log, backend: backend, limits: limits, process: String(shore.random.next() | 1, radix: 16))
    notes = LedgerNotes(log, limits)
    if shore.carrying.contains(process.node.slot) { carrier = EditErrand(backend, limits, process) }
    plan(in: shore.latency())
  }

  private var world: World { process.ports.world }
  private var now: MonotonicTime { process.ports.now }

  /// When the ledger was read last.
  private(set) var ledgerReadAt: UInt64 = 0
  /// When the ledger had all that the node held, as far as the forwarder knew.
  private(set) var caughtUpAt: UInt64?

  // MARK: Steps

  private func plan(in milliseconds: UInt64) { plan(at: world.clock + milliseconds) }

  private func plan(at time: UInt64) {
    guard time < plannedStep else { return }
    plannedStep = time
    world.queue.put(.relay(slot: process.node.slot, life: process.life), at: time)
  }

  /// Does what is due.
  func step() {
    guard plannedStep <= world.clock else { return }
    plannedStep = .max
    world.trace(5, UInt64(process.node.slot))
    if !directives.isEmpty {
      carryOut(directives.removeFirst())
    } else if !events.isEmpty {
      handle(events.removeFirst())
    } else if let carrier, carrier.isUnderWay {
      advance(carrier)
    } else {
      rest()
    }
  }

  private func carryOut(_ directive: Forwarder.Directive) {
    if let event = runner.run(directive, notes.last) {
      events.append(event)
    }
    plan(in: shore.latency())
  }

  private func handle(_ event: Forwarder.Event) {
    world.note("relay \(process.node.slot): \(event.told)")
    directives += forwarder.handle(event, now: now, random: &shore.random)
    notes.note(forwarder, of: backend, at: now)
    if forwarder.state == .caughtUp { caughtUpAt = world.clock }
    if case .ledgerRead(let reading) = event {
      ledgerReadAt = world.clock
      if reading.lost > 0 { world.count(.ledgerLacked) }
    }
    plan(in: shore.latency())
  }

  /// One step of bringing an edit home.
  private func advance(_ carrier: EditErrand) {
    do throws(BackendProblem) {
      try carrier.advance(forwarder.view, now)
    } catch {
      events.append(.failed(error))
    }
    // The node's answer comes with a turn of its own.
    plan(in: 1 + shore.latency())
  }

  /// Nothing is under way: what has come meanwhile, or what is due, is taken up.
  private func rest() {
    let wake = forwarder.nextWake ?? now
    if isToSendNow {
      isToSendNow = false
      events.append(.sendNow)
    } else if hasNews {
      hasNews = false
      events.append(.news(moved, at: movedAt))
      moved = [:]
    } else if let carrier, forwarder.state == .caughtUp, carrier.nextLook < wake, carrier.nextLook <= now {
      carrier.begin(now)
    } else if wake <= now {
      events.append(.timer)
    } else {
      var due = wake
      if let carrier, forwarder.state == .caughtUp { due = min(due, carrier.nextLook) }
      return plan(at: max(due.milliseconds, world.clock + 1))
    }
    plan(in: 0)
  }

  // MARK: News

  /// What counts has moved, or at least the log has grown.
  func committed(_ record: CommitRecord) {
    guard !record.isOfWordsAlone else { return }
    for part in record.partitions { moved[part.partition] = part.accepted }
    movedAt = log.position
    hasNews = true
    if directives.isEmpty, events.isEmpty { plan(in: shore.latency()) }
  }

  func sendNow() {
    isToSendNow = true
    plan(in: 0)
  }

}

/// What a node lends to its forwarder.
///
/// `@unchecked Sendable`: a world has one thread.
private final class RelayLog: ForwardingSource, @unchecked Sendable {
  private unowned let process: NodeProcess
  private let store: Store

  init(_ process: NodeProcess, _ store: Store) { (self.process, self.store) = (process, store) }

  private var world: World { process.ports.world }
  var fleet: FleetID { world.fleet.id }
  var hash: HashFunction { FakeCryptography.hash }
  var wallMilliseconds: Int64 { process.ports.wallMilliseconds }

  func read<Result>(_ body: (StoreReader) throws -> Result) throws -> Result { try store.readers.read(body) }
  func readIfFree<Result>(_ body: (StoreReader) throws -> Result) throws -> Result? { try read(body) }

  var held: LogAmount? { LogAmount(changes: store.totals.changes, bytes: store.totals.logBytes) }

  func accepted() throws -> (vectors: [PartitionID: VersionVector], position: String) {
    (process.mesh.partitions.mapValues { $0.log.accepted }, position)
  }

  func leavesOut(_ places: [StatementPlace]) -> Set<Digest> { process.mesh.authority.leavesOut(places) }

  var position: String { store.end.text }

  func backendHas(_ vectors: [(PartitionName, VersionVector)]) {
    // In one order in every process.
    for (name, vector) in vectors.sorted(by: { $0.0.text < $1.0.text }) {
      world.oracle.shore.readings.readBack(name, vector, by: process.node)
      process.put(.call { $0.noteBackend(name, has: vector) })
    }
  }

  func news(timeoutMilliseconds: UInt64) -> ForwardingNews { .nothing }
  func wake() {}
  func remembered() -> String? { process.node.directory.forwardingNote }
  func remember(_ text: String) { process.node.directory.forwardingNote = text }
}

extension StoreDecorator {
  /// The shipped store at the bottom; nil where another one is there.
  var shipped: Store? { (base as? StoreDecorator)?.shipped ?? base as? Store }
}

extension Forwarder.Event {
  /// For whoever reads what happened in a world.
  fileprivate var told: String {
    switch self {
    case .start: "starts"
    case .connected: "is connected"
    case .ledgerRead(let reading): "has read the ledger, which lost \(reading.lost)"
    case .loaded(let page):
      "loads \(page.batch.runs.count) runs, \(page.batch.marks.count) marks, \(page.batch.documents.count) documents, "
        + "\(page.batch.ranges.count) ranges\(page.isEnd ? " to the end" : "")\(page.hasMoreDocuments ? " and more" : "")"
    case .committed(let outcome):
      "has committed, but \(outcome.staleMarks.count) marks and \(outcome.staleDocuments.count) documents"
    case .readBack(let outcome): "has read back\(outcome.wentBack ? " less" : "")"
    case .failed(let problem): problem.sentence
    case .news: "hears news"
    case .timer: "looks"
    case .sendNow: "sends now"
    case .allowance(let allowance): "may pass \(allowance.passage)"
    }
  }
}
