extension PartitionLog {
  /// Of an original and all its re-issues by the same device exactly one has effect: the original if it is accepted,
  /// else the lowest hash (rule C22). A raise may bring the original back after it was re-issued, twice even.
  mutating func settleEffects() -> [EffectChange] {
    guard !reissues.groups.isEmpty || !withoutEffect.isEmpty else { return [] }
    let reissued = Set(reissues.groups.values.joined().map(\.hash))
    var idle: [Digest: Dot] = [:]
    for (origin, group) in reissues.groups {
      let counting = group.filter { isAccepted($0.hash, at: $0.dot) }.sorted { $0.hash < $1.hash }
      let originalCounts = !reissued.contains(origin.hash) && isAccepted(origin.hash, at: origin.dot)
      for reissue in counting.dropFirst(originalCounts ? 0 : 1) { idle[reissue.hash] = reissue.dot }
    }
    let lost = idle.filter { withoutEffect[$0.key] == nil }
    let regained = withoutEffect.filter { idle[$0.key] == nil && isAccepted($0.key, at: $0.value) }
    withoutEffect = idle
    return
      (lost.map { EffectChange(dot: $0.value, hash: $0.key, hasEffect: false) }
      + regained.map { EffectChange(dot: $0.value, hash: $0.key, hasEffect: true) })
      .sorted { $0.dot < $1.dot }
  }

  /// By every dot of an original and its re-issues: the re-issue that has effect.
  var standIns: [Dot: Reissue] {
    var standIns: [Dot: Reissue] = [:]
    for (origin, group) in reissues.groups {
      let counting = group.filter { isAccepted($0.hash, at: $0.dot) }
      guard let effective = counting.min(by: { $0.hash < $1.hash }) else { continue }
      standIns[origin.dot] = effective
      for reissue in group { standIns[reissue.dot] = effective }
    }
    return standIns
  }

  mutating func rememberReissues(of run: RunSummary) {
    for (index, facts) in run.facts.enumerated() {
      guard let origin = facts.origin else { continue }
      let dot = Dot(replica: run.replica, sequence: run.first + UInt64(index))
      reissues.insert(Reissue(dot: dot, hash: run.hashes[index], origin: origin), authority)
    }
  }

  /// Originals and re-issues only: what of them is inside a trunk is a re-issue that counts.
  func isAccepted(_ hash: Digest, at dot: Dot) -> Bool {
    guard let chain = chains[dot.replica], dot.sequence <= chain.accepted else { return false }
    return dot.sequence < chain.trunk.sequence || chain.hash(at: dot.sequence) == hash
  }
}
