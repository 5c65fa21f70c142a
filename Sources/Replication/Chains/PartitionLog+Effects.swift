extension PartitionLog {
  /// What counts of originals and re-issues may have moved: notes in `change` what follows for the merge.
  mutating func settleEffects(_ change: inout LogChange) {
    guard !reissues.groups.isEmpty || !kin.isEmpty else { return }
    let settled = SettledReissues(self)
    change.effects = effects(of: settled.withoutEffect)
    change.regrouped = regrouped(by: settled)
    (withoutEffect, kin, reissuedBranches) = (settled.withoutEffect, settled.kin, settled.branches)
  }

  private func effects(of idle: [Digest: Dot]) -> [EffectChange] {
    let lost = idle.filter { withoutEffect[$0.key] == nil }
    let regained = withoutEffect.filter { idle[$0.key] == nil && isAccepted($0.key, at: $0.value) }
    return
      (lost.map { EffectChange(dot: $0.value, hash: $0.key, hasEffect: false) }
      + regained.map { EffectChange(dot: $0.value, hash: $0.key, hasEffect: true) })
      .sorted { $0.dot < $1.dot }
  }

  private func regrouped(by settled: SettledReissues) -> Set<Dot> {
    var dots = settled.kin.difference(from: kin)
    for branch in Set(settled.branches.keys).union(reissuedBranches.keys)
    where settled.branches[branch] != reissuedBranches[branch] {
      dots.formUnion(settled.kin.members(of: branch))
      dots.formUnion(kin.members(of: branch))
    }
    return dots
  }

  mutating func rememberReissues(of run: RunSummary) {
    for (index, facts) in run.facts.enumerated() {
      guard let origin = facts.origin else { continue }
      let dot = Dot(replica: run.replica, sequence: run.first + UInt64(index))
      reissues.insert(Reissue(dot: dot, hash: run.hashes[index], origin: origin), authority)
    }
  }

  /// What is stored, and originals and re-issues: whatever of these is inside a trunk counts.
  func isAccepted(_ hash: Digest, at dot: Dot) -> Bool {
    guard let chain = chains[dot.replica], dot.sequence <= chain.accepted else { return false }
    return dot.sequence < chain.trunk.sequence || chain.hash(at: dot.sequence) == hash
  }

  /// Does the run issue again what is not here of the chain? Then its device has another history of that.
  func isOfOtherHistory(_ run: RunSummary, of replica: ReplicaID) -> Bool {
    run.allFacts.contains { facts in
      guard let origin = facts.origin, origin.dot.replica == replica else { return false }
      return origin.dot.sequence > received.sequence(of: replica) || isReplaced(origin)
    }
  }

  /// It is known to have forked, or something of it was issued again, as is done where it has.
  package func isOfSeveralHistories(_ replica: ReplicaID) -> Bool {
    forkPoints[replica] != nil || reissues.pins[replica] != nil
  }

  /// Is a re-issue's original, or whatever has its dot here, another change than the one that it names?
  fileprivate func isReplaced(_ origin: ChangeOrigin) -> Bool {
    chains[origin.dot.replica]?.hash(at: origin.dot.sequence).map { $0 != origin.hash } ?? false
  }
}

/// Of each original and its re-issues by the same device exactly one has effect: the original if it is accepted, else the
/// lowest hash (rule C22). A raise may bring the original back after it was issued again, twice even.
private struct SettledReissues {
  private(set) var withoutEffect: [Digest: Dot] = [:]
  private(set) var branches: [ReissuedBranch: Set<ChainPosition>] = [:]
  let kin: KinTable

  init(_ log: PartitionLog) {
    let groups = log.reissues.groups.sorted { ($0.key.dot, $0.key.hash) < ($1.key.dot, $1.key.hash) }
    let reissued = Set(groups.lazy.flatMap(\.value).map(\.hash))
    var kin: [Kin] = []
    for (origin, group) in groups {
      let counting = group.filter { log.isAccepted($0.hash, at: $0.dot) }.sorted { $0.hash < $1.hash }
      guard let first = counting.first else { continue }
      // What is itself a re-issue is no original.
      let originalCounts = !reissued.contains(origin.hash) && log.isAccepted(origin.hash, at: origin.dot)
      for reissue in counting.dropFirst(originalCounts ? 0 : 1) { withoutEffect[reissue.hash] = reissue.dot }
      for reissue in counting {
        let branch = ReissuedBranch(original: origin.dot.replica, reissuer: reissue.dot.replica)
        branches[branch, default: []].insert(ChainPosition(sequence: origin.dot.sequence, tip: origin.hash.tip))
      }
      kin.append(
        Kin(
          original: origin.dot, isReplaced: log.isReplaced(origin), reissues: counting.map(\.dot),
          effective: originalCounts ? origin.dot : first.dot))
    }
    self.kin = KinTable(kin)
  }
}
