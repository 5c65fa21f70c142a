// What two nodes have to speak about: the common scope, and in which order on a link that has one.
extension PeerSession {
  /// Partitions that both want and both may carry: nothing else is named or sent on this session.
  func isInScope(_ partition: PartitionState, _ ledger: Ledger) -> Bool {
    isInScope(partition.id, partition.name, ledger)
  }

  func isInScope(_ id: PartitionID, _ ledger: Ledger) -> Bool {
    ledger.partitions.name(of: id).map { isInScope(id, $0, ledger) } ?? false
  }

  func isInScope(_ id: PartitionID, _ name: PartitionName, _ ledger: Ledger) -> Bool {
    interest.wants(id, name: name) && peerInterest?.wants(id, name: name) == true
      && ledger.authority.level(of: peer, in: name) >= .carry
      && ledger.authority.level(of: ledger.device, in: name) >= .carry
  }

  /// In the common scope, and not only of devices that are spent at both ends.
  func isCompared(_ id: PartitionID, _ ledger: Ledger) -> Bool {
    guard isInScope(id, ledger) else { return false }
    let spared = spared.both.places
    return spared.isEmpty || ledger.isIn(id) { !spared.contains($0) } || ledger.isRoom(id) { !spared.contains($0) }
  }

  func sparesBranches(of replica: ReplicaID, _ ledger: Ledger) -> Bool {
    guard !spared.both.branches.isEmpty, let device = ledger.authority.author(of: replica) else { return false }
    return spared.both.branches.contains(device)
  }

  /// The peer would not take them.
  func keepsBranches(of replica: ReplicaID, _ ledger: Ledger) -> Bool {
    guard !spared.peer.branches.isEmpty, let device = ledger.authority.author(of: replica) else { return false }
    return spared.peer.branches.contains(device)
  }

  /// What two nodes left out of a device differs, and neither would take it: so each says who is spent here.
  mutating func tellSpent(_ ledger: Ledger, _ step: inout Step) {
    let spent = spared.told(of: ledger.takes.spent)
    guard spared.told != spent, phase == .live, !ledger.authority.isEnded(peer) else { return }
    if spared.tell(spent) { live?.comparison.sums = nil }
    step.emit(.send(id, .spent(spent)))
  }

  /// The peer is to show branches of theirs, although no more are taken: work of others stands on them.
  mutating func askForBranches(of devices: Set<PublicKey>, _ ledger: Ledger, _ step: inout Step) {
    spared.asked.formUnion(devices)
    tellSpent(ledger, &step)
  }

  /// Where nothing that stands on them waits any more, the peer is told again with the next tick.
  mutating func askForBranchesNoMore() {
    guard !spared.asked.isEmpty, live?.streams.values.contains(where: { $0.incoming.leftOut.takesAll }) != true else {
      return
    }
    spared.asked = []
  }

  /// Something was taken: what is here of what somebody stands on is awaited no more, whoever brought it.
  mutating func endAwaiting(in partition: PartitionID, _ ledger: Ledger) {
    guard live?.streams[partition]?.incoming.leftOut.takesAll == true, let log = ledger.partitions[partition]?.log
    else { return }
    live?.streams[partition]?.incoming.leftOut.endAwaiting(in: log)
    askForBranchesNoMore()
  }

  /// What is awaited and has not come within two comparisons is awaited no more. Those that cross, or come early, count as one.
  mutating func boundLeftOut(_ step: Step) {
    let interval = step.configuration.antiEntropyMilliseconds / 2
    if let last = live?.boundAt, step.now.millisecondsSince(last) < interval { return }
    live?.boundAt = step.now
    for partition in live?.streams.keys ?? [] where live?.streams[partition]?.incoming.leftOut.takesAll == true {
      live?.streams[partition]?.incoming.leftOut.noteComparison()
    }
    askForBranchesNoMore()
  }

  /// Branches of whoever is spent there no more, or is asked for, are searched again with the next pull.
  mutating func hear(_ spent: SpentDevices, _ ledger: Ledger, _ step: inout Step) {
    let isAnyFreed = !spared.peer.branches.isSubset(of: spent.branches)
    if spared.hear(spent) { live?.comparison.sums = nil }
    if isAnyFreed { live?.doubtedIn = [] }
    guard isAnyFreed, let passedIn = live?.passedIn, !passedIn.isEmpty else { return }
    live?.passedIn = []
    for partition in passedIn.sorted() {
      let passed = live?.streams[partition]?.outgoing.passed ?? []
      if live?.streams[partition]?.outgoing.passNoMore(passed) == true { pump(partition, ledger, &step) }
    }
  }

  /// What this session may speak of follows from what is wanted here and what its link lets pass.
  mutating func pass(_ passage: Passage, _ wanted: Interest, _ ledger: Ledger) {
    self.passage = passage
    wishes.own = passage.narrowing(wanted, ledger.partitions.name(of:))
  }

  /// Who is a member no longer has nothing in common with anybody, and need not know what others want.
  func toldInterest(_ ledger: Ledger) -> Interest { ledger.authority.isEnded(peer) ? Interest() : interest }

  /// Of what one side wants no more. Wanted again, it begins anew. Answers what is closed.
  mutating func closeStreams(_ removed: Interest, _ ledger: Ledger) -> [PartitionID] {
    guard !removed.isEmpty else { return [] }
    live?.level.narrow(by: removed) { ledger.partitions[$0]?.name }
    // Where another wish stays streams go on: what is under way on them counts.
    let closed = live?.streams.keys.filter { id in
      guard let name = live?.streams[id]?.name, removed.wants(id, name: name) else { return false }
      return !(interest.wants(id, name: name) && peerInterest?.wants(id, name: name) == true)
    }
    guard let closed else { return [] }
    for partition in closed { live?.close(partition) }
    return closed
  }

  /// Under new statements a side may carry less. What is open to a session ends there at once: what was asked of the log
  /// before is not answered any more (I11). Allowed again, it begins anew.
  ///
  /// `partitions`: those that are looked at; nil: all.
  mutating func closeStreamsOutOfScope(of partitions: Set<PartitionID>?, _ ledger: Ledger) -> [PartitionID] {
    let open = partitions.map(Array.init) ?? live?.streams.keys ?? []
    let closed = open.filter { id in
      live?.streams[id].map { !isInScope(id, $0.name, ledger) } ?? false
    }
    for partition in closed {
      live?.level.unmark(partition)
      live?.close(partition)
    }
    return closed
  }

  // MARK: Order

  // On a link with an order one partition goes before the other, both ways: a later one waits while an earlier one is read,
  // or comes, on the same session. Nobody else is asked to keep it: what comes is what was asked for.

  /// The session's streams, what goes first before the rest.
  var inOrder: [PartitionID] {
    guard let streams = live?.streams else { return [] }
    guard passage.isOrdered else { return streams.keys.sorted() }
    return streams.map { (passage.rank($0.key, $0.value.name) ?? .max, $0.key) }.sorted { $0 < $1 }.map(\.1)
  }

  /// The same of any partitions. A peer without an order of its own asks for them as they were named to it, and what is asked
  /// for first has been read, and waits in the transport, before the rest is asked for.
  func inOrder(_ ids: Set<PartitionID>, _ ledger: Ledger) -> [PartitionID] {
    guard passage.isOrdered else { return ids.sorted() }
    let ranked = ids.map { id in (ledger.partitions[id].flatMap { passage.rank(id, $0.name) } ?? .max, id) }
    return ranked.sorted { $0 < $1 }.map(\.1)
  }
}
