extension Statement {
  /// The first that the fleet root signs.
  package struct Genesis: Hashable, Sendable {
    package let fleetName: Text
    package init(fleetName: Text) { self.fleetName = fleetName }
  }

  /// Binds a device to the user it acts for. Signed by the root or an admin.
  package struct Membership: Hashable, Sendable {
    package let device: PublicKey
    package let user: Text
    package let label: Text
    /// "admin" counts only where the root signed.
    package let role: Text
    /// Free attributes that rules read, such as `agency`: strings in byte order of their names.
    package let profile: ValueMap
    package init(device: PublicKey, user: Text, label: Text, role: Text, profile: ValueMap) {
      (self.device, self.user, self.label, self.role, self.profile) = (device, user, label, role, profile)
    }
  }

  /// A device declares one incarnation of its store, under one membership for ever (rule C2). Signed by the device.
  package struct ReplicaDeclaration: Hashable, Sendable {
    package let replica: ReplicaID
    package let nonce: UUIDValue
    /// Id of the membership statement.
    package let membership: Digest
    package init(replica: ReplicaID, nonce: UUIDValue, membership: Digest) {
      (self.replica, self.nonce, self.membership) = (replica, nonce, membership)
    }
  }

  package struct Grant: Hashable, Sendable {
    package let subject: Subject
    package let level: AccessLevel
    /// A partition name, or a prefix followed by `*`.
    package let pattern: Text
    /// What a lowering lets stand under the grants that it closes (rule C17).
    package let listing: Listing
    package init(subject: Subject, level: AccessLevel, pattern: Text, listing: Listing = Listing()) {
      (self.subject, self.level, self.pattern, self.listing) = (subject, level, pattern, listing)
    }
  }

  package enum Subject: Hashable, Sendable {
    case device(PublicKey)
    case user(Text)
    case role(Text)
    case everyone
  }

  /// Rights by the key of a partition's name, such as `agency` in `agency=Gabon` (rules C18, C19).
  package struct Rule: Hashable, Sendable {
    package let key: Text
    /// Of `all-users`: fields that a user may write in his own document beside ``DocumentRule/fields``.
    package let fields: Set<Text>
    package init(key: Text, fields: Set<Text> = []) { (self.key, self.fields) = (key, fields) }
  }

  /// Bounds what counts of a device, a replica, or under a grant or rule (rules C11–C13).
  package struct End: Hashable, Sendable {
    package let reason: Reason
    package let target: Target
    package let listing: Listing
    package init(reason: Reason, target: Target, listing: Listing) {
      (self.reason, self.target, self.listing) = (reason, target, listing)
    }

    package enum Reason: UInt8, Hashable, Sendable, CaseIterable {
      /// By the device itself: it will not go on with a replica.
      case close = 0
      /// What was not listed stays.
      case retire = 1
      /// What was not listed falls.
      case compromised = 2
    }

    package enum Target: Hashable, Sendable {
      case membership(Digest)
      case replica(ReplicaID)
      /// A grant or a rule.
      case grant(Digest)
    }
  }

  /// Lets stand more than a narrowing listed (rule C14).
  package struct Raise: Hashable, Sendable {
    /// The end, or lowering grant, that is raised.
    package let end: Digest
    package let listing: Listing
    package init(end: Digest, listing: Listing) { (self.end, self.listing) = (end, listing) }
  }

  /// What counts of a partition whatever narrows its authors (rule C13).
  package struct Baseline: Hashable, Sendable {
    package let partition: Text
    package let entries: [Entry]
    package init(partition: Text, entries: [Entry]) { (self.partition, self.entries) = (partition, entries) }

    package struct Entry: Hashable, Sendable {
      package let replica: ReplicaID
      package let position: ChainPosition
      /// The highest sequence that the replica itself has told of, for the receiver's information.
      package let ownLast: UInt64
      package init(replica: ReplicaID, position: ChainPosition, ownLast: UInt64) {
        (self.replica, self.position, self.ownLast) = (replica, position, ownLast)
      }
    }
  }

  /// A kind or a shape that this build cannot read. What is read in every shape: the device, role and user of a
  /// membership, and the tips of a statement that may carry some (rule C27).
  package struct Unknown: Hashable, Sendable {
    package let kind: UInt16
    package let member: Member?
    package let tips: [ScopeTips]
    package init(kind: UInt16, member: Member? = nil, tips: [ScopeTips] = []) {
      (self.kind, self.member, self.tips) = (kind, member, tips)
    }

    package struct Member: Hashable, Sendable {
      package let device: PublicKey
      package let role: Text
      package let user: Text
      package init(device: PublicKey, role: Text, user: Text) {
        (self.device, self.role, self.user) = (device, role, user)
      }
    }
  }
}

// Statements of one room; `by` is the membership that the issuer speaks for, `seen` the room statements it knows (C24, C25).
extension Statement {
  package struct Room: Hashable, Sendable {
    package let by: Digest
    package init(by: Digest) { self.by = by }
  }

  package struct Invitation: Hashable, Sendable {
    package let by: Digest
    package let user: Text
    package let seen: [Digest]
    package init(by: Digest, user: Text, seen: [Digest]) { (self.by, self.user, self.seen) = (by, user, seen) }
  }

  package struct Removal: Hashable, Sendable {
    package let by: Digest
    package let user: Text
    package let seen: [Digest]
    package let listing: Listing
    package init(by: Digest, user: Text, seen: [Digest], listing: Listing) {
      (self.by, self.user, self.seen, self.listing) = (by, user, seen, listing)
    }
  }

  package struct Leave: Hashable, Sendable {
    package let by: Digest
    package let user: Text
    package let seen: [Digest]
    package init(by: Digest, user: Text, seen: [Digest]) { (self.by, self.user, self.seen) = (by, user, seen) }
  }
}

/// None < carry < read < write < manage; each holds the lower ones.
package enum AccessLevel: UInt8, Hashable, Comparable, Sendable, CaseIterable {
  case none = 0
  case carry = 1
  case read = 2
  case write = 3
  case manage = 4

  package static func < (a: AccessLevel, b: AccessLevel) -> Bool { a.rawValue < b.rawValue }
}
