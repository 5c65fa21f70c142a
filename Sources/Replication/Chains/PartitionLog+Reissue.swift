/// A change of a branch that lost.
package struct LostChange: Sendable {
  package let dot: Dot
  package let hash: Digest
  package let writes: [DocumentWrite]

  package init(dot: Dot, hash: Digest, writes: [DocumentWrite]) {
    (self.dot, self.hash, self.writes) = (dot, hash, writes)
  }
}

extension PartitionLog {
  /// Changes of forked chains that lie off the branch that counts, and of which neither the original nor a re-issue
  /// counts, one of each original: somebody's work, which their device owes the fleet once more (rule C22).
  package func lostChanges(where isOwn: (ReplicaID) -> Bool) -> [HeldChange] {
    guard !forkPoints.isEmpty else { return [] }
    let origins = reissues.origins
    var owed: [ChangeOrigin: HeldChange] = [:]
    for change in lost(where: isOwn) {
      let itself = ChangeOrigin(dot: change.dot, hash: change.hash)
      let origin = origins[change.hash] ?? itself
      guard origin == itself || owed[origin] == nil, !counts(origin) else { continue }
      owed[origin] = change
    }
    return owed.values.sorted { ($0.dot, $0.hash) < ($1.dot, $1.hash) }
  }

  /// With content and off the branch that counts, in order of dot and hash.
  private func lost(where isOwn: (ReplicaID) -> Bool) -> [HeldChange] {
    let changes = forkPoints.keys.lazy.filter(isOwn).flatMap { replica in
      // What nothing here leads to may be of the branch that counts.
      let rooted = self.rooted(replica)
      return (self.chains[replica]?.beside ?? []).lazy.filter {
        $0.hasContent && rooted?.contains($0.hash) != false
      }.map { node in
        HeldChange(dot: Dot(replica: replica, sequence: node.sequence), hash: node.hash, reason: .otherBranch)
      }
    }
    return changes.sorted { ($0.dot, $0.hash) < ($1.dot, $1.hash) }
  }

  private func counts(_ origin: ChangeOrigin) -> Bool {
    isAccepted(origin.hash, at: origin.dot)
      || reissues.groups[origin]?.contains { isAccepted($0.hash, at: $0.dot) } == true
  }

  /// Changes of one lost run as the run that begins at `next` issues them again, in their order, and its context: what
  /// the lost run had seen, the place where its branch parts from the one that counts, and what the own chain saw before
  /// (rules C3, C22).
  ///
  /// List elements that changes of the lost branch inserted stand under the dots of their re-issues now (rule M4). Nil
  /// where one of those is not issued again yet: this run and what follows it in its chain have to wait.
  package func reissue(
    _ changes: [LostChange], of lost: VersionVector, as next: Dot, after previous: VersionVector
  ) -> (context: VersionVector, writes: [[DocumentWrite]])? {
    var context = previous
    context.join(lost)
    guard let first = changes.first else { return nil }
    let (author, old) = (first.dot, first.dot.replica)
    // Not the chain's lowest fork: above that, this branch may go on with the one that counts for a while.
    let forkPoint = chains[old]?.joint(of: first.hash) ?? forkPoints[old] ?? 0
    if let position = position(of: old, at: forkPoint) { context[old] = position }

    var names: [Dot: Dot] = [:]
    for (index, change) in changes.enumerated() {
      names[change.dot] = Dot(replica: next.replica, sequence: next.sequence + UInt64(index))
    }
    let origins = reissues.origins
    var isComplete = true
    let writes = changes.map { change in
      change.writes.map { write in
        write.renamingElements { dot in
          if let name = names[dot] { return name }
          // What the author saw on the branch that counts is named as it was.
          let isLost = dot.replica == old ? dot.sequence > forkPoint : !isCovered(dot, by: lost, of: author)
          guard isLost else { return dot }
          let seen = lost[dot.replica].flatMap { chains[dot.replica]?.tree.find($0) }
          let branch = dot.replica == old ? first.hash : seen
          guard let standIn = branch.flatMap({ effective(for: dot, on: $0, origins) }) else {
            isComplete = isComplete && dot.replica != old
            return dot
          }
          let (replica, sequence) = (standIn.dot.replica, standIn.dot.sequence)
          if replica != next.replica, context.sequence(of: replica) < sequence {
            context[replica] = ChainPosition(sequence: sequence, tip: standIn.hash.tip)
          }
          return standIn.dot
        }
      }
    }
    context[next.replica] = nil
    return isComplete ? (context, writes) : nil
  }

  /// The write that has effect for the change at `dot` of a lost branch, which is told by a later change of it: branches
  /// share dots. Nil where none has.
  private func effective(for dot: Dot, on branch: Digest, _ origins: [Digest: ChangeOrigin]) -> ChangeOrigin? {
    guard let hash = chains[dot.replica]?.tree.ancestor(of: branch, at: dot.sequence) else { return nil }
    let origin = origins[hash] ?? ChangeOrigin(dot: dot, hash: hash)
    if isAccepted(origin.hash, at: origin.dot) { return origin }
    return reissues.groups[origin]?.filter { isAccepted($0.hash, at: $0.dot) }.min { $0.hash < $1.hash }
      .map { ChangeOrigin(dot: $0.dot, hash: $0.hash) }
  }
}

extension DocumentWrite {
  fileprivate func renamingElements(_ name: (Dot) -> Dot) -> DocumentWrite {
    DocumentWrite(
      collection: collection, id: id, kind: kind, generation: generation,
      operations: operations.map { operation in
        Operation(
          operation.kind, operation.path.map { $0.renamed(name) }, value: operation.value,
          position: operation.position)
      })
  }
}
