import Forwarding
import Replication

/// The backend of a world, and all that may go wrong with it and on the way there.
final class Shore {
  unowned let world: World
  let plan: ShorePlan
  var random: SimulationRandom
  /// Calls that a server which hangs carries out late.
  private var late: LateCalls
  var ledger: ModelLedger
  /// Counts how often all connections ended at once.
  private(set) var connections = 0
  private var batchesUntilCut: Int?
  /// It was put back when all was quiet, and no connection ended: readings alone can tell.
  private(set) var isPutBackUnseen = false
  private var awayUntil: UInt64 = 0
  private var dumps: [ModelLedger] = []
  /// The last one in whose place a dump came.
  private var replaced: ModelLedger?
  /// What each relay read back of a partition, the latest last.
  var readings: [Int: [PartitionID: [VersionVector]]] = [:]
  /// Every edit that the office ever asked for, whatever became of its row.
  private(set) var asked: [OfficeEdit] = []
  /// Slots of the nodes that bring edits home, while they forward.
  private(set) var carrying: [Int]
  /// Devices of which two nodes forward, or did.
  private(set) var cloned: Set<DeviceID> = []
  /// Slots of the nodes that forward.
  private(set) var relays: [Int]
  /// Nodes that forward no more, though they live on.
  private(set) var retired: [SimulatedNode] = []
  var edits = EditBook()
  /// Numbers of the runs that a relay's store ever held.
  var relayed: Set<Int> = []
  /// When a dump took the place of the ledger last.
  private(set) var putBackAt: UInt64?
  /// When the last word of the office was asked for; nil before all is quiet.
  private(set) var closedSince: UInt64?

  init(_ world: World, _ plan: ShorePlan, _ random: SimulationRandom) {
    (self.world, self.plan, self.random) = (world, plan, random)
    late = LateCalls(of: random)
    (relays, carrying) = (plan.relays, plan.carriers)
    ledger = ModelLedger(id: "model", rejectsSome: plan.rejectsSome, bug: world.options.plantedBug)
  }

  /// Slots of the nodes that forward and bring edits home.
  var carriers: [Int] { relays.filter(carrying.contains) }

  var hasGoneBack: Bool { putBackAt != nil }

  var isReachable: Bool { world.clock >= awayUntil }

  func latency() -> UInt64 { random.between(plan.latency) }

  // MARK: Calls

  func losesCall() -> Bool { loses(.callLost) }
  func losesAnswer() -> Bool { loses(.answerLost) }

  private func loses(_ occurrence: Occurrence) -> Bool {
    guard world.isTroubled, random.chance(plan.lossesOf100) else { return false }
    world.count(occurrence)
    return true
  }

  /// - Parameter book: what the node held when it sent the batch; nil: it does so now.
  func append(
    _ batch: LedgerBatch, by node: SimulatedNode, holding book: NodeBook? = nil
  ) throws(BackendProblem) -> AppendOutcome {
    let (relay, earlier, before) = (node.key.device, ledger, ledger.changeCount)
    var outcome = try append(batch, of: relay)
    world.count(.forwarded)
    if !batch.runs.isEmpty, ledger.changeCount == before { world.count(.forwardedAgain) }
    // Somebody on the way says it twice.
    if world.isTroubled, random.chance(plan.lossesOf100) { outcome = try append(batch, of: relay) }
    world.oracle.shore.words.check(earlier, ledger, by: node, holding: book ?? node.directory.book)
    cutIfDue()
    if batch.documents.contains(where: { $0.refusal != nil }) { world.count(.deadLetter) }
    if !outcome.staleMarks.isEmpty || !outcome.staleDocuments.isEmpty || !outcome.staleRanges.isEmpty {
      world.count(.leftToOther)
    }
    return outcome
  }

  /// Of a batch that is refused nothing stays, nor that its process was there.
  private func append(_ batch: LedgerBatch, of relay: DeviceID) throws(BackendProblem) -> AppendOutcome {
    let before = ledger.holds
    try hold(relay, batch.step?.writer ?? "")
    do throws(BackendProblem) { return try ledger.append(batch, by: relay) } catch {
      ledger.holds = before
      throw error
    }
  }

  /// One process speaks for a relay; another of the same device is told so.
  func hold(_ relay: DeviceID, _ process: String) throws(BackendProblem) {
    do throws(BackendProblem) {
      try ledger.hold(relay, process, at: world.clock, silence: 2 * plan.limits.readEverythingMilliseconds)
    } catch {
      world.count(.copyRefused)
      throw error
    }
  }

  /// Slots of the nodes whose word the backend takes: of copies of one device one.
  var speaking: [Int] {
    relays.filter { slot in
      guard isRefusedAsCopy(slot) else { return true }
      let key = world.nodes[slot].key
      return !relays.contains { $0 != slot && world.nodes[$0].key == key && !isRefusedAsCopy($0) }
    }
  }

  private func isRefusedAsCopy(_ slot: Int) -> Bool {
    world.nodes[slot].process?.relay?.forwarder.problem?.sentence == ModelLedger.copySentence
  }

  func answers(to questions: [ChainQuestion]) -> [ChainAnswer] {
    let asked = ledger.bug == .answersOfBefore ? replaced ?? ledger : ledger
    return questions.map(asked.answer)
  }

  func claimEdits(most: Int, by relay: DeviceID) -> [OfficeEdit] {
    if ledger.bug == .editForEverybody { ledger.office.releaseAll() }
    return ledger.office.claim(most: most, by: relay, at: world.clock)
  }

  func confirm(_ edits: [UUIDValue], reaching chains: [ChainReach], by relay: DeviceID) -> ClaimAnswer {
    let answers = answers(to: chains.map { ChainQuestion(chain: $0.chain, sequence: $0.sequence, hash: .zero) })
    return ClaimAnswer(
      hasChains: zip(chains, answers).allSatisfy { $1.highest >= $0.sequence },
      standing: ledger.office.standing(edits, of: relay))
  }

  /// Nobody waits for the answer to a batch any more; it may take effect all the same, behind what its relay sends next.
  func hasLost(_ batch: LedgerBatch, by node: SimulatedNode) {
    if late.keep(batch, by: node, at: world.clock) { world.count(.calledLate) }
  }

  /// Carries out the calls that are due.
  func catchUp() {
    for call in late.take(at: world.clock) {
      world.note("a call of relay \(call.node.slot) comes late")
      // What it is told, nobody hears.
      _ = try? append(call.batch, by: call.node, holding: call.book)
    }
  }

  // MARK: What happens ashore

  /// Something, while there is trouble.
  func act() {
    guard world.isTroubled else { return }
    world.queue.put(.shore, at: world.clock + random.between(1...plan.interval * 2))
    switch random.below(10) {
    case 0 where plan.mayBeAway:
      world.count(.backendAway)
      awayUntil = world.clock + random.between(200...6_000)
      connections += 1
    case 1: connections += 1
    case 2 where plan.mayGoBack: if dumps.count < 3 { dumps.append(ledger) }
    case 3 where plan.mayGoBack: restore()
    case 4: hurry()
    case 5 where plan.mayRetire: retire()
    default: askForEdit()
    }
  }

  private func restore() {
    guard let dump = random.pick(dumps) else { return }
    world.count(.ledgerRestored)
    world.note("the ledger is what it was")
    (replaced, ledger, putBackAt) = (ledger, dump, world.clock)
    // Who speaks through a pooler notices nothing.
    if random.chance(60) { connections += 1 }
  }

  private func hurry() {
    guard let slot = random.pick(relays) else { return }
    world.nodes[slot].process?.relay?.sendNow()
  }

  /// A copy of a node does what that does.
  func adopt(_ copy: SimulatedNode, of original: SimulatedNode) {
    guard plan.clonesForward, relays.contains(original.slot) else { return }
    world.count(.relayCloned)
    relays.append(copy.slot)
    if carrying.contains(original.slot) { carrying.append(copy.slot) }
    cloned.insert(copy.key.device)
  }

  /// One of several forwards no more.
  private func retire() {
    guard retired.isEmpty, relays.count > 1, let slot = random.pick(relays) else { return }
    world.count(.relayRetired)
    world.note("relay \(slot) forwards no more")
    relays.removeAll { $0 == slot }
    retired.append(world.nodes[slot])
    world.nodes[slot].process?.relay = nil
  }

  /// Connections begin anew: what no reading showed comes with the next one.
  func reconnect() {
    (isPutBackUnseen, closedSince) = (false, world.clock)
    connections += 1
  }

  /// All connections end behind a batch, before anybody can send what that left over.
  private func cutIfDue() {
    guard let left = batchesUntilCut else { return }
    batchesUntilCut = left > 1 ? left - 1 : nil
    if left == 1 { connections += 1 }
  }

  /// No more trouble.
  func calm() {
    awayUntil = 0
    late.hurry()
    catchUp()
  }

  /// The last things happen: the backend is put back though nobody sends anything, the office asks for something, people write at
  /// relays one right after the other, and perhaps all connections begin anew meanwhile.
  func close() {
    closedSince = world.clock
    if plan.mayGoBack, random.chance(60) {
      let before = connections
      restore()
      isPutBackUnseen = connections == before && putBackAt == world.clock
    }
    for _ in 0..<2 { askForEdit() }
    for slot in relays where random.chance(50) {
      let spread: UInt64 = random.chance(50) ? 0 : 600
      for _ in 0..<random.between(1...8) {
        guard let name = random.pick(world.plan.partitions) else { continue }
        world.queue.put(.disturb(slot: slot, name), at: world.clock + random.between(0...spread))
      }
    }
    if random.chance(50) { batchesUntilCut = random.between(1...6) }
  }

  // MARK: The office

  func askForEdit() {
    guard !carriers.isEmpty, let edit = OfficeClerk(ledger).edit(&random, at: World.epoch &+ Int64(world.clock))
    else { return }
    world.count(.officeAsked)
    world.note("the office asks for edit \(edit.id.short)")
    asked.append(edit)
    ledger.office.add(edit)
  }
}
