extension DialPolicy {
  /// Changes the candidate, making it where there is room; a full table gives up a stranger for it, or refuses it.
  mutating func update(
    _ address: PeerAddress, firstAttempt: MonotonicTime, _ random: inout some RandomNumberGenerator,
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
    let salt = random.next()
    var victim: (rank: Int, lot: UInt64, address: PeerAddress)?
    for (address, candidate) in candidates where candidate.attemptEndsAt == nil && !candidate.isConfigured {
      // Drawn by lot over the address: the order of a dictionary must not show.
      let drawn = (rank: candidate.isStranger ? 0 : 1, lot: lot(of: address, salt), address: address)
      if victim.map({ drawn < $0 }) ?? true { victim = drawn }
    }
    guard let victim, victim.rank == 0 || newcomer.isConfigured else { return nil }
    return victim.address
  }

  /// FNV-1a, which suffices to shuffle.
  private func lot(of address: PeerAddress, _ salt: UInt64) -> UInt64 {
    var hash = salt
    func mix(_ word: UInt64) { hash = (hash ^ word) &* 0x0000_0100_0000_01b3 ^ hash >> 29 }
    switch address {
    case .socket(let socket):
      mix(UInt64(socket.port))
      switch socket.host {
      case .ipv4(let number): mix(UInt64(number))
      case .ipv6(let high, let low, let scope):
        mix(high ^ UInt64(scope))
        mix(low)
      }
    case .name(let name, let port):
      mix(UInt64(port))
      for byte in name.utf8 { mix(UInt64(byte)) }
    }
    return hash
  }

  /// Drops what no source names any more, unless it is being dialled; the outcome of the dial comes back here.
  mutating func forgetIfUnwanted(_ address: PeerAddress) {
    guard let candidate = candidates[address], !candidate.isWanted, candidate.attemptEndsAt == nil else { return }
    candidates[address] = nil
  }

  func addresses(of device: DeviceID) -> [PeerAddress] {
    candidates.filter { $0.value.device == device }.keys.sorted()
  }

  func addresses(of instance: Text) -> [PeerAddress] {
    candidates.filter { $0.value.instance == instance }.keys.sorted()
  }

  mutating func leaveInstance(_ address: PeerAddress) {
    candidates[address]?.instance = nil
    candidates[address]?.tagMatches = false
    forgetIfUnwanted(address)
  }
}
