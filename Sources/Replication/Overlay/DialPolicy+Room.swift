// Fleets above eleven nodes: so many outgoing links, and a swap now and then (design §6).
extension DialPolicy {
  /// A link that the caller is to close in order; it then says `disconnected` as usual.
  package mutating func takeDrop() -> Drop? { drops.popLast() }

  /// For one more outgoing link, counting those that are being made. What the operator named is dialled all the same.
  /// Where few devices are known all are linked: swaps would cost more than the links that they spare. Whom others have dialled
  /// often dials less himself, or those who came first would end up with most of the links, and so with what each costs.
  var hasRoom: Bool {
    let dialled = candidates.values.count { $0.attemptEndsAt != nil }
    let (outgoing, all) = (outgoingCount + dialled, links.count + dialled)
    if all + waitingCount <= Limits.linksOfAll { return true }
    let limit = all < Limits.linksOfAll ? Limits.outgoingLinks : Limits.leastOutgoingLinks
    guard outgoing == limit, dialled == 0 else { return outgoing < limit }
    // One more where each of them is to somebody who would be missed: that place has its turns, and theirs stay.
    let own = ownUnaskedLinks.values
    return !own.isEmpty && own.allSatisfy(\.hasFew)
  }

  private var outgoingCount: Int { links.values.count { $0.isOutgoing } }

  /// Links beyond those that a node is to have, of which one may be given up, soon if not now.
  private var isCrowded: Bool { surplus(givenUpBefore: .never) != nil }

  /// What is given up where there are more links than a node is to have: the oldest that it chose itself, as long as it keeps some of
  /// those, and then of what others chose one of whoever is linked best. Nobody who says to have few links, and of what others
  /// chose nothing that began just now: a swap may have made it for two who have nobody between them.
  private func surplus(givenUpBefore now: MonotonicTime) -> DeviceID? {
    let kept = links.values.filter { !$0.isLeaving }
    guard kept.count > Limits.linksAtMost else { return nil }
    let own = ownUnaskedLinks
    // The place beyond the usual ones has its turns by swaps, and is none too many.
    let beyond = own.values.count(where: \.hasFew) >= Limits.leastOutgoingLinks ? 1 : 0
    let oldest = DialPolicy.oldest(own.filter { !$0.value.hasFew })
    if let oldest, kept.count(where: \.isOutgoing) > Limits.leastOutgoingLinks + beyond { return oldest }
    let others = unaskedLinks.filter { !$0.value.isOutgoing && $0.value.mayBeSurplus(now) }
    return DialPolicy.oldest(DialPolicy.bestLinked(others))
  }

  /// What is given up for somebody who waits: the oldest that this node chose, of those whose peers have enough. Where all of them have few,
  /// of those with the most: who has nobody else would wait for his next turn without any link.
  private var swappable: DeviceID? {
    let own = ownUnaskedLinks
    let spared = own.filter { !$0.value.hasFew }
    return DialPolicy.oldest(spared.isEmpty ? DialPolicy.bestLinked(own) : spared)
  }

  private static func oldest(_ links: [DeviceID: Link]) -> DeviceID? {
    links.min { ($0.value.since, $0.key) < ($1.value.since, $1.key) }?.key
  }

  private static func bestLinked(_ links: [DeviceID: Link]) -> [DeviceID: Link] {
    let most = links.values.map(\.peerLinks).max()
    return links.filter { $0.value.peerLinks == most }
  }

  /// To devices that the operator did not name, and that are not given up already.
  private var unaskedLinks: [DeviceID: Link] {
    let asked = Set(candidates.values.lazy.filter(\.isConfigured).compactMap(\.device))
    return links.filter { !asked.contains($0.key) && !$0.value.isLeaving }
  }

  private var ownUnaskedLinks: [DeviceID: Link] { unaskedLinks.filter(\.value.isOutgoing) }

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

  /// Gives up a link that is too much.
  mutating func giveUpSurplus(_ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    guard isCrowded else {
      nextGivingUp = nil
      return
    }
    if let due = nextGivingUp, now < due { return }
    let interval = Limits.crowdedIntervalMilliseconds
    if nextGivingUp != nil, let given = surplus(givenUpBefore: now) { giveUp(given, now) }
    nextGivingUp = now.advanced(byMilliseconds: interval / 2 + UInt64.random(in: 0...interval, using: &random))
  }

  private mutating func giveUp(_ device: DeviceID, _ now: MonotonicTime) {
    drop(device, .surplus)
    givenUp = givenUp.filter { now.millisecondsSince($0.value) < Limits.insistenceMilliseconds }
    givenUp[device] = now
  }

  private mutating func drop(_ device: DeviceID, _ reason: Drop.Reason) {
    drops.append(Drop(device, reason))
    links[device]?.isLeaving = true
  }

  /// Gives up an outgoing link that the operator did not ask for, once another device has waited long enough. The one that waited
  /// longest is dialled in its place, unless others have dialled this node often: so all have their turn.
  mutating func swapIfDue(_ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    guard !hasRoom, let waiting = firstWaiting, let swappable else {
      nextSwap = nil
      return
    }
    guard let due = nextSwap else {
      let interval = Limits.swapIntervalMilliseconds
      nextSwap = now.advanced(byMilliseconds: interval / 2 + UInt64.random(in: 0...interval, using: &random))
      return
    }
    guard due <= now, waiting <= now else { return }
    // What is given up makes room as well, as soon as it is closed.
    guard !links.values.contains(where: \.isLeaving) else {
      nextSwap = now.advanced(byMilliseconds: Limits.leavingMilliseconds)
      return
    }
    nextSwap = nil
    drop(swappable, .turn)
  }

  /// When the first of those who wait for room may be dialled.
  private var firstWaiting: MonotonicTime? {
    let busy = busyGroups()
    return candidates.values.lazy.filter { $0.mayAskForRoom && self.isDiallable($0, busy) }.map(\.nextAttempt).min()
  }
}

extension DialPolicy.Link {
  /// The peer says that it has few, and would miss this one.
  fileprivate var hasFew: Bool { 1..<DialPolicy.Limits.outgoingLinks ~= peerLinks }

  fileprivate func mayBeSurplus(_ now: MonotonicTime) -> Bool {
    !isInsistedOn && peerLinks >= DialPolicy.Limits.linksOfAll
      && now.millisecondsSince(since) >= DialPolicy.Limits.meetingMilliseconds
  }
}

extension DialPolicy.Candidate {
  /// A link is given up only for somebody else who is probably of this fleet and was there when last looked for.
  var mayAskForRoom: Bool { !isConfigured && !isSelf && !isStranger && !isRefused && failures == 0 }
}
