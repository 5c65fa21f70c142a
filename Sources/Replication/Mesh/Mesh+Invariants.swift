/// What must hold between the parts of the core behind every event.
extension Mesh {
  func lookAtInvariants() {
    for partition in catchUps.partitions {
      let session = catchUps.session(of: partition).flatMap { sessions[$0] }
      Invariant.check(
        session?.live?.streams[partition]?.incoming.number != nil, "a catch-up is waited for that nobody was asked for")
    }
    guard ledger.partitions.count <= Invariant.few else { return }
    var postponed: [SessionID: Int] = [:]
    for run in ledger.partitions.values.lazy.flatMap(\.waiting.postponed) {
      postponed[run.session, default: 0] += run.byteCount
    }
    for (id, session) in sessions {
      Invariant.check(
        session.live?.postponedByteCount ?? 0 == postponed[id] ?? 0, "what waits of a session is not what is counted")
    }
    ledger.lookAtInvariants()
  }
}

extension Ledger {
  fileprivate func lookAtInvariants() {
    Invariant.check(statements.count == authority.count, "statements are kept that are not in the set, or the reverse")
    Invariant.check(
      roomAllowance.count == authority.allStatements.count { !$0.isOfFleet }, "the allowance of rooms is miscounted")
    Invariant.check(takes.areCounted(partitions, authority), "what devices take is miscounted")
  }
}
