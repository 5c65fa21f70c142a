// Fleets above eleven nodes: so many outgoing links, and a swap now and then (design §6).
extension DialPolicy {
  /// A link that the caller is to close in order; it then says `disconnected` as usual.
  package mutating func takeDrop() -> DeviceID? { drops.popLast() }

  /// For one more outgoing link, counting those that are being made. What the operator named is dialled all the same.
  /// Where few devices are known all are linked: swaps would cost more than the links that they spare.
  var hasRoom: Bool {
    let outgoing = links.values.count { $0.isOutgoing }
    let dialled = candidates.values.count { $0.attemptEndsAt != nil }
    return outgoing + dialled < Limits.outgoingLinks || links.count + dialled + waitingCount <= Limits.linksOfAll
  }

  /// How many devices could be dialled now. One of which several addresses are known under no common name counts for each.
  private var waitingCount: Int {
    let busy = busyGroups()
    var (instances, devices, others): (Set<Text>, Set<DeviceID>, Int) = ([], [], 0)
    for candidate in candidates.values where candidate.mayAskForRoom && isDiallable(candidate, busy) {
      if let instance = candidate.instance {
        instances.insert(instance)
      } else if let device = candidate.device {
        devices.insert(device)
      } else {
        others += 1
      }
    }
    return instances.count + devices.count + others
  }

  /// Gives up the oldest outgoing link that the operator did not ask for, once another device has waited long enough. The
  /// one that waited longest is dialled in its place, so that all have their turn.
  mutating func swapIfDue(_ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    guard !hasRoom, let waiting = firstWaiting, let oldest = oldestLink else {
      nextSwap = nil
      return
    }
    guard let due = nextSwap else {
      let interval = Limits.swapIntervalMilliseconds
      nextSwap = now.advanced(byMilliseconds: interval / 2 + UInt64.random(in: 0...interval, using: &random))
      return
    }
    guard due <= now, waiting <= now else { return }
    nextSwap = nil
    drops.append(oldest)
  }

  /// When the first of those who wait for room may be dialled.
  private var firstWaiting: MonotonicTime? {
    let busy = busyGroups()
    return candidates.values.lazy.filter { $0.mayAskForRoom && self.isDiallable($0, busy) }.map(\.nextAttempt).min()
  }

  private var oldestLink: DeviceID? {
    let asked = Set(candidates.values.lazy.filter(\.isConfigured).compactMap(\.device))
    let given = links.filter { $0.value.isOutgoing && !asked.contains($0.key) }
    return given.min { ($0.value.since, $0.key) < ($1.value.since, $1.key) }?.key
  }
}

extension DialPolicy.Candidate {
  /// A link is given up only for somebody else who is probably of this fleet and was there when last looked for.
  var mayAskForRoom: Bool { !isConfigured && !isSelf && !isStranger && !isRefused && failures == 0 }
}
