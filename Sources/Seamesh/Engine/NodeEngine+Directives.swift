import Identity
import Replication
import Storage
import Transport
import Wire

extension NodeEngine {
  func perform(_ directive: Mesh.Directive) {
    switch directive {
    case .send(let id, let message): emit(.message(id, message))
    case .close(let id, let goodbye): close(id, goodbye)
    case .authenticated(let id, let device, let hello): authenticated(id, device, hello)
    case .load(let id, let partition, let have, let byteLimit): pending.loads.append((id, partition, have, byteLimit))
    case .createPartition(let id, let name): pending.partitions.append((id, name))
    case .apply(let partition, let source, let runs): apply(partition, source, runs)
    case .store(let statements):
      pending.statements += statements
      intake.adopt(mesh.authority.adding(statements))
    case .stage(_, let piece): stage(piece)
    case .admit(let id, let request): admit(id, request)
    case .renewReplica: demandRenewal(.peer)
    case .loadChain(let partition, let replica, let first, let purpose):
      loadChain(partition, replica, from: first, purpose)
    case .loadEvidence(let id, let partition, let replica, let above):
      loadEvidence(id, partition, replica, above: above)
    case .rebuild(let partition, let change): pending.rebuilds.append((partition, change))
    case .damaged(let partition, let replica):
      demandRenewal(.corruption)
      log.error("the log of a chain does not fit together", ["replica": replica.text, "partition": name(partition)])
    case .note(let id, let note): take(note, id)
    }
  }

  private func apply(_ partition: PartitionID, _ source: SessionID, _ runs: [DeliveredRun]) {
    pending.applied.append(PendingCommit.Applied(partition: partition, source: source, runs: runs))
    for run in runs {
      pending.changeCount += run.incoming.hashes.count
      pending.byteCount += run.incoming.encoded.count
    }
  }

  private func stage(_ piece: PayloadPiece) {
    pending.pieces.append(piece)
    pending.byteCount += piece.bytes.count
  }

  func name(_ partition: PartitionID) -> String { mesh.partitions[partition]?.name.text.string ?? "?" }

  // MARK: Reading the log

  /// After the commit, so that nothing leaves the node that is not durable.
  func answerLoads() {
    while !pending.loads.isEmpty {
      let loads = pending.loads
      pending.loads = []
      for (id, partition, have, byteLimit) in loads {
        let (runs, hasMore) = attempt(([], false)) {
          try LogReader(store: store, fleet: files.fleet, mesh: mesh).runs(
            partition, lackedBy: have, byteLimit: byteLimit)
        }
        deliver(.loaded(id, partition, runs, hasMore: hasMore))
      }
      commit()
    }
  }

  /// Runs that wait for the commit belong to what is read. Statements alone do not: on disk without the documents that
  /// they move, they would leave those as they were for ever.
  private func loadChain(_ partition: PartitionID, _ replica: ReplicaID, from first: UInt64, _ purpose: ChainPurpose) {
    if !pending.applied.isEmpty { commit() }
    let runs = attempt([]) {
      try LogReader(store: store, fleet: files.fleet, mesh: mesh).summaries(partition, replica, from: first)
    }
    deliver(.chainLoaded(partition, replica, runs, purpose))
  }

  private func loadEvidence(_ id: SessionID, _ partition: PartitionID, _ replica: ReplicaID, above: UInt64) {
    commit()
    let runs = attempt([]) {
      try LogReader(store: store, fleet: files.fleet, mesh: mesh).evidence(partition, replica, above: above)
    }
    deliver(.evidenceLoaded(id, partition, runs))
  }

  /// Reading failed: say so and go on with nothing; a damaged store is a reason for a new replica.
  func attempt<Result>(_ otherwise: Result, _ body: () throws -> Result) -> Result {
    do {
      return try body()
    } catch {
      log.error("reading the store failed", ["reason": "\(error)"])
      if let error = error as? StoreError, error.isFatal { demandRenewal(.inputOutputError) }
      return otherwise
    }
  }

  // MARK: Joining

  private func admit(_ id: SessionID, _ request: JoinRequest) {
    // Asked again, or at another node before: the membership that it has is as good.
    if mesh.authority.member(of: request.device) != nil { return deliver(.admitted(id, true)) }
    guard let secret = files.admissionSecret else { return deliver(.admitted(id, false)) }
    let signer = StatementSigner(fleet: files.fleet, key: secret.key(in: files.fleet))
    let membership = Statement.Membership(
      device: request.device, user: request.user, label: request.label, role: request.role, profile: request.profile)
    let sequence = UInt64(mesh.authority.count) + 1
    guard request.role != FleetFounding.adminRole,
      let statement = try? signer.sign(.membership(membership), sequence: sequence)
    else { return deliver(.admitted(id, false)) }
    log.info("admitted a device", ["device": DeviceID(request.device).shortText, "user": request.user.string])
    addStatements([statement])
    commit()
    guard failure == nil else { return deliver(.admitted(id, false)) }
    deliver(.admitted(id, true))
  }

  /// Own statements: stored with the next commit, which comes before anything that stands on them.
  func addStatements(_ statements: [Statement]) {
    pending.statements += statements
    intake.adopt(mesh.authority.adding(statements))
    deliver(.statementsStored(statements))
  }

  private func take(_ note: Mesh.Note, _ id: SessionID?) {
    switch note {
    case .sessionReady(let device): log.info("session ready", ["device": device.shortText])
    case .joinRefused(let refusal):
      if refusal == .wrongCode { refusedJoins += 1 }
      log.notice("refused to admit a device", ["reason": "\(refusal)", "address": links.address(id)])
    case .peerRefused(let why): log.notice("closed a connection", ["reason": why, "address": links.address(id)])
    case .forkSeen(let replica):
      log.error("two histories of one replica: a cloned or restored device", ["replica": replica.text])
    case .clockDiffers(let milliseconds):
      links.noteClock(id, milliseconds)
      log.notice("a peer's clock differs", ["milliseconds": String(milliseconds), "address": links.address(id)])
    case .levelWith(let partition): log.debug("level with a peer", ["partition": partition.text.string])
    }
  }
}
