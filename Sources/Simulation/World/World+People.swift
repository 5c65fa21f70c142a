import Engine
import Replication

extension World {
  static let checkInterval: UInt64 = 500
  /// What is new reaches everyone within so long, and a few round trips for each hop, where all are connected.
  static let promptMilliseconds: UInt64 = 3_000
  /// Nothing may move any more for so long after all agree.
  static let settlingMilliseconds: UInt64 = 3_000

  /// Somebody does something somewhere.
  func act() {
    guard isTroubled else { return }
    queue.put(.act, at: clock + random.between(1...plan.actionInterval * 2))
    guard let process = random.pick(nodes.compactMap(\.process)) else { return }
    switch random.below(100) {
    case 0..<4:
      guard let name = random.pick(plan.partitions) else { return }
      process.subscribe(random.chance(70) ? name.text : random.chance(50) ? "al*" : "*", isWanted: true)
      count(.subscribed)
    case 4..<7:
      guard let pattern = random.pick(process.engine.state.subscriptions.sorted()) else { return }
      process.subscribe(pattern, isWanted: false)
      count(.unsubscribed)
    case 7..<11: askForHoldings(process)
    default:
      if process.node.isFlooder { count(.flooded) }
      for _ in 0..<(random.chance(20) || process.node.isFlooder ? random.between(2...plan.writesAtOnce) : 1) {
        write(process)
      }
    }
  }

  /// People at these nodes are busy for a while, whether the nodes run or not.
  func bustle(at slots: [Int]) {
    for slot in slots {
      for _ in 0..<random.between(2...8) { queue.put(.write(slot: slot), at: clock + random.between(20...9_000)) }
    }
  }

  func write(_ process: NodeProcess) {
    guard let name = name(writtenAt: process) else { return }
    nextJob += 1
    let ids = plan.documents.shuffled(using: &random)
    let isLarge = mayCause(.largePayload) && random.chance(10)
    if isLarge { count(.largePayload) }
    let edits = ids.prefix(random.chance(70) ? 1 : random.between(1...3)).map {
      AuthoredEdit(id: $0, seed: random.next(), largestByteCount: isLarge ? plan.largestByteCount : nil)
    }
    process.write(WriteJob(number: nextJob, partition: name, edits: edits))
  }

  /// A flooder begins ever new partitions; others go where one of theirs is, now and then.
  private func name(writtenAt process: NodeProcess) -> PartitionName? {
    if process.node.isFlooder { return random.pick(random.chance(80) ? plan.flooded : plan.partitions) }
    let visited = plan.visited.filter { process.mesh.partitions[fleet.partition($0)]?.log.received.isEmpty == false }
    if !visited.isEmpty, random.chance(20) { return random.pick(Array(visited)) }
    return random.pick(plan.partitions)
  }

  func checkAgreement() {
    if !oracle.agreement.areAllConnected() { connectedSince = clock + World.checkInterval }
    askAgain()
    let work = oracle.agreement.disagreementInWork()
    if let difference = work ?? oracle.agreement.disagreementInAnswers() {
      agreedSince = nil
      // Who was asked answers its own peers alone: all others hear of it in comparisons, and those wait.
      let isPrompt = isPrompt && work != nil
      let limit = agreementLimit(isPrompt: isPrompt)
      // A dial that began while there was trouble may be waited for in vain until it is given up.
      let undisturbedSince = isPrompt ? connectedSince : calmSince + DialPolicy.Limits.attemptTimeoutMilliseconds
      if clock > max(quietSince, undisturbedSince) + limit {
        return violate("I14", "no agreement \(limit) ms after all was quiet: \(difference)")
      }
    } else if agreedSince == nil {
      agreedSince = clock
      report.convergenceMilliseconds = max(report.convergenceMilliseconds, clock - quietSince)
    }
    queue.put(.check, at: clock + World.checkInterval)
  }

  /// Is anything left to wait for, now that all agreed for a while?
  func goesOn() -> Bool {
    // Until it may renew a replica id of which there is another history, a node refuses to write: a minute at most. Asked first, since
    // this is asked with each event, and whether all agree takes long to see.
    guard !isAnyoneBarred else { return true }
    guard oracle.agreement.disagreement() == nil else {
      agreedSince = nil
      return true
    }
    return beginWish() || beginLastWords() || beginDisturbance() || beginAsking() || isBusyAshore()
  }

  private var isAnyoneBarred: Bool {
    nodes.compactMap(\.process).contains { process in
      partitions.contains { process.engine.state.mustWait(for: fleet.partition($0), $0) }
    }
  }

  /// When all agree, somebody wants everything, and has it though nobody writes. False where that is over.
  private func beginWish() -> Bool {
    guard !hasWished, let wisher = random.pick(nodes.compactMap(\.process)) else { return false }
    (hasWished, agreedSince, quietSince) = (true, nil, clock)
    isPrompt = nodes.allSatisfy(\.isHonest) && oracle.agreement.areAllConnected()
    // Nodes that had nothing in common may have it through this one from now on.
    wisher.subscribe("*", isWanted: true)
    return true
  }

  /// When all agree, everyone writes once more, and all have to agree on that, too. False where that is over.
  private func beginLastWords() -> Bool {
    guard lastWords.isEmpty else { return false }
    (agreedSince, quietSince) = (nil, clock)
    isPrompt = nodes.allSatisfy(\.isHonest) && oracle.agreement.areAllConnected()
    lackedStatements = oracle.agreement.ended.slotsThatLackStatements()
    for name in partitions {
      for process in oracle.known.groups(wanting: name).joined() where oracle.known.mayWrite(process.node, name) {
        nextJob += 1
        lastWords.insert(nextJob)
        let id = random.pick(plan.documents) ?? .int(0)
        let edit = AuthoredEdit(id: id, seed: random.next(), largestByteCount: nil)
        process.write(WriteJob(number: nextJob, partition: name, edits: [edit]))
      }
    }
    return !lastWords.isEmpty
  }

  /// Until a dead connection is noticed, a new one made, and summaries compared a few times, over as many hops as there are.
  private func agreementLimit(isPrompt: Bool) -> UInt64 {
    // Who comes to want a room may hear of it with the next comparison.
    if isPrompt, roomLife == nil {
      let hop = plan.mesh.relayMilliseconds + 4 * plan.latency.upperBound
      return World.promptMilliseconds + UInt64(nodes.count) * hop
    }
    return plan.mesh.deadMilliseconds + plan.mesh.handshakeMilliseconds
      + (plan.isNetworkChangeTold ? 0 : DialPolicy.Limits.longestDelayMilliseconds)
      + UInt64(nodes.count) * (plan.mesh.antiEntropyMilliseconds * 5 / 4 + plan.mesh.catchUpSilenceMilliseconds)
  }
}
