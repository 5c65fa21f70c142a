extension DialPolicy {
  mutating func configure(
    _ addresses: [PeerAddress], _ now: MonotonicTime, _ random: inout some RandomNumberGenerator
  ) {
    let wanted = addresses.prefix(Limits.configuredAddresses)
    for address in candidates.keys where candidates[address]?.isConfigured == true && !wanted.contains(address) {
      candidates[address]?.isConfigured = false
      forgetIfUnwanted(address)
    }
    for address in wanted { update(address, firstAttempt: now, &random) { $0.isConfigured = true } }
  }

  mutating func remember(
    _ device: DeviceID, _ addresses: [SocketAddress], _ now: MonotonicTime, _ random: inout some RandomNumberGenerator
  ) {
    guard device != thisDevice else { return }
    for address in addresses.prefix(Limits.addressesPerRememberedDevice) {
      let key = PeerAddress.socket(address)
      let firstAttempt = now.advanced(byMilliseconds: jitter(Limits.hastenedDelayMilliseconds, &random))
      update(key, firstAttempt: firstAttempt, &random) {
        $0.isRemembered = true
        $0.device = $0.device ?? device
      }
    }
  }

  mutating func noteFound(
    _ instance: Text, _ addresses: [SocketAddress], tagMatches: Bool, _ now: MonotonicTime,
    _ random: inout some RandomNumberGenerator
  ) {
    let current = Set(addresses.prefix(Limits.addressesPerInstance).map(PeerAddress.socket))
    for address in self.addresses(of: instance) where !current.contains(address) { leaveInstance(address) }
    let listening = Dictionary(
      links.compactMap { device, link in link.listening.map { ($0, device) } }, uniquingKeysWith: min)
    for address in current.sorted() {
      let isNew = candidates[address] == nil
      update(address, firstAttempt: now, &random) {
        // A stranger that names the address of a fleet's node must not lower its rank.
        guard tagMatches || $0.instance == nil || !$0.tagMatches else { return }
        ($0.instance, $0.tagMatches) = (instance, tagMatches)
        if !$0.isConfigured { $0.device = $0.device ?? listening[address] }
      }
      if !isNew { hasten(address, now, &random) }
    }
  }

  mutating func noteLost(_ instance: Text) {
    for address in addresses(of: instance) { leaveInstance(address) }
  }

  mutating func noteFailure(_ address: PeerAddress, _ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    guard var candidate = candidates[address], candidate.attemptEndsAt != nil else { return }
    candidate.attemptEndsAt = nil
    candidate.failures += 1
    let longest =
      candidate.isConfigured ? Limits.longestConfiguredDelayMilliseconds : Limits.longestDelayMilliseconds
    candidate.nextAttempt =
      now.advanced(
        byMilliseconds: backOff(Limits.firstDelayMilliseconds, candidate.failures, longest: longest, &random))
    candidates[address] = candidate
    forgetIfUnwanted(address)
  }

  mutating func noteRefusal(_ address: PeerAddress, _ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    guard var candidate = candidates[address] else { return }
    candidate.attemptEndsAt = nil
    candidate.refusals += 1
    candidate.failures += 1
    let longest = Limits.longestRefusedDelayMilliseconds
    let wait = backOff(Limits.refusedDelayMilliseconds, candidate.refusals, longest: longest, &random)
    candidates[address] = candidate
    // Who refuses at one of his addresses does so at the others.
    let others = candidate.device.map { self.addresses(of: $0) } ?? []
    for other in Set(others).union([address]).sorted() {
      candidates[other]?.isRefused = true
      candidates[other]?.refusals = candidate.refusals
      candidates[other]?.nextAttempt = now.advanced(byMilliseconds: wait)
      forgetIfUnwanted(other)
    }
  }

  /// Ends the wait after a refusal, here and at the other addresses of the same device, as often as sightings end that after a failure.
  /// Who refuses again waits as long as the refusals before say.
  mutating func forgive(
    _ refused: [PeerAddress], _ now: MonotonicTime, _ random: inout some RandomNumberGenerator
  ) {
    let others = refused.compactMap { candidates[$0]?.device }.flatMap { self.addresses(of: $0) }
    for address in Set(refused).union(others).sorted() {
      guard var candidate = candidates[address], candidate.isRefused, candidate.attemptEndsAt == nil else { continue }
      let earliest = candidate.hastenedAt?.advanced(byMilliseconds: Limits.hastenIntervalMilliseconds) ?? now
      let soon = max(now, earliest).advanced(byMilliseconds: jitter(Limits.hastenedDelayMilliseconds, &random))
      guard soon < candidate.nextAttempt else { continue }
      candidate.isRefused = false
      // No link is given up for who has refused again and again.
      if candidate.refusals <= 1 { candidate.failures = 0 }
      (candidate.nextAttempt, candidate.hastenedAt) = (soon, soon)
      candidates[address] = candidate
    }
  }

  /// The attempt goes on until a session follows or the caller says that none does.
  mutating func identify(_ address: PeerAddress, _ device: DeviceID, _ now: MonotonicTime) {
    guard var candidate = candidates[address] else { return }
    candidate.isSelf = device == thisDevice
    candidate.device = candidate.isSelf ? nil : device
    if candidate.isSelf { candidate.nextAttempt = now.advanced(byMilliseconds: Limits.selfDelayMilliseconds) }
    let isOver = candidate.isSelf || links[device] != nil
    candidate.attemptEndsAt = isOver ? nil : now.advanced(byMilliseconds: Limits.sessionTimeoutMilliseconds)
    candidates[address] = candidate
  }

  mutating func noteConnected(_ device: DeviceID, outgoing: Bool, listening: PeerAddress?, _ now: MonotonicTime) {
    var link = Link(since: links[device]?.since ?? now, isOutgoing: outgoing)
    link.listening = listening
    // It is the device's word alone: what the operator named is dialled whatever others say of it.
    if let listening, let found = candidates[listening], found.device == nil, !found.isConfigured {
      candidates[listening]?.device = device
    }
    link.peerLinks = links[device]?.peerLinks ?? 0
    let sinceGivenUp = givenUp[device].map(now.millisecondsSince) ?? .max
    link.isInsistedOn = links[device]?.isInsistedOn == true || sinceGivenUp < Limits.insistenceMilliseconds
    links[device] = link
    var remembered = 0
    for address in addresses(of: device) {
      candidates[address]?.attemptEndsAt = nil
      candidates[address]?.isRefused = false
      guard address != listening, remembered < Limits.addressesPerRememberedDevice else { continue }
      remembered += 1
      candidates[address]?.isRemembered = true
    }
  }

  mutating func noteDisconnected(_ device: DeviceID, _ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    guard let link = links.removeValue(forKey: device) else { return }
    let wasShort = now.millisecondsSince(link.since) < Limits.shortSessionMilliseconds
    let longest = Limits.longestFlappingDelayMilliseconds
    // Who was refused on the session waits as long as the refusal says, and not as after one that broke off.
    for address in addresses(of: device) {
      guard var candidate = candidates[address], !candidate.isRefused else { continue }
      candidate.failures = wasShort ? candidate.failures + 1 : 0
      if !wasShort { candidate.refusals = 0 }
      candidate.nextAttempt =
        now.advanced(
          byMilliseconds: backOff(Limits.firstDelayMilliseconds, candidate.failures, longest: longest, &random))
      candidates[address] = candidate
    }
  }

  mutating func hastenAll(_ now: MonotonicTime, _ random: inout some RandomNumberGenerator) {
    for address in candidates.keys.sorted() {
      candidates[address]?.isSelf = false
      hasten(address, now, &random)
    }
  }

  /// Brings the next attempt forward to within a second, at most once per interval and not for refused addresses.
  private mutating func hasten(_ address: PeerAddress, _ now: MonotonicTime, _ random: inout some RandomNumberGenerator)
  {
    guard var candidate = candidates[address], !candidate.isSelf, !candidate.isRefused else { return }
    if let last = candidate.hastenedAt, now.millisecondsSince(last) < Limits.hastenIntervalMilliseconds { return }
    let soon = now.advanced(byMilliseconds: jitter(Limits.hastenedDelayMilliseconds, &random))
    guard soon < candidate.nextAttempt else { return }
    candidate.nextAttempt = soon
    candidate.hastenedAt = now
    candidates[address] = candidate
  }

  /// first × 2^(failures − 1), at most `longest`, of which a random half to whole.
  private func backOff(
    _ first: UInt64, _ failures: Int, longest: UInt64, _ random: inout some RandomNumberGenerator
  ) -> UInt64 {
    let doublings = UInt64(min(max(failures - 1, 0), 16))
    let whole = min(first << doublings, longest)
    return whole / 2 + jitter(whole / 2, &random)
  }

  private func jitter(_ range: UInt64, _ random: inout some RandomNumberGenerator) -> UInt64 {
    UInt64.random(in: 0...range, using: &random)
  }
}
