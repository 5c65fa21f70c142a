import Replication
import Wire

extension NodeProcess {
  func perform(_ directive: Mesh.Directive) {
    guard !isDead else { return }
    switch directive {
    case .send(let id, let message): emit(.message(id, message))
    case .close(let id, _): emit(.close(id))
    case .authenticated(let id, _, _): links[id]?.isAuthenticated = true
    case .load(let id, let partition, let have, let byteLimit):
      pending.loads.append(
        PendingCommit.Load(session: id, partition: partition, have: have, byteLimit: byteLimit))
    case .createPartition(let id, let name): pending.partitions.append((id, name))
    case .apply(let partition, let source, let runs): apply(partition, source, runs)
    case .store(let statements):
      if !world.has(.loseStatements) { pending.statements += statements }
      intakeAuthority = mesh.authority.adding(statements)
    case .stage: world.violate("stage", "a piece of a payload, though none here is large")
    case .admit(let id, let request): admit(id, request)
    case .renewReplica: demandRenewal(.peer)
    case .loadChain(let partition, let replica, let first, let purpose):
      commit()
      let runs = LogReader(self).summaries(partition, replica, from: first)
      if case .unfold = purpose { world.count(.parked) }
      deliver(.chainLoaded(partition, replica, runs, purpose))
    case .loadEvidence(let id, let partition, let replica, let above):
      commit()
      deliver(.evidenceLoaded(id, partition, LogReader(self).evidence(partition, replica, above: above)))
    case .rebuild(let partition, let change):
      if !world.has(.skipRebuild) { pending.rebuilds.append((partition, change)) }
    case .damaged(_, let replica):
      demandRenewal(.corruption)
      world.violate("damaged", "the log of chain \(replica) at node \(node.slot) does not fit together")
    case .note(_, let note): take(note)
    }
  }

  private func apply(_ partition: PartitionID, _ source: SessionID, _ runs: [DeliveredRun]) {
    pending.applied.append(PendingCommit.Applied(partition: partition, source: source, runs: runs))
    pending.changeCount += runs.reduce(0) { $0 + $1.incoming.hashes.count }
  }

  /// After the commit, so that nothing leaves the node that is not durable.
  func answerLoads() {
    var rounds = 0
    while !pending.loads.isEmpty, !isDead {
      rounds += 1
      guard rounds < NodeProcess.loadRoundLimit else {
        return world.violate("I13", "node \(node.slot) reads its log without end")
      }
      let loads = pending.loads
      pending.loads = []
      for load in loads {
        let (runs, hasMore) = LogReader(self).runs(load.partition, lackedBy: load.have, byteLimit: load.byteLimit)
        deliver(.loaded(load.session, load.partition, runs, hasMore: hasMore))
      }
      commit()
    }
  }

  /// Of one turn; histories are short.
  static let loadRoundLimit = 2_000

  private func admit(_ id: SessionID, _ request: JoinRequest) {
    // Asked again: the membership that it has is as good.
    if mesh.authority.member(of: request.device) != nil { return deliver(.admitted(id, true)) }
    let membership = Statement.Membership(
      device: request.device, user: request.user, label: request.label, role: request.role, profile: request.profile)
    guard
      let statement = world.fleet.admission.statement(
        fleet, .membership(membership), sequence: UInt64(mesh.authority.count) + 1)
    else { return deliver(.admitted(id, false)) }
    let restarts = world.occurrences[.meshRestarted]
    addStatements([statement])
    commit()
    deliver(.admitted(id, restarts == world.occurrences[.meshRestarted]))
  }

  func addStatements(_ statements: [Statement]) {
    pending.statements += statements
    intakeAuthority = mesh.authority.adding(statements)
    deliver(.statementsStored(statements))
  }

  private func take(_ note: Mesh.Note) {
    switch note {
    case .forkSeen: world.count(.forkSeen)
    case .peerRefused(let why): world.note("node \(node.slot) refused a peer: \(why)")
    case .joinRefused, .sessionReady, .clockDiffers, .levelWith: break
    }
  }
}
