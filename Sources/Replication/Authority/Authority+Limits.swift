/// Why a received change does not count. Raw values are the words of the conformance vectors.
package enum HoldReason: String, Hashable, Sendable {
  /// No counting statement declares the replica.
  case undeclared
  /// Nothing ever allowed its author to write here.
  case noGrant = "no-grant"
  /// Above what closed the grants of its author.
  case aboveLimit = "above-limit"
  case unknownKind = "unknown-kind"
  case documentRule = "document-rule"
  /// An earlier change of the same chain is held.
  case afterHeld = "after-held"
  /// Off the branch chosen at a fork.
  case otherBranch = "other-branch"
}

/// What statements alone say of one chain (rules C13, C17, C18).
package struct ChainLimits: Hashable, Sendable {
  /// Changes above are held for ``reason``.
  package let bound: ChainPosition
  package let reason: HoldReason
  /// Changes up to here need not fit the document rule; those above must write ``user``'s own document.
  package let free: UInt64
  package let user: Text?

  func fitsDocumentRule(_ owner: Text?, at sequence: UInt64) -> Bool {
    sequence <= free || owner != nil && owner == user
  }
}

extension Authority {
  /// Something that ever allowed a member to write in a partition, with how much of one chain it allows.
  struct WriteSource {
    let limit: ChainPosition
    /// Only the author's own document, by the `all-users` rule.
    let isAuthorBound: Bool
  }

  package func bound(of replica: ReplicaID, in partition: PartitionName) -> ChainPosition {
    limits(of: replica, in: partition).bound
  }

  /// Lowest number that any narrowing ever gave for the chain; `UInt64.max` if none did (rule C8).
  package func floor(of replica: ReplicaID, in partition: PartitionName) -> UInt64 {
    floors.floor(of: replica, in: partition)
  }

  package func limits(of replica: ReplicaID, in partition: PartitionName) -> ChainLimits {
    guard let member = membership(for: replica) else {
      return ChainLimits(bound: .start, reason: .undeclared, free: 0, user: nil)
    }
    let sources = sources(for: member, replica: replica, in: partition)
    return ChainLimits(
      bound: .highest(of: sources.map(\.limit)),
      reason: sources.isEmpty ? .noGrant : .aboveLimit,
      free: ChainPosition.highest(of: sources.filter { !$0.isAuthorBound }.map(\.limit)).sequence,
      user: member.user)
  }

  func sources(for member: Member, replica: ReplicaID, in partition: PartitionName) -> [WriteSource] {
    let chain = Statement.ChainEnd.Chain.changes(partition: partition.text, replica: replica)
    var sources: [WriteSource] = []
    for subject in member.membership.subjects {
      for entry in grants.entries[subject, default: []] where entry.grant.content.level >= .write {
        guard NamePattern(entry.grant.content.pattern).matches(partition) else { continue }
        sources.append(WriteSource(limit: GrantTable.limit(entry, of: chain, for: .write), isAuthorBound: false))
      }
    }
    if let isAuthorBound = ruleToWrite(for: member, in: partition) {
      sources.append(WriteSource(limit: .unbounded, isAuthorBound: isAuthorBound))
    }
    return sources
  }

  /// Nil: no rule lets the member write here. True: only its user's own document.
  private func ruleToWrite(for member: Member, in partition: PartitionName) -> Bool? {
    guard let (key, value) = partition.keyValue, rules[key] != nil else { return nil }
    switch key {
    case Statement.Rule.Key.agency: return member.membership.attribute(key) == value ? false : nil
    case Statement.Rule.Key.user: return member.user == value ? false : nil
    case Statement.Rule.Key.allUsers: return member.user.utf8.isEmpty ? nil : true
    default: return nil
    }
  }
}
