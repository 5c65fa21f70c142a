import Replication

extension ReplicaSidecar.Loaded {
  /// Why the store must go on under a new replica, drawn at its next own write (rule C20); empty: the replica goes on.
  ///
  /// A sidecar that is absent or damaged cannot vouch for any store, so it counts as one of another store.
  package func renewalCauses(store: RenewalEvidence.Store, host: HostFacts) -> [RenewalCause] {
    switch self {
    case .present(let sidecar):
      return RenewalEvidence.causes(
        store: store, sidecar: sidecar.evidence, machine: host.machineText, inode: host.databaseInode)
    case .absent, .damaged:
      let silent = RenewalEvidence.Sidecar(
        storeID: store.id, reached: 0, machine: host.machineText, inode: host.databaseInode)
      return [.storeID]
        + RenewalEvidence.causes(
          store: store, sidecar: silent, machine: host.machineText, inode: host.databaseInode)
    }
  }
}

extension ReplicaSidecar {
  /// Whether the write-ahead log that the store was left with is gone, or has lost what it held: from what is found of it when
  /// the store is opened, and the starts that are counted in the database.
  package func hasLostLog(_ wasEmpty: Bool, starts: UInt64) -> Bool {
    RenewalEvidence.hasLostLog(wasEmpty, starts: starts, evidence)
  }

  fileprivate var evidence: RenewalEvidence.Sidecar {
    var evidence = RenewalEvidence.Sidecar(
      storeID: store, reached: reached, machine: host.machineText, inode: host.databaseInode)
    (evidence.log, evidence.starts) = (log, starts)
    return evidence
  }
}
