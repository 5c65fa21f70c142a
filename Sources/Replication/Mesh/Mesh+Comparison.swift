// Comparing, as far as it is not one session's alone: digests and scope are common to all of them.
extension Mesh {
  /// The listener asks first; whoever was asked before it was live answers then.
  mutating func beginComparing(_ id: SessionID, _ question: Summary?, _ step: inout Step) {
    let interval = configuration.antiEntropyMilliseconds
    if let question {
      receiveSummary(id, question, &step)
    } else if sessions[id]?.isDialer == true {
      sessions[id]?.live?.comparison.setDue(after: interval * 3 / 2, step.now)
    } else {
      compare(id, nextAfter: interval, &step)
    }
  }

  mutating func compare(_ id: SessionID, nextAfter milliseconds: UInt64, _ step: inout Step) {
    settleSums()
    sessions[id]?.compare(nextAfter: milliseconds, ledger, &step)
  }

  mutating func receiveSummary(_ id: SessionID, _ summary: Summary, _ step: inout Step) {
    guard sessions[id]?.phase == .live else {
      if case .digest = summary.step { sessions[id]?.deferred?.question = summary }
      return
    }
    guard sessions[id]?.takes(summary, step) == true else { return }
    switch summary.step {
    case .digest, .buckets, .partitions: settleSums()
    case .equal, .differing: break
    }
    sessions[id]?.receive(summary, ledger, &step)
    // A comparison that is through shows that the peer is live.
    guard sessions[id]?.live?.handOvers.mayOffer == true else { return }
    beginHoldings(id, &step)
    tellEndedRooms(id, &step)
  }

  /// Brings the digests up to date, and tells the sessions of those that moved.
  mutating func settleSums() {
    let moved = ledger.partitions.settleDigests(cryptography.hash)
    guard !moved.isEmpty else { return }
    if moved.contains(where: { $0.value != nil && ledger.partitions.name(of: $0.key) == nil }) { scopeChanged() }
    for id in sessions.keys { sessions[id]?.live?.comparison.sums?.moved(moved) }
  }

  /// Statements or interests moved: what is in common has to be looked at anew.
  mutating func scopeChanged(of devices: Set<PublicKey>) {
    for id in sessions.keys where sessions[id].map({ devices.contains($0.peer) }) == true {
      sessions[id]?.live?.comparison.sums = nil
    }
    holdings.scopeMoved()
  }

  mutating func scopeChanged() {
    for id in sessions.keys { sessions[id]?.live?.comparison.sums = nil }
    holdings.scopeMoved()
  }
}
