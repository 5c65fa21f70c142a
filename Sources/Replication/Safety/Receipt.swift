/// What one device's word says of certain changes.
package struct Receipt: Sendable, Equatable {
  /// Whether the word counts.
  package enum Standing: String, Sendable, Equatable, CaseIterable {
    case member
    /// No membership of the device stands any more.
    case ended
    /// Two histories of the device are known here: a copy of it may have said this, and hold something else.
    case forked
    /// It speaks of the backend, and none of its memberships that stand has a role that may.
    case unentitled
    /// It may not carry the partition any more: it gives nobody what it holds of it, nor can it take its word back.
    case barred
  }

  package let kept: KeptHoldings
  package let standing: Standing
  /// Changes of those asked for that the word does not cover; 0: it covers all.
  package let lacking: UInt64

  package var holdings: Holdings { kept.holdings }
  package var covers: Bool { lacking == 0 }
  package var counts: Bool { covers && standing == .member }

  /// Milliseconds since the word was given, at least: whoever brought it. The number is the author's clock where that was
  /// not behind its earlier words; where it says more than now, what is known is when it came.
  package func age(at wall: Int64) -> Int64 {
    let sinceHeard = max(0, wall - kept.heard)
    let said = Int64(clamping: holdings.number)
    return said <= wall ? max(sinceHeard, wall - said) : sinceHeard
  }
}

/// Who may say for all what is in the backend (decision 41).
package enum BackendWitness {
  /// Roles of memberships, which are an admin's word. `admin` counts where the root gave it.
  package static let roles: Set<Text> = ["admin", "office", "relay"]
}

extension Ledger {
  /// What all who said anything of the partition say of these changes: of each replica up to a number. `stored`: the tip of a
  /// change that memory has not, as the log on disk has it. `forked`: ``forkedDevices``, for who asks of many partitions.
  package func receipts(
    of partition: PartitionID, for asked: [ReplicaID: UInt64], in book: HoldingsBook, forked: Set<PublicKey>? = nil,
    stored: PartitionLog.StoredTip
  ) -> [Receipt] {
    guard let log = partitions[partition]?.log else { return [] }
    let forked = forked ?? forkedDevices
    return book.records(of: partition).map { kept in
      let standing = standing(of: kept.holdings.subject, kept.holdings.partition, forked)
      let lacking = asked.reduce(UInt64(0)) { sum, entry in
        sum + (entry.value - min(entry.value, log.held(entry.key, by: kept.holdings.vector, stored)))
      }
      return Receipt(kept: kept, standing: standing, lacking: lacking)
    }
  }

  private func standing(
    of subject: Holdings.Subject, _ name: PartitionName, _ forked: Set<PublicKey>
  ) -> Receipt.Standing {
    let memberships = authority.standingMemberships(of: subject.device)
    guard !memberships.isEmpty else { return .ended }
    if forked.contains(subject.device) { return .forked }
    switch subject.kind {
    case .backend:
      return memberships.contains { BackendWitness.roles.contains($0.membership.role) } ? .member : .unentitled
    case .received, .accepted:
      return authority.level(of: subject.device, in: name) >= .carry ? .member : .barred
    }
  }

  /// Devices of which two histories of one replica are known here, or may be: what did not read at a start may have shown it.
  /// Takes a look at every partition.
  package var forkedDevices: Set<PublicKey> {
    var replicas: Set<ReplicaID> = []
    for partition in partitions.keys {
      // In place: a copy of each would cost far more than the look.
      partitions.look(at: partition) { state in
        replicas.formUnion(state.log.forkPoints.keys)
        replicas.formUnion(state.log.incompleteChains)
      }
    }
    return Set(replicas.compactMap(authority.author))
  }
}

extension PartitionLog {
  /// How much of the branch chosen here somebody has who names this vector.
  fileprivate func held(_ replica: ReplicaID, by vector: VersionVector, _ stored: StoredTip) -> UInt64 {
    guard let position = vector[replica] else { return 0 }
    return min(position.sequence, standing(of: position, of: replica, stored: stored))
  }
}
