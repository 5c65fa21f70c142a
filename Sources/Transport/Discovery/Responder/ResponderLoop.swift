import Glibc
import Replication

/// The one thread that calls the DNS-SD library: registers, browses, resolves, and starts anew whenever the daemon comes
/// back. Its calls block for 25 s when the daemon hangs; nobody else waits for it.
///
/// A registration and a browse operation stay open on all interfaces; the daemon itself follows interfaces that come and
/// go. What it cannot tell is asked for periodically: after a network split neither an open browse nor an open resolve
/// operation reports that the peer is back.
final class ResponderLoop {
  /// Each costs up to two connections to the daemon, of which a user has 256 in all, other nodes of this machine included.
  static let jobLimit = 8
  /// Bounds what a flood of names costs: a job is a few milliseconds of this node and of the daemon.
  static let jobIntervalMilliseconds: UInt64 = 100
  static let firstRetryMilliseconds: UInt64 = 500
  static let longestRetryMilliseconds: UInt64 = 5_000

  let mailbox: ResponderMailbox
  private let emit: (ResponderEvent) -> Void
  private var random: FunctionGenerator
  private var directory: ServiceDirectory

  private var browse: ServiceReference?
  private var registration: ServiceReference?
  private var registered: Advertisement?
  private var ownNames: [String] = []
  private var jobs: [ResolveJob] = []
  private var lastJobAt = MonotonicTime(milliseconds: 0)
  private var retryAt = MonotonicTime(milliseconds: 0)
  private var retryDelay = firstRetryMilliseconds
  private var settled: Set<String> = []

  init(
    _ mailbox: ResponderMailbox, resolveIntervalMilliseconds: UInt64, random: FunctionGenerator,
    emit: @escaping (ResponderEvent) -> Void
  ) {
    (self.mailbox, self.emit, self.random) = (mailbox, emit, random)
    directory = ServiceDirectory(resolveIntervalMilliseconds: resolveIntervalMilliseconds)
  }

  func run() {
    while true {
      let orders = mailbox.takeOrders()
      guard !orders.isStopped else { break }
      let now = ElapsedClock.now()
      follow(orders, now)
      if browse == nil, now >= retryAt { start(orders.advertisement, now) }
      if browse != nil { startJobs(now) }
      wait(now)
    }
    mailbox.call { close() }
  }

  private func follow(_ orders: ResponderMailbox.Orders, _ now: MonotonicTime) {
    if orders.isNetworkChanged { directory.resolveAllAgain(now: now) }
    if orders.settled != settled {
      settled = orders.settled
      directory.setSettled(settled, now: now)
    }
    if browse != nil, orders.advertisement != registered { register(orders.advertisement, now) }
  }

  // MARK: Life with the daemon

  private func start(_ advertisement: Advertisement?, _ now: MonotonicTime) {
    do throws(ServiceError) {
      browse = try mailbox.call { () -> Result<ServiceReference, ServiceError> in
        Result { () throws(ServiceError) in try ServiceReference.browse() }
      }.get()
      retryDelay = ResponderLoop.firstRetryMilliseconds
      emit(.available)
      register(advertisement, now)
    } catch {
      fail(now)
    }
  }

  /// The name of yesterday is withdrawn, the new one announced.
  private func register(_ advertisement: Advertisement?, _ now: MonotonicTime) {
    mailbox.call { registration = nil }
    emit(.registered(false))
    registered = advertisement
    guard let advertisement else { return }
    ownNames = [advertisement.instance] + ownNames.prefix(1).filter { $0 != advertisement.instance }
    do throws(ServiceError) {
      registration = try mailbox.call { () -> Result<ServiceReference, ServiceError> in
        Result { () throws(ServiceError) in try ServiceReference.register(advertisement) }
      }.get()
    } catch {
      fail(now)
    }
  }

  /// After any error everything is closed and tried again: when the daemon goes, every operation dies with it.
  private func fail(_ now: MonotonicTime) {
    mailbox.call { close() }
    directory = directory.emptied()
    emit(.absent)
    retryAt = now.advanced(byMilliseconds: retryDelay)
    retryDelay = min(retryDelay * 2, ResponderLoop.longestRetryMilliseconds)
  }

  private func close() {
    (browse, registration, registered) = (nil, nil, nil)
    jobs = []
  }

  // MARK: Waiting

  private func wait(_ now: MonotonicTime) {
    let references = [browse, registration].compactMap { $0 } + jobs.flatMap(\.references)
    var entries = ([mailbox.signal.descriptor] + references.map(\.descriptor)).map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let wake = nextWake(now)
    poll(&entries, nfds_t(entries.count), wake.map { Int32(clamping: $0.millisecondsSince(now)) } ?? -1)
    mailbox.signal.clear()
    let time = ElapsedClock.now()
    for (entry, reference) in zip(entries.dropFirst(), references) where entry.revents != 0 {
      let events = mailbox.call { reference.process() }
      guard handle(events, of: reference, time) else { return fail(time) }
    }
    finishJobs(time)
  }

  private func nextWake(_ now: MonotonicTime) -> MonotonicTime? {
    guard browse != nil else { return retryAt }
    let nextJob = directory.nextDue.map { max($0, mayStartAt) }
    let wakes = jobs.map(\.endsAt) + (jobs.count < ResponderLoop.jobLimit ? [nextJob].compactMap { $0 } : [])
    return wakes.min()
  }

  /// False when the daemon is gone.
  private func handle(_ events: [ServiceEvent], of reference: ServiceReference, _ now: MonotonicTime) -> Bool {
    if let job = jobs.first(where: { job in job.references.contains { $0 === reference } }) {
      events.forEach { event in mailbox.call { job.handle(event, now) } }
      return true
    }
    for event in events {
      switch event {
      case .registered: emit(.registered(true))
      case .appeared(let name, let interface):
        guard !ownNames.contains(name) else { continue }
        tell(directory.appeared(.init(name: name, interface: interface), now: now, using: &random))
      case .vanished(let name, let interface): tell(directory.vanished(.init(name: name, interface: interface)))
      case .failed: return false
      case .resolved, .address: continue
      }
    }
    return true
  }

  // MARK: Resolving

  private func startJobs(_ now: MonotonicTime) {
    while jobs.count < ResponderLoop.jobLimit, now >= mayStartAt,
      let key = directory.takeDue(now: now, using: &random)
    {
      lastJobAt = now
      if let job = mailbox.call({ ResolveJob(key, now) }) {
        jobs.append(job)
      } else {
        tell(directory.failed(key, now: now))
      }
    }
  }

  private var mayStartAt: MonotonicTime {
    lastJobAt.advanced(byMilliseconds: ResponderLoop.jobIntervalMilliseconds)
  }

  private func finishJobs(_ now: MonotonicTime) {
    for job in jobs where job.endsAt <= now {
      if let resolution = job.resolution {
        tell(directory.resolved(job.key, resolution, now: now))
      } else {
        tell(directory.failed(job.key, now: now))
      }
    }
    mailbox.call { jobs.removeAll { $0.endsAt <= now } }
  }

  private func tell(_ outputs: [ServiceDirectory.Output]) {
    for output in outputs {
      switch output {
      case .seen(let name, let addresses, let tag): emit(.seen(name: name, addresses: addresses, tag: tag))
      case .lost(let name): emit(.lost(name: name))
      }
    }
  }
}
