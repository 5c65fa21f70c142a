extension DialPolicy {
  /// Changes the candidate, making it where there is room; a full table gives up a stranger for it, or refuses it.
  mutating func update(
    _ address: PeerAddress, firstAttempt: UInt64, _ random: inout some RandomNumberGenerator,
    _ change: (inout Candidate) -> Void
  ) {
    var candidate = candidates[address] ?? Candidate(nextAttempt: firstAttempt)
    change(&candidate)
    if candidates[address] == nil && candidates.count >= Limits.candidates {
      guard let victim = victim(for: candidate, &random) else { return }
      candidates[victim] = nil
    }
    candidates[address] = candidate
  }

  /// A random stranger makes place, so that no order of arrival lets a flood keep others out for good (N6). Where all
  /// are known by name or tag, only an address that the operator named pushes one out.
  private func victim(for newcomer: Candidate, _ random: inout some RandomNumberGenerator) -> PeerAddress? {
    let idle = candidates.filter { $0.value.attemptStarted == nil && !$0.value.isConfigured }
    let strangers = idle.filter { $0.value.isStranger }.keys.sorted()
    if let stranger = strangers.randomElement(using: &random) { return stranger }
    return newcomer.isConfigured ? idle.keys.sorted().randomElement(using: &random) : nil
  }

  /// Drops what no source names any more, unless it is being dialled; the outcome of the dial comes back here.
  mutating func forgetIfUnwanted(_ address: PeerAddress) {
    guard let candidate = candidates[address], !candidate.isWanted, candidate.attemptStarted == nil else { return }
    candidates[address] = nil
  }

  func addresses(of device: DeviceID) -> [PeerAddress] {
    candidates.filter { $0.value.device == device }.keys.sorted()
  }
}
