// Fleets above eleven nodes: so many outgoing links, and a swap now and then (design §6).
extension DialPolicy {
  /// A link that the caller is to close in order; it then says `disconnected` as usual.
  package mutating func takeDrop() -> DeviceID? { drops.popLast() }

  /// For one more outgoing link, counting those that are being made. What the operator named is dialled all the same.
  /// Where few devices are known all are linked: swaps would cost more than the links that they spare. Whom others have dialled
  /// often dials less himself, or those who came first would end up with most of the links, and so with what each costs.
  var hasRoom: Bool {
    let dialled = candidates.values.count { $0.attemptEndsAt != nil }
    let (outgoing, all) = (outgoingCount + dialled, links.count + dialled)
    if all + waitingCount <= Limits.linksOfAll { return true }
    return outgoing < (all < Limits.linksOfAll ? Limits.outgoingLinks : Limits.leastOutgoingLinks)
  }

  private var outgoingCount: Int { links.values.count { $0.isOutgoing } }

  /// What is given up where there are more links than a node is to have: the oldest that it chose itself, as long as it keeps some of
  /// those, and then of what others chose one of whoever is linked best. He dials somebody else for it.
  private var surplus: DeviceID? {
    guard links.count > Limits.linksAtMost else { return nil }
    if outgoingCount > Limits.leastOutgoingLinks, let oldestLink { return oldestLink }
    let wellLinked = links.filter {
      !$0.value.isOutgoing && !$0.value.isInsistedOn && $0.value.peerLinks >= Limits.linksOfAll
    }
    return wellLinked.max { ($0.value.peerLinks, $0.key) < ($1.value.peerLinks, $1.key) }?.key
  }

  var isCrowded: Bool { surplus != nil }

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

  /// Gives up a link that is too much; and else the oldest outgoing one that the operator did not ask for, once another device has
  /// waited long enough. The one that waited longest is dialled in its place, so that all have their turn.
  mutating func giveUpIfDue(_ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    let surplus = surplus
    guard !hasRoom, let given = surplus ?? oldestLink, let waiting = surplus == nil ? firstWaiting : now else {
      nextSwap = nil
      return
    }
    let interval = surplus == nil ? Limits.swapIntervalMilliseconds : Limits.crowdedIntervalMilliseconds
    guard let due = nextSwap, due <= now.advanced(byMilliseconds: interval / 2 * 3) else {
      nextSwap = now.advanced(byMilliseconds: interval / 2 + UInt64.random(in: 0...interval, using: &random))
      return
    }
    guard due <= now, waiting <= now else { return }
    nextSwap = nil
    drops.append(given)
    if links[given]?.isOutgoing == false {
      givenUp = givenUp.filter { now.millisecondsSince($0.value) < Limits.insistenceMilliseconds }
      givenUp[given] = now
    }
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
