extension DialPolicy {
  /// When ``handle(_:now:using:)`` should be called with a tick, if nothing else happens before. Nil: nothing to wait for.
  package func nextWake() -> MonotonicTime? {
    guard let quietUntil else { return earliestWake() }
    return quietUntil == .never ? nil : quietUntil
  }

  func earliestWake() -> MonotonicTime? {
    var wake: MonotonicTime?
    func consider(_ time: MonotonicTime) { wake = min(wake ?? time, time) }
    if let nextGivingUp { consider(nextGivingUp) }
    var (inFlight, strangersInFlight) = (0, 0)
    for candidate in candidates.values {
      guard let endsAt = candidate.attemptEndsAt else { continue }
      inFlight += 1
      if candidate.isStranger { strangersInFlight += 1 }
      consider(endsAt)
    }
    guard inFlight < Limits.concurrentDials, candidates.values.contains(where: isIdle) else { return wake }
    let earliest = budget.nextTokenAt
    let earliestStranger = max(earliest, strangerBudget.nextTokenAt)
    let (busy, hasRoom) = (busyGroups(), hasRoom)
    for candidate in candidates.values where isDiallable(candidate, busy) {
      // Until one of those that are dialled has ended no other stranger is: to wake for it would be to wake again and again.
      if candidate.isStranger, strangersInFlight >= Limits.concurrentStrangerDials { continue }
      guard hasRoom || candidate.isConfigured else {
        if candidate.mayAskForRoom, let nextSwap { consider(max(candidate.nextAttempt, nextSwap)) }
        continue
      }
      consider(max(candidate.nextAttempt, candidate.isStranger ? earliestStranger : earliest))
    }
    return wake
  }

  mutating func takeDue(_ now: MonotonicTime) -> [PeerAddress] {
    var dials: [PeerAddress] = []
    while let address = nextDue(now) {
      budget.take()
      if candidates[address]?.isStranger == true { strangerBudget.take() }
      candidates[address]?.attemptEndsAt = now.advanced(byMilliseconds: Limits.attemptTimeoutMilliseconds)
      dials.append(address)
    }
    return dials
  }

  /// The due candidate of the lowest rank that waited longest; ties by address, so that the order of a dictionary
  /// never shows.
  private mutating func nextDue(_ now: MonotonicTime) -> PeerAddress? {
    guard budget.hasToken(now) else { return nil }
    let strangersMayGo = strangerBudget.hasToken(now)
    var inFlight = 0
    var strangersInFlight = 0
    for candidate in candidates.values where candidate.attemptEndsAt != nil {
      inFlight += 1
      if candidate.isStranger { strangersInFlight += 1 }
    }
    guard inFlight < Limits.concurrentDials,
      candidates.values.contains(where: { $0.nextAttempt <= now && isIdle($0) })
    else { return nil }
    let strangersAllowed = strangersMayGo && strangersInFlight < Limits.concurrentStrangerDials
    let (busy, hasRoom) = (busyGroups(), hasRoom)
    var best: (rank: Int, nextAttempt: MonotonicTime, address: PeerAddress)?
    for (address, candidate) in candidates where candidate.nextAttempt <= now {
      guard strangersAllowed || !candidate.isStranger, hasRoom || candidate.isConfigured,
        isDiallable(candidate, busy)
      else { continue }
      let due = (candidate.rank, candidate.nextAttempt, address)
      if best.map({ due < $0 }) ?? true { best = due }
    }
    return best?.address
  }

  /// Instances and devices that are being dialled: their other addresses wait for the outcome.
  struct BusyGroups {
    var instances: Set<Text> = []
    var devices: Set<DeviceID> = []
  }

  func busyGroups() -> BusyGroups {
    var busy = BusyGroups()
    for candidate in candidates.values {
      let isConnected = candidate.device.map { links[$0] != nil } ?? false
      guard candidate.attemptEndsAt != nil || isConnected else { continue }
      if let instance = candidate.instance { busy.instances.insert(instance) }
      if let device = candidate.device { busy.devices.insert(device) }
    }
    return busy
  }

  /// Neither dialled now nor connected: where no candidate is, nobody has to know what goes with what.
  private func isIdle(_ candidate: Candidate) -> Bool {
    candidate.attemptEndsAt == nil && candidate.isWanted && candidate.device.map { links[$0] == nil } ?? true
  }

  func isDiallable(_ candidate: Candidate, _ busy: BusyGroups) -> Bool {
    guard isIdle(candidate) else { return false }
    if let device = candidate.device, busy.devices.contains(device) { return false }
    if let instance = candidate.instance, busy.instances.contains(instance) { return false }
    return true
  }

  /// Answers whether there were any.
  mutating func expireAttempts(_ now: MonotonicTime, _ random: inout some RandomNumberGenerator) -> Bool {
    let expired = candidates.filter { $0.value.attemptEndsAt.map { $0 <= now } ?? false }
    for address in expired.keys.sorted() { noteFailure(address, now, &random) }
    return !expired.isEmpty
  }
}
