import Identity
import Replication
import Storage

extension NodeEngine {
  /// Drawn at the first write after the cause, not at start: a node that only reads leaves no trace in vectors.
  ///
  /// In a transaction of its own: nothing is signed, sent or stored under the new id before its declaration is on disk.
  func renewReplicaIfDue() throws {
    guard own.isRenewalDue else { return }
    guard let membership = mesh.authority.member(of: files.deviceKey.publicKey) else {
      throw NodeError(.notPermitted, "this device is not a member of its fleet: join again")
    }
    let nonce = UUIDValue(SecureRandom.bytes(16)) ?? .zero
    let signer = StatementSigner(fleet: files.fleet, key: files.deviceKey)
    let sequence = UInt64(mesh.authority.replicas(of: files.deviceKey.publicKey).count) + 1
    let statement = try signer.declareReplica(nonce: nonce, membership: membership.id, sequence: sequence)
    guard case .replica(let declaration) = statement.body else { return }
    if let old = own.replica {
      let causes = own.causes.map(\.rawValue).sorted().joined(separator: "; ")
      log.notice(
        "goes on under a new replica id", ["old": old.id.text, "new": declaration.replica.text, "why": causes])
    }
    try store.write(.full) { transaction in
      try transaction.addStatement(id: statement.id, encoded: statement.encoded)
      try transaction.setMeta(declaration.replica.bytes, for: .replica)
      try transaction.setMeta(nonce.bytes, for: .replicaNonce)
      try transaction.setMeta(nil, for: .restored)
    }
    own.renew(ReplicaSidecar.Incarnation(id: declaration.replica, nonce: nonce))
    intake.adopt(mesh.authority.adding([statement]))
    saveSidecar()
    deliver(.statementsStored([statement]))
  }

  /// A reason that came up while the node runs. It must outlast a stop before the next write, so the mark that would hide
  /// it goes: a sidecar that is not there vouches for no store.
  func demandRenewal(_ cause: RenewalCause) {
    guard own.causes.insert(cause).inserted, own.replica != nil else { return }
    do throws(FileError) {
      try PrivateFile.remove(files.directory.file(ReplicaSidecar.fileName))
    } catch {
      log.error("the replica's mark could not be removed", ["reason": "\(error)"])
    }
  }

  /// Notes outside of the database how far it has come (rule C20). What is noted is committed already. Before the log is
  /// noted as open there is something in it; `isLogClosed`: the database alone holds everything.
  func saveSidecar(isLogClosed: Bool = false) {
    // What is there is the evidence for the renewal that is due.
    guard own.replica == nil || own.causes.isEmpty else { return }
    do {
      if !isLogClosed { try store.noteStart() }
      var sidecar = ReplicaSidecar(
        store: store.id, replica: own.replica, reached: own.commits,
        host: try HostFacts.current(database: store.database.path))
      sidecar.log = store.isStartNoted && !isLogClosed ? .open : .closed
      sidecar.starts = try store.integer(.starts) ?? 0
      try sidecar.save(to: files.directory)
      own.marked = own.commits
    } catch {
      log.error("the replica's mark could not be written", ["reason": "\(error)"])
    }
  }

  func maintain(_ now: MonotonicTime) {
    let isDue =
      own.commits >= own.marked + ReplicaSidecar.changesBetweenMarks
      || now.millisecondsSince(lastMaintenance) >= UInt64(ReplicaSidecar.secondsBetweenMarks) * 1_000
    guard isDue else { return }
    lastMaintenance = now
    forksToSettle = true
    if own.commits > own.marked { saveSidecar() }
  }
}
