import Engine
import Replication
import Wire

/// What an author makes of what it had seen and written before.
struct AuthorCheck: Check {
  let known: Knowledge

  /// C3: the entries of a chain's contexts rise, but where the chain that they name has changed its branch.
  func checkContext(of run: KnownRun, _ node: SimulatedNode) {
    guard known.isHonest(run.replica), run.first > 1, let before = previous(of: run, node) else { return }
    for (other, position) in before.context.entries where other != run.replica && !mayFork(other) {
      guard run.context.sequence(of: other) < position.sequence else { continue }
      world.violate(
        "C3", "run \(run.replica) \(run.first) forgets change \(position.sequence) of \(other), which it had seen")
    }
  }

  /// M4: an honest node takes no run that names list elements which its author had not seen.
  func checkElements(of run: KnownRun, _ node: SimulatedNode) {
    for (index, change) in run.observed.changes.enumerated() {
      let own = run.first + UInt64(index)
      for element in AuthorCheck.elements(of: change.writes).map(\.dot) {
        let seen = element.replica == run.replica ? own : run.context.sequence(of: element.replica)
        guard element.sequence > seen else { continue }
        world.violate("M4", "node \(node.slot) stores run \(run.replica) \(own), which names what it had not seen")
      }
    }
  }

  private static func elements(of writes: [DocumentWrite]) -> [ListElement] {
    writes.flatMap(\.operations).flatMap(\.path).compactMap { segment in
      if case .element(let element) = segment { element } else { nil }
    }
  }

  private func previous(of run: KnownRun, _ node: SimulatedNode) -> KnownRun? {
    node.directory.book.partitions[run.partition]?.runs[run.replica]?.last {
      $0.hash(at: run.first - 1) == run.observed.hashBefore
    }
  }

  // MARK: Writes that are issued again

  /// C22: what a commit issues again of one branch stands in the order in which it was written, so that the later write
  /// has seen the earlier one.
  func checkReissues(among written: [KnownRun], by node: SimulatedNode) {
    let again = written.flatMap { run in
      run.observed.changes.compactMap { change in change.origin.map { (run, change, $0) } }
    }
    guard node.isJudged, !again.isEmpty else { return }
    for (index, (run, change, origin)) in again.enumerated() {
      for (_, _, earlier) in again[..<index] where earlier.dot.replica == origin.dot.replica {
        guard earlier.dot.sequence > origin.dot.sequence, isBelow(origin, earlier, run.partition, node) else {
          continue
        }
        world.violate("C22", "node \(node.slot) issues \(origin.dot) again behind \(earlier.dot), which had seen it")
      }
      checkNames(in: change, of: run, issuing: origin, by: node)
    }
  }

  /// Is the one change on the branch that leads to the other?
  private func isBelow(
    _ one: ChangeOrigin, _ other: ChangeOrigin, _ partition: PartitionID, _ node: SimulatedNode
  ) -> Bool {
    ancestor(of: other, at: one.dot.sequence, partition, node) == one.hash
  }

  private func ancestor(
    of change: ChangeOrigin, at sequence: UInt64, _ partition: PartitionID, _ node: SimulatedNode
  ) -> Digest? {
    let runs = node.directory.book.partitions[partition]?.runs[change.dot.replica] ?? []
    var (current, hash) = (change.dot.sequence, change.hash)
    while current > sequence {
      guard let run = runs.last(where: { $0.hash(at: current) == hash }) else { return nil }
      let first = max(run.first, sequence + 1)
      hash = first > run.first ? run.hash(at: first - 1) ?? hash : run.observed.hashBefore
      current = first - 1
    }
    return hash
  }

  /// M4, C22: list elements that the lost branch inserted go by the dots of their re-issues.
  ///
  /// What it shares with the branch that counts is not lost and not issued again, also where it is held there, above a limit:
  /// a device may have lost the right by which it wrote, and issue again by another. Its elements go by their own dots then,
  /// for whenever it comes to count; there is no other name for them.
  private func checkNames(
    in change: ObservedChange, of run: KnownRun, issuing origin: ChangeOrigin, by node: SimulatedNode
  ) {
    guard let original = self.change(origin, run.partition, node),
      let name = node.directory.book.partitions[run.partition]?.name
    else { return }
    let (before, after) = (AuthorCheck.elements(of: original.writes), AuthorCheck.elements(of: change.writes))
    guard before.count == after.count else {
      return world.violate("C22", "node \(node.slot) issues \(origin.dot) again as another write")
    }
    let acceptance = verdict(node, run.partition, name).acceptance
    for element in before where element.dot.replica == origin.dot.replica {
      let old = element.dot
      // Where two stand at one position their order is that of their dots, and may be another under other dots.
      let renamed = after.filter { $0.position == element.position }.map(\.dot)
      guard let meant = ancestor(of: origin, at: old.sequence, run.partition, node) else { continue }
      let first = self.change(ChangeOrigin(dot: old, hash: meant), run.partition, node)?.origin
      let origins = [ChangeOrigin(dot: old, hash: meant), first].compactMap { $0 }
      let isRight = renamed.contains { new in
        new == old && acceptance.isOnPath(meant, at: old)
          || changes(at: new, run.partition, node).contains { change in
            change.origin.map(origins.contains) ?? false
              || origins.contains(ChangeOrigin(dot: new, hash: change.hash))
                && acceptance.sight.hasAccepted(change.hash, at: new)
          }
      }
      guard !isRight else { continue }
      let names = renamed.map { "\($0)" }.joined(separator: " or ")
      world.violate(
        "C22", "node \(node.slot) issues \(origin.dot) again and names \(names) for what \(old) had inserted")
    }
  }

  private func change(
    _ origin: ChangeOrigin, _ partition: PartitionID, _ node: SimulatedNode
  ) -> ObservedChange? {
    changes(at: origin.dot, partition, node).first { $0.hash == origin.hash }
  }

  /// On whatever branches.
  private func changes(at dot: Dot, _ partition: PartitionID, _ node: SimulatedNode) -> [ObservedChange] {
    node.directory.book.partitions[partition]?.runs[dot.replica]?.compactMap { $0.change(at: dot.sequence) } ?? []
  }
}
