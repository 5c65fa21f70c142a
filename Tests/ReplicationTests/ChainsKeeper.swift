@testable import Replication

/// A log with the storage it relies on: answers its requests for headers, and follows what it reports.
struct ChainsKeeper {
  var log: PartitionLog
  private(set) var runs: [RunSummary] = []
  private(set) var headers: [RunSummary] = []
  /// Accepted hashes per replica, put together from what the log reported.
  private(set) var followed: [ReplicaID: [Digest]] = [:]
  private(set) var followedIdle: Set<Digest> = []
  private(set) var unfolded = 0
  /// What the log said of the last event.
  private(set) var reported = LogChange()
  private let genesis: @Sendable (ReplicaID) -> Digest

  init(
    _ partition: PartitionName, authority: Authority, folds: Bool = true,
    genesis: @escaping @Sendable (ReplicaID) -> Digest
  ) {
    log = PartitionLog(partition, authority: authority, genesis: genesis, folds: folds)
    self.genesis = genesis
  }

  mutating func learn(_ run: RunSummary, content: Bool = true) throws {
    while true {
      switch log.learn(run, content: content) {
      case .needsHeaders(let requests): try requests.forEach { try unfold($0) }
      case .ignored: return
      case .done(let change):
        if content, !runs.contains(run) { runs.append(run) }
        if !content, !runs.contains(run), !headers.contains(run) { headers.append(run) }
        return follow(change)
      }
    }
  }

  mutating func adopt(_ authority: Authority) throws {
    while true {
      switch log.adopt(authority) {
      case .needsHeaders(let requests): try requests.forEach { try unfold($0) }
      case .ignored: return
      case .done(let change): return follow(change)
      }
    }
  }

  mutating func deliver(_ run: RunSummary) throws -> Verdict {
    while true {
      let verdict = log.deliver(run)
      guard case .needsHeaders(let request) = verdict else { return verdict }
      try unfold(request)
    }
  }

  /// As after a stop: from the snapshot, the statements and what is stored.
  mutating func restart() throws {
    let (authority, snapshot) = (log.authority, log.snapshot)
    let before = (log.received, log.accepted, log.held, log.withoutEffect)
    let kin = (log.kin, log.reissuedBranches)
    log = PartitionLog(restoring: snapshot, log.partition, root: Named.root, genesis: genesis)
    while case .needsHeaders(let requests) = log.adopt(authority) { try requests.forEach { try unfold($0) } }
    for (run, content) in runs.map({ ($0, true) }) + headers.map({ ($0, false) })
    where run.last > snapshot.trunks[run.replica]?.sequence ?? 0 {
      while case .needsHeaders(let requests) = log.learn(run, content: content) {
        try requests.forEach { try unfold($0) }
      }
    }
    guard before == (log.received, log.accepted, log.held, log.withoutEffect), kin == (log.kin, log.reissuedBranches)
    else { throw Forgetful() }
  }

  struct Forgetful: Error {}

  func stored(_ replica: ReplicaID, _ sequence: UInt64) -> TipHash? {
    runs.first { $0.replica == replica && $0.hash(at: sequence) != nil && isTrunk($0) }?.hash(at: sequence)?.tip
  }

  private mutating func unfold(_ request: HeaderRequest) throws {
    unfolded += 1
    let needed = runs.filter {
      $0.replica == request.replica && $0.last >= request.sequences.lowerBound
        && $0.first <= request.sequences.upperBound
    }
    try log.unfold(request, runs: needed)
  }

  private func isTrunk(_ run: RunSummary) -> Bool { run.first <= log.chains[run.replica]?.trunk.sequence ?? 0 }

  private mutating func follow(_ change: LogChange) {
    reported = change
    for moved in change.acceptance {
      var hashes = followed[moved.replica, default: []]
      precondition(hashes.count == Int(moved.from) && Array(hashes.dropFirst(Int(moved.shared))) == moved.lost)
      hashes.removeLast(moved.lost.count)
      followed[moved.replica] = hashes + moved.gained
      followedIdle.subtract(moved.lost)
    }
    for effect in change.effects {
      if effect.hasEffect { followedIdle.remove(effect.hash) } else { followedIdle.insert(effect.hash) }
    }
  }

  /// Accepted changes that have effect.
  var effective: Set<Digest> { Set(followed.values.joined()).subtracting(followedIdle) }
}
