import Replication

/// Numbers of a grant's subjects on the wire.
enum SubjectNumber {
  static let device: UInt64 = 0
  static let user: UInt64 = 1
  static let role: UInt64 = 2
  static let everyone: UInt64 = 3
}

/// Numbers of what an end may end on the wire.
enum TargetNumber {
  static let membership: UInt64 = 0
  static let replica: UInt64 = 1
  static let grant: UInt64 = 2
}

extension CBORWriter {
  /// The items of a body, and behind them its notes where there are any.
  mutating func body(_ body: Statement.Body, _ notes: StatementNotes) throws(StatementError) {
    let extra = notes.entries.isEmpty ? 0 : 1
    switch body {
    case .genesis(let genesis):
      arrayHeader(1 + extra)
      text(genesis.fleetName)
    case .membership(let membership): self.membership(membership, extra)
    case .replica(let declaration):
      arrayHeader(3 + extra)
      replica(declaration.replica)
      uuid(declaration.nonce)
      digest(declaration.membership)
    case .grant(let grant): self.grant(grant, extra)
    case .rule(let rule):
      arrayHeader(2 + extra)
      text(rule.key)
      names(rule.fields.sorted())
    case .end(let end): self.end(end, extra)
    case .raise(let raise):
      arrayHeader(4 + extra)
      tips(raise.listing.tips)
      digest(raise.end)
      ends(raise.listing.ends)
      bool(raise.listing.more)
    case .baseline(let baseline): self.baseline(baseline, extra)
    case .invitation(let invitation): seenBy(invitation.by, invitation.user, invitation.seen, extra)
    case .room(let room):
      arrayHeader(1 + extra)
      digest(room.by)
    case .removal(let removal): self.removal(removal, extra)
    case .leave(let leave): seenBy(leave.by, leave.user, leave.seen, extra)
    case .unknown(let unknown): throw .unknownKind(unknown.kind)
    }
    self.notes(notes)
  }

  private mutating func membership(_ membership: Statement.Membership, _ extra: Int) {
    arrayHeader(5 + extra)
    publicKey(membership.device)
    text(membership.role)
    text(membership.user)
    text(membership.label)
    value(.map(membership.profile))
  }

  private mutating func grant(_ grant: Statement.Grant, _ extra: Int) {
    arrayHeader(7 + extra)
    tips(grant.listing.tips)
    subject(grant.subject)
    unsigned(grant.level.rawValue)
    text(grant.pattern)
    listing(grant.listing)
  }

  private mutating func end(_ end: Statement.End, _ extra: Int) {
    arrayHeader(6 + extra)
    tips(end.listing.tips)
    unsigned(end.reason.rawValue)
    target(end.target)
    listing(end.listing)
  }

  private mutating func baseline(_ baseline: Statement.Baseline, _ extra: Int) {
    arrayHeader(2 + extra)
    text(baseline.partition)
    arrayHeader(baseline.entries.count)
    for entry in baseline.entries {
      arrayHeader(4)
      replica(entry.replica)
      unsigned(entry.position.sequence)
      tip(entry.position.tip)
      unsigned(entry.ownLast)
    }
  }

  private mutating func removal(_ removal: Statement.Removal, _ extra: Int) {
    arrayHeader(6 + extra)
    tips(removal.listing.tips)
    digest(removal.by)
    text(removal.user)
    digests(removal.seen)
    ends(removal.listing.ends)
    bool(removal.listing.more)
  }

  private mutating func seenBy(_ by: Digest, _ user: Text, _ seen: [Digest], _ extra: Int) {
    arrayHeader(3 + extra)
    digest(by)
    text(user)
    digests(seen)
  }

  private mutating func notes(_ notes: StatementNotes) {
    guard !notes.entries.isEmpty else { return }
    mapHeader(notes.entries.count)
    for entry in notes.entries {
      unsigned(entry.key)
      byteString(entry.content)
    }
  }
}

extension CBORWriter {
  private mutating func subject(_ subject: Statement.Subject) {
    if case .everyone = subject {
      arrayHeader(1)
      return unsigned(SubjectNumber.everyone)
    }
    arrayHeader(2)
    switch subject {
    case .device(let key):
      unsigned(SubjectNumber.device)
      publicKey(key)
    case .user(let user):
      unsigned(SubjectNumber.user)
      text(user)
    case .role(let role):
      unsigned(SubjectNumber.role)
      text(role)
    case .everyone: break
    }
  }

  private mutating func target(_ target: Statement.End.Target) {
    arrayHeader(2)
    switch target {
    case .membership(let id):
      unsigned(TargetNumber.membership)
      digest(id)
    case .replica(let id):
      unsigned(TargetNumber.replica)
      replica(id)
    case .grant(let id):
      unsigned(TargetNumber.grant)
      digest(id)
    }
  }

  /// What stands behind the tips, the subject or the target.
  private mutating func listing(_ listing: Statement.Listing) {
    ends(listing.ends)
    names(listing.keep)
    bool(listing.more)
  }

  private mutating func ends(_ ends: [Statement.PartitionEnds]) {
    arrayHeader(ends.count)
    for group in ends {
      arrayHeader(2)
      text(group.partition)
      arrayHeader(group.chains.count)
      for end in group.chains {
        arrayHeader(3)
        replica(end.replica)
        unsigned(end.position.sequence)
        tip(end.position.tip)
      }
    }
  }

  private mutating func tips(_ scopes: [Statement.ScopeTips]) {
    arrayHeader(scopes.count)
    for group in scopes {
      arrayHeader(2)
      text(group.scope)
      arrayHeader(group.tips.count)
      for tip in group.tips {
        arrayHeader(3)
        publicKey(tip.issuer)
        unsigned(tip.sequence)
        digest(tip.id)
      }
    }
  }

  private mutating func names(_ names: [Text]) {
    arrayHeader(names.count)
    for name in names { text(name) }
  }

  private mutating func digests(_ ids: [Digest]) {
    arrayHeader(ids.count)
    for id in ids { digest(id) }
  }
}
