import Replication

/// A second judgement of what counts in one partition, written from the rules C4–C6, C13, C22 and C27 and from nothing else: a
/// function of the set of statements and of the set of runs, computed anew at each question.
package struct NaiveAcceptance: Sendable {
  package struct Held: Sendable, Hashable {
    package let dot: Dot
    package let hash: Digest
    package let reason: NaiveReason
  }

  package struct Named: Sendable, Hashable {
    package let dot: Dot
    package let hash: Digest
    package init(dot: Dot, hash: Digest) { (self.dot, self.hash) = (dot, hash) }
  }

  /// Contiguous content on each chosen branch, what of it counts, and what of it lies at or below the bound.
  package let received, accepted, clipped: [ReplicaID: NaivePosition]
  /// In order of dot and hash.
  package let held: [Held]
  package let forkPoints: [ReplicaID: UInt64]
  /// C5: what proves each fork.
  package let forks: Set<ForkProof>
  /// C6: hashes of each chosen branch from the first change on, as far as headers are known, whatever of them counts.
  private let paths: [ReplicaID: [Digest]]
  /// C22: the accepted changes that have effect.
  package let effective: Set<Named>
  /// C23.
  package let sight: NaiveSight
  /// C22, M17.
  package let groups: [NaiveGroup]
  /// The effective changes as merging takes them.
  package let changes: [NaiveChange]

  /// Is the run held from its beginning on for what bounds its chain?
  func isAboveLimit(_ run: ObservedRun) -> Bool {
    held.contains { [first = run.changes.first?.hash] held in
      held.hash == first && (held.reason == .aboveEnd || held.reason == .aboveLimit)
    }
  }

  /// C6: is it on the branch that is chosen here, whether it counts or is held there?
  func isOnPath(_ hash: Digest, at dot: Dot) -> Bool {
    let path = paths[dot.replica] ?? []
    return dot.sequence > 0 && dot.sequence <= UInt64(path.count) && path[Int(dot.sequence) - 1] == hash
  }

  /// - Parameter genesis: the hash before the first change of a replica in this partition.
  package init(
    _ partition: Text, rights: NaiveRights, runs: [ObservedRun], genesis: (ReplicaID) -> Digest
  ) {
    let all = Set(runs.map(\.replica)).sorted { ($0.high, $0.low) < ($1.high, $1.low) }
    let lines = all.map { replica in
      NaiveLine(
        replica, runs: runs, genesis: genesis(replica), limits: rights.limits(of: replica, in: partition))
    }
    func each<Result>(_ result: (NaiveLine) -> Result?) -> [ReplicaID: Result] {
      lines.reduce(into: [:]) { $0[$1.replica] = result($1) }
    }
    func end(_ changes: [NaiveLine.Known]) -> NaivePosition? {
      changes.last.map { NaivePosition(sequence: $0.sequence, tip: $0.hash.tip) }
    }
    received = each { end($0.received) }
    accepted = each { end($0.accepted) }
    clipped = each { end($0.clipped) }
    held = lines.flatMap { line in
      line.held.map { Held(dot: Dot(replica: line.replica, sequence: $0.sequence), hash: $0.hash, reason: $0.reason) }
        .sorted { ($0.dot.sequence, $0.hash) < ($1.dot.sequence, $1.hash) }
    }
    forkPoints = each(\.forkPoint)
    forks = Set(lines.flatMap(\.forks))
    paths = each { $0.branch.map(\.hash) }

    let counting = NaiveEffects.counting(in: lines)
    effective = NaiveEffects.effective(counting, rights)
    groups = NaiveEffects.groups(counting, in: lines, rights)
    sight = NaiveSight(forkPoints: forkPoints, accepted: each { $0.accepted.map(\.hash) })
    changes = counting.filter { [effective] in effective.contains($0.name) }.map { item in
      NaiveChange(
        dot: item.name.dot, timestamp: item.content.timestamp, context: item.context, writes: item.content.writes)
    }
  }
}

/// C22: of an original and its accepted re-issues by the same device exactly one has effect.
enum NaiveEffects {
  struct Counting {
    let name: NaiveAcceptance.Named
    let content: ObservedChange
    let context: [ReplicaID: NaivePosition]
  }

  static func counting(in lines: [NaiveLine]) -> [Counting] {
    lines.flatMap { line in
      line.accepted.compactMap { change in
        change.content.map { content in
          let dot = Dot(replica: line.replica, sequence: change.sequence)
          return Counting(
            name: NaiveAcceptance.Named(dot: dot, hash: change.hash), content: content, context: change.context)
        }
      }
    }
  }

  static func effective(_ counting: [Counting], _ rights: NaiveRights) -> Set<NaiveAcceptance.Named> {
    let originals = counting.map { original($0, rights) }
    let effective = counting.indices.filter { index in
      guard let original = originals[index] else { return true }
      // The original if it is accepted; what is itself a re-issue is no original.
      let isAccepted = counting.indices.contains { counting[$0].name == original && originals[$0] == nil }
      // Else the lowest hash.
      let isLowest = !counting.indices.contains {
        originals[$0] == original && counting[$0].name.hash < counting[index].name.hash
      }
      return !isAccepted && isLowest
    }
    return Set(effective.map { counting[$0].name })
  }

  /// The write that a change issues again, where a device does so with its own; nil: it stands for itself.
  static func original(_ item: Counting, _ rights: NaiveRights) -> NaiveAcceptance.Named? {
    guard let origin = item.content.origin, let device = rights.author(of: item.name.dot.replica),
      rights.author(of: origin.dot.replica) == device
    else { return nil }
    return NaiveAcceptance.Named(dot: origin.dot, hash: origin.hash)
  }
}
