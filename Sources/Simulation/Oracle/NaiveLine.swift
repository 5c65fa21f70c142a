import Replication

/// One replica's changes in one partition, judged as a whole (C4–C6, C13): every known header, whatever came first.
struct NaiveLine {
  struct Known {
    let sequence: UInt64
    let hash: Digest
    let previous: Digest
    /// Where the content is here.
    var content: ObservedChange?
    var context: [ReplicaID: NaivePosition] = [:]
  }

  struct Held {
    let sequence: UInt64
    let hash: Digest
    let reason: NaiveReason
  }

  let replica: ReplicaID
  let known: [Known]
  let limits: NaiveLimits
  /// C6: the chosen branch, as far as headers are known.
  let branch: [Known]

  /// `genesis`: the hash before the first change.
  init(_ replica: ReplicaID, runs: [ObservedRun], genesis: Digest, limits: NaiveLimits) {
    let known = NaiveLine.headers(runs.filter { $0.replica == replica })
    (self.replica, self.known, self.limits) = (replica, known, limits)
    var branch = NaiveLine.throughBound(limits.branch, known, genesis)
    // At each fork the lowest next hash, whether its content is here or not.
    while let next = NaiveLine.following(branch.last, known, genesis).min(by: { $0.hash < $1.hash }) {
      branch.append(next)
    }
    self.branch = branch
  }

  private static func headers(_ runs: [ObservedRun]) -> [Known] {
    var known: [Digest: Known] = [:]
    for run in runs {
      var previous = run.hashBefore
      for (index, change) in run.changes.enumerated() {
        let header = Known(sequence: run.first + UInt64(index), hash: change.hash, previous: previous)
        known[change.hash] = known[change.hash] ?? header
        if run.hasContent {
          known[change.hash]?.content = change
          known[change.hash]?.context = run.context
        }
        previous = change.hash
      }
    }
    return known.values.sorted { ($0.sequence, $0.hash) < ($1.sequence, $1.hash) }
  }

  private static func following(_ end: Known?, _ known: [Known], _ genesis: Digest) -> [Known] {
    known.filter { $0.sequence == (end?.sequence ?? 0) + 1 && $0.previous == end?.hash ?? genesis }
  }

  /// C6: if the headers of the bound's (sequence, hash) are known back to the start, the branch through it.
  private static func throughBound(_ bound: NaivePosition, _ known: [Known], _ genesis: Digest) -> [Known] {
    guard var last = known.first(where: { $0.sequence == bound.sequence && $0.hash.tip == bound.tip }) else {
      return []
    }
    var path = [last]
    while last.sequence > 1 {
      guard let before = known.first(where: { $0.hash == last.previous && $0.sequence == last.sequence - 1 }) else {
        return []
      }
      path.append(before)
      last = before
    }
    return last.previous == genesis ? path.reversed() : []
  }

  // MARK: What counts

  /// C5: lowest sequence before any two changes with one predecessor. It stands also where its start does not join.
  var forkPoint: UInt64? {
    known.filter { one in
      known.contains { $0.sequence == one.sequence && $0.previous == one.previous && $0.hash != one.hash }
    }.map { $0.sequence - 1 }.min()
  }

  /// C5: of all changes with one predecessor the two lowest.
  var forks: [ForkProof] {
    struct Place: Hashable {
      let sequence: UInt64
      let previous: Digest
    }
    let places = Dictionary(grouping: known) { Place(sequence: $0.sequence, previous: $0.previous) }
    return places.compactMap { place, rivals in
      let hashes = rivals.map(\.hash).sorted()
      guard hashes.count > 1 else { return nil }
      return ForkProof(
        replica: replica, sequence: place.sequence, hashBefore: place.previous, first: hashes[0], second: hashes[1])
    }
  }

  /// C6: contiguous content on the chosen branch.
  var received: [Known] { Array(branch.prefix { $0.content != nil }) }

  /// C4: the longest received prefix where each change passes.
  var accepted: [Known] { Array(received.prefix { reason(against: $0) == nil }) }

  /// C13: min(received, bound).
  var clipped: [Known] { received.filter { $0.sequence <= limits.bound.sequence } }

  private func reason(against change: Known) -> NaiveReason? {
    limits.reason(against: change.content, at: change.sequence)
  }

  /// C4: the first that fails gives its reason, what follows is held after it; content off the branch is on another one, and
  /// content on it behind a hole waits for what is missing.
  var held: [Held] {
    let refused = received.dropFirst(accepted.count)
    let above = refused.enumerated().map { index, change in
      Held(
        sequence: change.sequence, hash: change.hash,
        reason: index == 0 ? reason(against: change) ?? .afterHeld : .afterHeld)
    }
    let beside = known.filter { change in change.content != nil && !branch.contains { $0.hash == change.hash } }
    let behind = branch.dropFirst(received.count).filter { $0.content != nil }
    return above + beside.map { Held(sequence: $0.sequence, hash: $0.hash, reason: .otherBranch) }
      + behind.map { Held(sequence: $0.sequence, hash: $0.hash, reason: .gap) }
  }
}
