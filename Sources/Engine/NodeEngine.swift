import Replication
import Wire

/// The part of a node that changes, on one thread: the sync core, the store's writer, whom to dial.
///
/// A turn takes what came in, lets the core judge it, commits once, and then tells what became durable. What the core
/// wants done is carried out from a queue, in the order in which it came up: what an answer brings goes to its end.
/// Messages wait until nothing is pending that they may speak of.
///
/// No IO, clock, chance or thread of its own: those come in by ``EnginePorts``. The node and the simulator run this
/// same code. Not thread-safe: one thread calls it.
package final class NodeEngine {
  package let state: EngineState
  package let links: LinkDirector
  package let keeper: ReplicaKeeper
  let journal: any EngineJournal
  let listener: any CommitListener

  private var pending = PendingCommit()
  private var held = HeldWrites()
  private var directives = Queue<Mesh.Directive>()
  private var outbox = Outbox()
  private let questions: LogQuestions
  private let notes: MeshNotes
  private let writer: StoreWriter
  private var reissues = ReissueSchedule()
  private var admissions = Admissions()
  private var lastTick: MonotonicTime
  private var rhythm = WriteRhythm()
  /// When it is tried again to store what the opening moved: on a full disk the links stay, and the log is not read over and over.
  private var movedDue = MonotonicTime(milliseconds: 0)
  static let movedAgainMilliseconds: UInt64 = 5_000
  /// When it is tried again to write down that the log is damaged.
  var damageNoteDue = MonotonicTime(milliseconds: 0)
  /// Chains of which runs were put back that did not read, by partition: what waited for them has to go on.
  var mended: [PartitionID: Set<ReplicaID>] = [:]

  /// Set when the store failed for good (K3): nothing is acknowledged any more.
  package var failure: (any Error)? { writer.failure }
  /// Also where a read alone has failed, so that nothing is known of what is written: the store is to be opened again.
  package var storeFailure: (any Error)? { failure ?? questions.failure }

  package init(_ identity: EngineIdentity, _ options: EngineOptions, _ ports: EnginePorts) throws {
    state = try EngineState(identity, options, ports)
    links = LinkDirector(ports, device: identity.deviceID, state.mesh.authority)
    (journal, listener) = (ports.journal, ports.feed)
    keeper = ReplicaKeeper(state, ports.journal)
    writer = StoreWriter(state, keeper, ports.journal)
    questions = LogQuestions(state, ports.journal)
    notes = MeshNotes(ports.journal, links, state)
    lastTick = MonotonicTime(milliseconds: 0)
    keeper.saveMark()
    noteUnread()
  }

  private func noteUnread() {
    let chains = state.mesh.partitions.values.reduce(0) {
      $0 + $1.log.incompleteChains.union($1.log.unreadTrunks).count
    }
    guard chains > 0 || !state.damagedRuns.isEmpty else { return }
    journal.note(
      .error, "runs of the log do not read; all else is here",
      ["runs": .text("\(state.damagedRuns.count)"), "chains left incomplete": .text("\(chains)")])
  }

  // MARK: Turns

  /// Takes in what came, in order, and does all that follows from it.
  ///
  /// - Parameter asked: takes what users of this node asked meanwhile. It is looked for before each event, and answered
  ///   at once.
  ///
  /// `isEnding`: nothing more of what peers sent is taken. They were promised nothing of it.
  package func turn(
    _ events: [EngineEvent], asked: () -> [EngineEvent] = { [] }, isEnding: () -> Bool = { false }
  ) {
    if !state.moved.isEmpty, failure == nil, state.clock.now >= movedDue { commit() }
    attend(asked())
    for event in events {
      guard !isEnding() else { break }
      takeIn(event)
      attend(asked())
    }
    tickIfDue()
    pending.writes += held.take(state.clock.now, state.mustHold)
    settle()
    goOnBehindMended()
    reissueLost()
    answerLoads(asked)
    attend(asked())
    carryOver()
  }

  private func takeIn(_ event: EngineEvent) {
    take(event)
    proceed(committing: false)
    if pending.isFull(state.options.limits, isAttended: isAttended) { settle() }
  }

  /// Whoever writes waits for his own transaction alone, behind one that had begun.
  private func attend(_ asked: [EngineEvent]) {
    for event in asked { takeIn(event) }
    guard asked.contains(where: \.isToBeDurable) else { return }
    settle()
  }

  /// Somebody writes on this node: transactions stay small, since he waits for them.
  private var isAttended: Bool {
    rhythm.isAttended(state.clock.now, within: state.options.limits.attendedMilliseconds)
  }

  /// Peers wait for what the log has for them: a few of its parts are read in each turn.
  package var hasLoads: Bool { questions.hasLoads }

  /// The time at which the next turn is due even if nothing comes.
  package var nextWake: MonotonicTime {
    guard !hasLoads else { return state.clock.now }
    var wake = lastTick.advanced(byMilliseconds: Mesh.tickMilliseconds)
    if let deadline = state.nextDeadline { wake = min(wake, deadline) }
    if let release = held.nextRelease { wake = min(wake, release) }
    if let dial = links.nextWake { wake = min(wake, dial) }
    if failure == nil, let delay = state.store.carryDelay {
      wake = min(wake, rhythm.nextCarrying(after: delay))
    }
    return wake
  }

  /// Says goodbye. What was acknowledged is on disk already.
  package func finish() {
    pending.writes += held.takeAll()
    settle()
    for id in state.mesh.sessions.ids {
      _ = links.send(.goodbye(.stopping), to: id)
      links.close(id)
    }
    if failure == nil { keeper.saveMark() }
  }

  private func take(_ event: EngineEvent) {
    switch event {
    case .opened(let link): opened(link)
    case .message(let id, let message, let byteCount):
      // What was judged without them is stored before; they and what they move then stand in one transaction.
      if case .statements = message { settle() }
      let answers = state.handle(.received(id, message))
      links.noteAnswers(answers, to: id)
      directives.put(answers)
      links.release(id, byteCount: byteCount)
    case .runs(let id, let batch, let runs, let byteCount):
      receive(batch, runs, from: id)
      links.release(id, byteCount: byteCount)
    case .ledgerRun(let name, let run): handle(.ledgerRun(name, run))
    case .violation(let id, let reason, let place): handle(.violated(id, reason, at: place))
    case .closed(let id, let reason): if links.closed(id, reason) { handle(.closed(id)) }
    case .drained(let id):
      state.mesh.limitPortions(of: id, to: links.portionByteCount(of: id))
      if links.drained(id) { handle(.writable(id)) }
    case .dialFailed(let tag, let reason, let isClosed): links.dialFailed(tag, isClosed ? .linkClosed : .failed(reason))
    case .sighting(let event): links.follow(event)
    case .networkChanged: links.networkChanged()
    case .passagesMoved: links.passagesMoved()
    case .write(let job):
      rhythm.noteWrite(state.clock.now)
      // Behind those of the partition that wait already.
      if held.holds(job.partition) || state.mustHold(job.partition) {
        held.put(job, state.clock.now)
      } else {
        pending.writes.append(job)
      }
    case .subscription(let job): subscribe(job)
    case .call(let body):
      // What the core has taken in must be on disk before anybody is told of it.
      settle()
      body(self)
    case .look(let body): body(self)
    }
  }

  private func tickIfDue() {
    let now = state.clock.now
    let isDue = state.nextDeadline.map { $0 <= now } ?? false
    if isDue || now.millisecondsSince(lastTick) >= Mesh.tickMilliseconds {
      lastTick = now
      let isScrubbed = scrubLog(isCrowded: rhythm.occasion(now, hasLoads: hasLoads) == .attended)
      let moved = state.damagedRuns.takeMoved()
      if !moved.isEmpty { handle(.damageMoved(moved)) }
      if isScrubbed { handle(.logScrubbed) }
      if state.damagedRuns.takeDemand() { state.scrub.demandPass(now) }
      noteDamage()
      handle(.tick)
      askForDamagedRuns()
      links.renewAnswers()
      if keeper.saveMarkIfDue() { reissues.noteCause() }
    }
    links.follow(.tick)
  }

  // MARK: Carrying out

  private func handle(_ event: Mesh.Event) { directives.put(state.handle(event)) }
  func carryOut(_ directive: Mesh.Directive) { directives.put([directive]) }

  /// Carries out every directive and answers every question, which comes to an end, since each answer of the log brings the
  /// core further. Commits before a question whose answer depends on it and, where `everything` is to be durable, until
  /// nothing waits. Nothing else commits.
  private func proceed(committing everything: Bool) {
    while true {
      while let directive = directives.take() { perform(directive) }
      let question = questions.take()
      if mustCommit(before: question, everything) { commit() } else if question == nil { break }
      if let question { answer(question) }
    }
    if pending.isEmpty { flush() }
  }

  private func mustCommit(before question: LogQuestion?, _ everything: Bool) -> Bool {
    guard let question else { return everything && !pending.isEmpty && failure == nil }
    // Runs that wait for the commit belong to what is read. Statements alone do not: on disk without the documents that
    // they move, they would leave those as they were for ever.
    return question.needsEverythingStored && !pending.isEmpty || !pending.applied.isEmpty
  }

  func settle() {
    proceed(committing: true)
    guard let failure else { return }
    for job in pending.writes + held.takeAll() { job.answer(.failure(failure)) }
    for job in pending.subscriptions { job.answer(.failure(failure)) }
    pending = PendingCommit()
    flush()
  }

  private func perform(_ directive: Mesh.Directive) {
    switch directive {
    case .send(let id, let message): outbox.put(message, to: id)
    case .close(let id, let goodbye):
      links.refused(id, goodbye)
      outbox.close(id)
    case .authenticated(let id, let device, let hello): authenticated(id, device, hello)
    case .admitted(let id): links.admitted(id)
    case .linked(let id, let count): links.counted(id, count)
    case .apply(let partition, let source, let runs): pending.apply(partition, from: source, runs)
    case .rebuild(let partition, let change): pending.rebuilds.append((partition, change))
    case .stage(let id, let key, let piece): pending.stage(piece, as: key, from: id)
    case .store(let statements):
      pending.statements += statements
      links.adopt(state.mesh.authority)
    case .discard(let displaced): pending.displaced += displaced
    case .keep(let signed, let source):
      pending.holdings.append((KeptHoldings(signed, heard: state.clock.wallMilliseconds), source))
    case .load(let id, let partition, let have, let byteLimit):
      questions.put(.lacking(id, partition, have, byteLimit: byteLimit))
    case .tellWhenSaid(let id): questions.put(.isSaid(id))
    case .loadChain(let partition, let replica, let first, let purpose):
      questions.put(.chain(partition, replica, from: first, purpose))
    case .loadEvidence(let id, let partition, let replica, let above, let isRest):
      questions.put(.evidence(id, partition, replica, above: above, isRest: isRest))
    case .redeem(let id, let request, let exporter): redeem(id, request, exporter)
    case .renewReplica(let name): keeper.demandRenewal(.peer, in: state.identity.id(of: name))
    case .damaged(let partition, let replica):
      // Of an own chain that was read: what others hold of it may go on otherwise.
      if state.own.writes(under: replica), questions.couldRead(replica) { keeper.demandRenewal(.corruption) }
      journal.note(
        .error, "the log of a chain does not fit together",
        ["replica": .replica(replica), "partition": .text(state.name(partition))])
    case .note(let id, let note): notes.take(note, id)
    }
  }

  /// Durable before sent: asserted, since a message too early shows only after a crash.
  private func flush() {
    precondition(pending.isEmpty && !writer.isWriting, "a message before the commit of what it may speak of")
    for id in outbox.flush(over: links) { state.mesh.pause(id) }
  }

  // MARK: Committing

  /// One transaction for all that waits; then, and only then, tells peers, clients and listeners.
  private func commit() {
    var batch = pending
    pending = PendingCommit()
    let isAheadOfDisk = batch.isAheadOfDisk
    // Where the disk refused it, it goes along with what changes documents: nothing may be judged before it.
    let takesMoved = isAheadOfDisk || !batch.writingPartitions.isEmpty || state.clock.now >= movedDue
    if takesMoved { batch.rebuilds += state.moved }
    do {
      let written = try writer.write(batch)
      if takesMoved { state.moved = [] }
      if written.done.hasNotedUnderstanding { state.hasNotedUnderstanding = true }
      noteSetAside(written.done)
      reissues.noteCommit()
      if written.sawFork || !batch.statements.isEmpty { reissues.noteCause() }
      rhythm.noteCommit(state.clock.now)
      flush()
      tell(written.done, batch)
    } catch {
      if takesMoved { movedDue = state.clock.now.advanced(byMilliseconds: NodeEngine.movedAgainMilliseconds) }
      abandon(batch, error, isAheadOfDisk: isAheadOfDisk)
    }
  }

  /// The core goes on with what was mended, and all that follows from it is stored.
  func tellMended(_ replicas: Set<ReplicaID>, _ stored: [StoredHeaders], in partition: PartitionID) {
    reissues.noteCause()
    handle(.logMended(partition, replicas, stored))
    settle()
  }

  private func noteSetAside(_ done: Committed) {
    if done.owesDocuments { state.noteOwing() }
    guard done.setAsideCount > 0 else { return }
    journal.note(
      .error, "documents could not be made anew, and are refused until the log reads",
      ["documents": .text("\(done.setAsideCount)")])
  }

  private func tell(_ done: Committed, _ batch: PendingCommit) {
    state.staged = done.staged
    for (run, chain) in done.mended { noteMended(run, chain) }
    for chain in done.reread { mended[chain.partition, default: []].insert(chain.replica) }
    let record = state.record(of: done, batch)
    if !record.isEmpty { listener.committed(record) }
    if let drawn = done.drawn {
      links.adopt(state.mesh.authority)
      drawn.note(in: journal)
    }
    if done.hasChangedReplica { keeper.saveMark() }
    directives.put(done.directives)
    for name in done.subscribed { noteSubscription(name.text, isWanted: true) }
    for job in batch.subscriptions { noteSubscription(job.pattern, isWanted: job.isWanted) }
    for partition in done.forgotten { state.mesh.forget(partition) }
    let commits = batch.applied.map(\.commit) + done.own.map(\.commit)
    if !commits.isEmpty { handle(.committed(commits)) }
    if !batch.holdings.isEmpty { handle(.holdingsKept(batch.holdings)) }
    for (id, name) in done.spoiled {
      handle(.violated(id, EngineError.payloadSpoiled.rule, at: BrokenRule.Place(partition: name)))
    }
    for (job, result) in done.receipts {
      if case .failure(let error) = result { notes.noteUndeletable(error, in: job.partition) }
      job.answer(result)
    }
    for job in batch.subscriptions { job.answer(.success(())) }
  }

  /// Nothing of it was written. Remote runs come again after a new session; local writers hear why.
  ///
  /// - Parameter isAheadOfDisk: besides what the opening moved, which waits: sessions need not suffer for it either.
  private func abandon(_ batch: PendingCommit, _ error: any Error, isAheadOfDisk: Bool) {
    journal.note(.error, "writing the store failed", ["reason": .text("\(error)")])
    for job in batch.writes { job.answer(.failure(error)) }
    for job in batch.subscriptions { job.answer(.failure(error)) }
    if !batch.reissues.isEmpty { reissues.noteFailure() }
    // Own writes alone are undone already; sessions need not suffer for a full disk.
    if failure != nil || isAheadOfDisk { beginAgain() } else { flush() }
  }

  /// The core took in what did not reach the disk: everything is read again, and every session begins anew.
  private func beginAgain() {
    journal.note(.notice, "begins again from what is stored", [:])
    links.cutAll()
    (pending, outbox, directives) = (PendingCommit(), Outbox(), Queue())
    questions.removeAll()
    guard failure == nil else { return }
    do {
      try state.readAgain()
      links.adopt(state.mesh.authority)
    } catch {
      writer.giveUp(error)
    }
  }

  /// Own writes on a branch that lost are issued again, where this device may write: they were acknowledged, so they must
  /// come to count.
  private func reissueLost() {
    guard failure == nil, reissues.take() else { return }
    for owed in Reissue.owed(in: state) {
      // Written as anything else is: once it is sure under which replica id.
      guard !state.mustHold(owed.name), !ReplicaRenewal(state).isPutOff(for: owed.partition, owed.name) else {
        reissues.noteCause()
        continue
      }
      journal.note(
        .notice, "issues again what a fork had put aside",
        ["changes": .text("\(owed.lost.count)"), "partition": .text(state.name(owed.partition))])
      pending.reissues = [owed]
      settle()
      // One that cannot be written keeps no other partition from its own.
      if failure != nil { return }
    }
  }

  /// Last in a turn, when everybody has been answered and what they may hear has been sent.
  private func carryOver() {
    guard failure == nil else { return }
    let now = state.clock.now
    rhythm.noteCarrying(now)
    writer.carryOver(rhythm.occasion(now, hasLoads: questions.hasLoads))
  }

  // MARK: Reading the log

  private func answer(_ question: LogQuestion) { handle(questions.answer(question, hasFailed: failure != nil)) }

  /// After the commit, so that nothing leaves the node that is not durable. What is left is answered in the next turn, when
  /// what came meanwhile has been taken in.
  private func answerLoads(_ asked: () -> [EngineEvent]) {
    for _ in 0..<state.options.limits.loadsOfOneTurn {
      guard let load = questions.takeLoad() else { return }
      // A link that is never full has nothing to tell of how fast it is.
      if let id = load.session { state.mesh.limitPortions(of: id, to: links.portionByteCount(of: id)) }
      answer(load)
      settle()
      attend(asked())
    }
  }

  /// Reading failed: say so and go on with nothing.
  package func attempt<Result>(_ otherwise: Result, _ body: () throws -> Result) -> Result {
    questions.attempt(otherwise, body)
  }

  // MARK: Connections

  private func opened(_ link: OpenedLink) {
    let hasRoom = state.mesh.sessions.count < state.mesh.configuration.sessionLimit && failure == nil
    guard let passage = links.opened(link, hasRoom: hasRoom, hash: state.identity.cryptography.hash) else { return }
    handle(
      .opened(
        link.session, isDialer: link.dialTag != nil, peer: link.peerKey, exporter: link.exporter, passage: passage))
    state.mesh.limitPortions(of: link.session, to: links.portionByteCount(of: link.session))
  }

  private func authenticated(_ id: SessionID, _ device: DeviceID, _ hello: Hello) {
    state.damagedRuns.noteMet(device)
    if let address = links.authenticated(id, device, listenPort: hello.listenPort) {
      pending.contacts.append((device, address))
    }
  }

  private func receive(_ batch: RunBatch, _ runs: [ArrivedRun], from id: SessionID) {
    do {
      // Payloads that travelled ahead are looked for on disk.
      if try RunCompletion.awaitsPayloads(runs) { settle() }
      let completion = RunCompletion(state, batch, id)
      let rest = mendLog(with: try runs.map { try completed($0, by: completion) }, of: batch)
      if !rest.isEmpty || runs.isEmpty { handle(.receivedRuns(id, batch, rest)) }
    } catch is RunCompletion.LostPayload {
      handle(.payloadLost(id, batch))
    } catch let failure as any StoreFailure {
      // This node's own disk: the peer has broken no rule. What did not come in is asked for on the next session.
      attempt(()) { throw failure }
      carryOut(.close(id, .stopping))
      handle(.closed(id))
    } catch {
      handle(.violated(id, BrokenRun.rule(of: error), at: BrokenRun.place(of: error)))
    }
  }

  // MARK: Joining

  private func redeem(_ id: SessionID, _ request: JoinRequest, _ exporter: Digest) {
    switch admissions.judge(request, exporter: exporter, from: links.host(of: id), state) {
    case .refused(let refusal): handle(.joinJudged(id, .refused(refusal)))
    case .isMember(let acceptance): questions.put(.isAdmitted(id, request.device, acceptance))
    case .admits(let statement, let invitation, let acceptance):
      journal.note(
        .info, "admits a device",
        [
          "device": .device(DeviceID.derived(from: request.device, state.identity.cryptography.hash)),
          "user": .text(invitation.user.string), "invitation": .text("\(invitation.serial)"),
        ])
      admit(statement, invitation)
      questions.put(.isAdmitted(id, request.device, acceptance))
    }
  }

  /// In a transaction of its own: where it fails, nobody is admitted, and nothing else is disturbed.
  private func admit(_ statement: Statement, _ invitation: Invitation) {
    let grown = state.mesh.authority.adding([statement])
    guard grown.holds(statement.id), grown.count <= Statement.countLimit else { return }
    do {
      try store { transaction in
        try transaction.add(statement, arrived: state.clock.wallMilliseconds)
        try transaction.put(invitation)
      }
      state.invitations.put(invitation)
      handle(.statementsStored([statement]))
      links.adopt(state.mesh.authority)
    } catch {
      journal.note(.error, "a device could not be admitted", ["reason": .text("\(error)")])
    }
  }

  /// A transaction of its own, behind all that waits.
  func store(_ body: (any LogTransaction) throws -> Void) throws {
    settle()
    try writer.transact(body)
  }

  /// Statements made here: stored with the next commit, before anything that stands on them. False: none came into the
  /// set.
  @discardableResult
  package func add(_ statements: [Statement]) -> Bool {
    let grown = state.mesh.authority.adding(statements)
    let statements = statements.filter { grown.holds($0.id) && !state.mesh.authority.holds($0.id) }
    let count = state.mesh.ledger.fleetStatementCount + statements.count(where: \.isOfFleet)
    guard !statements.isEmpty, count <= Statement.countLimit else { return false }
    pending.statements += statements
    handle(.statementsStored(statements))
    links.adopt(state.mesh.authority)
    return true
  }

  // MARK: Holdings

  /// Asks peers to say now what they hold of these partitions. What they say comes after this returns.
  package func askForHoldings(of partitions: [PartitionName]) { handle(.holdingsAsked(partitions)) }

  /// What the backend has of a partition, as a forwarder read it there: this device says so under its signature.
  package func noteBackend(_ partition: PartitionName, has vector: VersionVector) {
    handle(.backendRead(partition, vector))
  }

  // MARK: For people

  /// Documents that somebody wanted to end since the start, and that nobody can; a few of them.
  package var undeletable: Set<String> { notes.undeletable }
  package var ownKey: OwnKeyNotes { notes.ownKey }
  /// Requests to join with a code that this device did not make, since the start.
  package var refusedJoins: Int { notes.refusedJoins }
  /// Who broke which rule since the start, the latest first.
  package var conduct: [ConductBook.Entry] { notes.conduct.entries }

  // MARK: Subscriptions

  /// Stored before it takes effect: who was answered finds the subscription after a restart.
  private func subscribe(_ job: SubscriptionJob) {
    guard job.isWanted != state.subscriptions.contains(job.pattern) else { return job.answer(.success(())) }
    pending.subscriptions.append(job)
    settle()
  }

  private func noteSubscription(_ pattern: Text, isWanted: Bool) {
    let interest = state.note(pattern, isWanted: isWanted)
    handle(.interestChanged(added: isWanted ? interest : Interest(), removed: isWanted ? Interest() : interest))
  }
}
