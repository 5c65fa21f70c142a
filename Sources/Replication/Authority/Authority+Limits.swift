/// Why a received change does not count. Raw values are the words of the conformance vectors.
package enum HoldReason: String, Hashable, Sendable {
  /// No counting statement declares the replica.
  case undeclared
  /// Nothing ever allowed its author to write here.
  case noGrant = "no-grant"
  /// Above what closed the grants of its author.
  case aboveLimit = "above-limit"
  /// Above what an end of its author's membership or replica lists.
  case aboveEnd = "above-end"
  case unknownKind = "unknown-kind"
  case documentRule = "document-rule"
  /// An earlier change of the same chain is held.
  case afterHeld = "after-held"
  /// Off the branch chosen at a fork.
  case otherBranch = "other-branch"
  /// On the chosen branch, behind changes that are not here.
  case gap
}

/// What statements alone say of one chain (rules C13–C18, C27).
package struct ChainLimits: Hashable, Sendable {
  /// What is announced and sent ends here; changes above are held for ``reason``.
  package let bound: ChainPosition
  package let reason: HoldReason
  /// Changes above are held for ``lack``. Below the bound only while more may be allowed than this build can read.
  package let known: UInt64
  package let lack: HoldReason
  /// Changes up to here need not fit a document rule.
  package let free: UInt64
  /// What author-bound rules allow above that.
  package let ownDocuments: [OwnDocumentLimit]
  /// The position that chooses a branch, where its headers are known (rule C6).
  package let branch: ChainPosition

  package init(
    bound: ChainPosition, reason: HoldReason, known: UInt64? = nil, lack: HoldReason? = nil, free: UInt64,
    ownDocuments: [OwnDocumentLimit] = [], branch: ChainPosition? = nil
  ) {
    (self.bound, self.reason, self.free, self.ownDocuments) = (bound, reason, free, ownDocuments)
    (self.known, self.lack, self.branch) = (known ?? bound.sequence, lack ?? reason, branch ?? bound)
  }

  /// Of a chain that nothing narrows and whose author may write whatever he likes: nearly all are.
  static let open = ChainLimits(bound: .unbounded, reason: .aboveEnd, lack: .aboveLimit, free: .max)

  /// Whatever the chain's author writes from now on counts.
  var allowAll: Bool { min(bound.sequence, known, free) == .max }

  /// The same for what lies above a trunk; what is in it counts on, for as long as nobody can look at its changes one by one.
  func keeping(_ trunk: ChainTrunk) -> ChainLimits {
    let end = ChainPosition(sequence: trunk.sequence, tip: trunk.hash.tip)
    return ChainLimits(
      bound: bound.sequence < trunk.sequence ? end : bound, reason: reason, known: max(known, trunk.sequence),
      lack: lack, free: max(free, trunk.sequence), ownDocuments: ownDocuments, branch: branch)
  }

  func fitsDocumentRule(_ document: OwnDocument?, at sequence: UInt64) -> Bool {
    sequence <= free || ownDocuments.contains { sequence <= $0.limit && $0.allows(document) }
  }
}

/// A rule that lets a user write one document, his own, up to a sequence.
package struct OwnDocumentLimit: Hashable, Sendable {
  package let user: Text
  /// Allowed beside ``DocumentRule/fields``.
  package let moreFields: Set<Text>
  package let limit: UInt64

  package init(user: Text, moreFields: Set<Text> = [], limit: UInt64 = .max) {
    (self.user, self.moreFields, self.limit) = (user, moreFields, limit)
  }

  func allows(_ document: OwnDocument?) -> Bool {
    guard let document, document.user == user else { return false }
    return document.otherFields.allSatisfy(moreFields.contains)
  }
}

extension Authority {
  /// Something that ever allowed a member to write in a partition, with how much of one chain it allows.
  struct WriteSource {
    let limit: ChainPosition
    /// Nil: any document. Else the author's own alone, with these fields beside the usual ones.
    let ownFields: Set<Text>?
  }

  package func bound(of replica: ReplicaID, in partition: PartitionName) -> ChainPosition {
    limits(of: replica, in: partition).bound
  }

  /// How much of a chain a context may require: the lowest number that any narrowing ever gave for it; `UInt64.max` if
  /// none did (rule C8). A sender keeps to this.
  package func floor(of replica: ReplicaID, in partition: PartitionName) -> UInt64 {
    floors.floor(of: replica, in: partition, room: rooms[partition.text])
  }

  /// What a receiver asks of a context: nothing while in doubt.
  package func required(of replica: ReplicaID, in partition: PartitionName) -> UInt64 {
    isInDoubt ? 0 : floor(of: replica, in: partition)
  }

  package func limits(of replica: ReplicaID, in partition: PartitionName) -> ChainLimits {
    let baseline = rights.baseline(of: replica, in: partition.text)
    guard let owner = members.byReplica[replica] else {
      return ChainLimits(bound: baseline, reason: .undeclared, free: baseline.sequence)
    }
    return limits(of: replica, owner, in: partition, baseline)
  }

  /// Whatever is written under this replica from now on counts: its membership stands, and may write any document.
  package func mayWriteOn(as replica: ReplicaID, in partition: PartitionName) -> Bool {
    guard case .member(let member) = members.byReplica[replica], !rights.isEnded(.membership(member.id)) else {
      return false
    }
    return limits(of: replica, in: partition).allowAll
  }

  /// The latest standing membership of a device under which whatever a new replica of it writes in a partition counts; nil where
  /// there is none.
  package func membershipToWrite(as device: PublicKey, in partition: PartitionName) -> Member? {
    standingMemberships(of: device).last {
      limits(of: .zero, .member($0), in: partition, rights.baseline(of: .zero, in: partition.text)).allowAll
    }
  }

  /// The fleet takes as many statements of a device as it ever will (rule C10): none that it makes now counts.
  package func isFull(_ device: PublicKey) -> Bool { fullDevices.contains(device) }

  private func limits(
    of replica: ReplicaID, _ owner: MemberTable.Owner, in partition: PartitionName, _ baseline: ChainPosition
  ) -> ChainLimits {
    let narrowings = rights.narrowings(of: .membership(owner.membership)) + rights.narrowings(of: .replica(replica))
    let end = ChainPosition.lowest(of: narrowings.map { $0.bound(of: replica, in: partition.text) })
    let sources = sources(for: owner, replica: replica, in: partition)
    let known = ChainPosition.highest(of: sources.map(\.limit))
    let free = ChainPosition.highest(of: sources.lazy.filter { $0.ownFields == nil }.map(\.limit))
    let lack: HoldReason = sources.isEmpty ? .noGrant : .aboveLimit
    let user: Text = if case .member(let member) = owner { member.user } else { "" }
    func above(_ position: ChainPosition) -> ChainPosition {
      baseline.sequence >= position.sequence ? baseline : position
    }
    let branch = above(.lowest(of: [end, known]))
    return ChainLimits(
      bound: isInDoubt ? above(end) : branch,
      reason: !sources.isEmpty && end.sequence <= known.sequence ? .aboveEnd : lack,
      known: max(known.sequence, baseline.sequence), lack: lack, free: max(free.sequence, baseline.sequence),
      ownDocuments: sources.compactMap { source in
        source.ownFields.map { OwnDocumentLimit(user: user, moreFields: $0, limit: source.limit.sequence) }
      }, branch: branch)
  }

  func sources(for owner: MemberTable.Owner, replica: ReplicaID, in partition: PartitionName) -> [WriteSource] {
    guard case .member(let member) = owner else { return [] }
    var sources: [WriteSource] = []
    for entry in rights.grants.entries(reaching: member.membership) where entry.grant.content.level >= .write {
      guard entry.pattern.matches(partition) else { continue }
      let closers = rights.closers(of: entry, below: .write)
      sources.append(
        WriteSource(limit: RightsTable.limit(closers, of: replica, in: partition.text), ownFields: nil))
    }
    return sources + ruleSources(for: member, replica: replica, in: partition)
  }

  private func ruleSources(
    for member: Member, replica: ReplicaID, in partition: PartitionName
  ) -> [WriteSource] {
    guard let (key, value) = partition.keyValue, let rules = rights.rules[key] else { return [] }
    if key == Statement.Rule.Key.conversation {
      let limits = rooms[partition.text]?.limits(for: member.user, of: replica) ?? []
      return limits.map { WriteSource(limit: $0, ownFields: nil) }
    }
    return rules.compactMap { rule in
      guard let ownFields = member.fields(writtenBy: rule.content, value: value) else { return nil }
      let limit = RightsTable.limit(rights.narrowings(of: .grant(rule.id)), of: replica, in: partition.text)
      return WriteSource(limit: limit, ownFields: ownFields.any)
    }
  }
}

extension Member {
  /// Which fields a rule lets the member write; nil inside: all of any document.
  fileprivate struct RuledFields { let any: Set<Text>? }

  /// Nil: the rule does not let the member write.
  fileprivate func fields(writtenBy rule: Statement.Rule, value: Text) -> RuledFields? {
    switch rule.key {
    case Statement.Rule.Key.agency: membership.attribute(rule.key) == value ? RuledFields(any: nil) : nil
    case Statement.Rule.Key.user: user == value ? RuledFields(any: nil) : nil
    case Statement.Rule.Key.allUsers: user.utf8.isEmpty ? nil : RuledFields(any: rule.fields)
    default: nil
    }
  }
}
