/// A signed fact about the fleet. What follows from statements is a function of their set alone (rule C10).
package struct Statement: Hashable, Sendable {
  package let fleet: FleetID
  package let issuer: PublicKey
  /// Counts the issuer's statements in this scope, from 1.
  package let sequence: UInt64
  /// Empty for the fleet; a room's partition name for room statements (reserved).
  package let scope: Text
  package let body: Body
  package let signature: Signature
  /// Hash of the signed bytes.
  package let id: Digest
  /// The statement as it was signed: kept, hashed and sent on as these bytes.
  package let encoded: [UInt8]

  package static let byteLimit = 16 * 1024
  package static let countLimit = 10_000

  package init(
    fleet: FleetID, issuer: PublicKey, sequence: UInt64, scope: Text = "", body: Body, signature: Signature,
    id: Digest, encoded: [UInt8]
  ) {
    (self.fleet, self.issuer, self.sequence, self.scope) = (fleet, issuer, sequence, scope)
    (self.body, self.signature, self.id, self.encoded) = (body, signature, id, encoded)
  }

  package enum Body: Hashable, Sendable {
    case genesis(Genesis)
    case membership(Membership)
    case replica(ReplicaDeclaration)
    case grant(Grant)
    case rule(Rule)
    /// A kind of a later version (end, raise, baseline, invitation … are reserved): kept and passed on, without effect.
    case unknown(kind: UInt16)
  }

  /// Numbers of kinds on the wire. Reserved ones have no meaning yet.
  package enum Kind: UInt16, Sendable, CaseIterable {
    case genesis = 1
    case membership = 2
    case replica = 3
    case grant = 4
    case rule = 5
    case end = 6
    case raise = 7
    case baseline = 8
    case invitation = 9
    case room = 10
    case removal = 11
    case leave = 12
    case holdings = 13
  }
}

extension Statement {
  /// Signed by the fleet root: names the admission key, whose holder may sign memberships.
  package struct Genesis: Hashable, Sendable {
    package let fleetName: Text
    package let admissionKey: PublicKey
    package init(fleetName: Text, admissionKey: PublicKey) {
      (self.fleetName, self.admissionKey) = (fleetName, admissionKey)
    }
  }

  /// Binds a device to the user it acts for. Signed by the root, an admin, or the admission key.
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
    /// What a lowering lets stand of the chains written under the grants it closes (rule C17); unlisted chains: nothing.
    package let ends: [ChainEnd]
    package init(subject: Subject, level: AccessLevel, pattern: Text, ends: [ChainEnd] = []) {
      (self.subject, self.level, self.pattern, self.ends) = (subject, level, pattern, ends)
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
    package init(key: Text) { self.key = key }
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
