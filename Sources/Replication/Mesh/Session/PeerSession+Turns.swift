// How a session sends: by turns of its partitions, a portion at a time, as there is room.
extension PeerSession {
  /// The peer may lack something of the partition: it has its turn.
  mutating func pump(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    guard ledger.partitions.holds(partition),
      live?.streams.look(at: partition, { $0.outgoing.number != nil && !$0.outgoing.isBusy }) == true
    else { return }
    live?.turns.putRead(partition)
    goOn(ledger, &step)
  }

  /// What was said before is handed over, and ``isWritable`` says whether more may wait.
  mutating func said(_ ledger: Ledger, _ step: inout Step) {
    live?.turns.end()
    goOn(ledger, &step)
  }

  mutating func goOn(_ ledger: Ledger, _ step: inout Step) {
    while isWritable, let turn = takeTurn() {
      switch turn {
      case .read(let partition): read(partition, ledger, &step)
      case .piece(let partition): sendPiece(partition, ledger, &step)
      }
    }
  }

  private mutating func takeTurn() -> SendTurns.Turn? {
    guard var turns = live?.turns else { return nil }
    // Held twice, they would be copied.
    live?.turns = SendTurns()
    defer { live?.turns = turns }
    return turns.take(inOrder: passage.isOrdered) { rank($0) }
  }

  private func rank(_ partition: PartitionID) -> Int {
    live?.streams[partition].flatMap { passage.rank(partition, $0.name) } ?? .max
  }

  /// On a link with an order nothing overtakes what goes before it.
  func isItsTurn(_ partition: PartitionID, _ name: PartitionName) -> Bool {
    guard passage.isOrdered, let rank = passage.rank(partition, name) else { return true }
    return live?.turns.contains { self.rank($0) < rank } == false
  }

  // MARK: Runs

  /// Asks the log for what the peer lacks.
  private mutating func read(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    _ = live?.streams[partition]?.endRead()
    guard let state = ledger.partitions[partition], let stream = live?.streams[partition],
      stream.outgoing.number != nil, !stream.outgoing.isBusy, stream.lacks(state.log)
    else { return }
    live?.relays.end(partition)
    live?.turns.begin()
    let usual = portion(step)
    let byteLimit = live?.streams[partition]?.outgoing.beginLoad(usual) ?? usual
    step.emit(.load(id, partition, have: stream.have(of: state.log), byteLimit: byteLimit))
  }

  private func portion(_ step: Step) -> Int {
    let usual = min(step.configuration.loadByteLimit, portionByteLimit)
    return passage.isThin ? min(usual, MeshConfiguration.thinLoadByteLimit) : usual
  }

  /// What the log answered.
  mutating func loaded(
    _ partition: PartitionID, _ runs: [LoggedRun], hasMore: Bool, _ ledger: Ledger, _ step: inout Step
  ) {
    live?.turns.end()
    take(runs, hasMore: hasMore, partition, ledger, &step)
    awaitRoom(&step)
  }

  private mutating func take(
    _ runs: [LoggedRun], hasMore: Bool, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) {
    guard live?.takesAsVoid(partition) == false, let before = live?.streams[partition]?.outgoing else { return }
    live?.streams[partition]?.outgoing.endLoad()
    // What waits behind a payload is gone on with when that is through.
    guard send(runs[...], partition, ledger, &step) else { return }
    let outgoing = live?.streams[partition]?.outgoing
    let isReadAnew = live?.streams[partition]?.endRead() == true
    let isStuck = hasMore && !isReadAnew && outgoing?.sent == before.sent && outgoing?.passed == before.passed
    let usual = portion(step)
    let largest = step.configuration.largestLoadByteLimit
    let goesOn =
      live?.streams[partition]?.outgoing.setNextLoad(isStuck: isStuck, usual: usual, largest: largest) == true
    let isReadOn = goesOn ? hasMore : searchStuck(runs, partition, ledger, &step)
    if isReadOn || isReadAnew { live?.turns.putRead(partition) }
  }

  /// As much as is read at once were runs of branches that have lost: what goes on from the one that counts lies behind them.
  /// A search tells what of it the peer lacks, and the stream goes on without. Answers whether there is one that it waited for.
  private mutating func searchStuck(
    _ runs: [LoggedRun], _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) -> Bool {
    guard let log = ledger.partitions[partition]?.log else { return false }
    let forked = Set(runs.map(\.replica)).filter { log.forkPoints[$0] != nil }.sorted()
    var isAny = false
    for replica in forked where live?.streams[partition]?.covers(replica, log.clipped.sequence(of: replica)) == false {
      if keepsBranches(of: replica, ledger), var stream = live?.streams[partition] {
        pass(replica, &stream, partition, ledger, &step)
        live?.streams[partition] = stream
        isAny = true
      } else if live?.streams[partition]?.forks.beginAnew(replica) == true {
        tellSearch(partition, replica, ledger, &step)
        isAny = true
      }
    }
    if isAny { live?.streams[partition]?.outgoing.readUsualAmount() }
    return isAny
  }

  /// The next one has its turn when the last portion is handed over.
  private mutating func awaitRoom(_ step: inout Step) {
    guard let turns = live?.turns, !turns.isUnderWay, !turns.isEmpty else { return }
    live?.turns.begin()
    step.emit(.tellWhenSaid(id))
  }

  // MARK: Payloads

  /// The payload of the first of these runs goes ahead of it in pieces, and the rest behind them.
  mutating func beginPayload(_ runs: ArraySlice<LoggedRun>, _ partition: PartitionID, _ step: inout Step) {
    guard live?.turns.takesPayload == true else {
      live?.turns.putCrowded(partition)
      return
    }
    live?.streams[partition]?.outgoing.beginPayload(runs)
    live?.turns.putPayload(partition)
    awaitRoom(&step)
  }

  private mutating func sendPiece(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    let byteLimit = min(max(portion(step), PayloadPiece.leastByteCount), PayloadPiece.byteLimit)
    guard let name = live?.streams[partition]?.name,
      let piece = live?.streams[partition]?.outgoing.takePiece(byteLimit, of: name)
    else {
      live?.turns.endPayload()
      return
    }
    live?.turns.begin()
    step.emit(.send(id, .payloadPiece(piece)))
    step.emit(.tellWhenSaid(id))
    if let behind = live?.streams[partition]?.outgoing.takeBehindPayload() {
      live?.turns.endPayload()
      if send(behind, partition, isBehindPayload: true, ledger, &step) { live?.turns.putRead(partition) }
      // Not when it is read: what is left to others until then, they bring.
      live?.streams[partition]?.outgoing.takeBackBehindPayload()
    } else {
      live?.turns.putPayload(partition)
    }
  }
}
