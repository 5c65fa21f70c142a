/// A signed fact about the fleet or one of its rooms. What follows from statements is a function of their set alone
/// (rule C10).
package struct Statement: Hashable, Sendable {
  package let fleet: FleetID
  package let issuer: PublicKey
  /// One more than that of ``previous``; 1 without one.
  package let sequence: UInt64
  /// Id of what the issuer had signed before it in the same scope: its statements there are a chain, or a tree once a
  /// restored disk or a stolen key went on from an earlier one (rule C10).
  package let previous: Digest?
  /// Empty for the fleet, otherwise a room's partition name. A room's creation names itself: its scope holds its own id
  /// and is therefore no part of what is signed (rule C24).
  package let scope: Text
  package let body: Body
  package let notes: StatementNotes
  package let signature: Signature
  /// Hash of the signed bytes.
  package let id: Digest
  /// The statement as it was signed: kept, hashed and sent on as these bytes.
  package let encoded: [UInt8]

  package static let countLimit = 10_000
  /// Of one with lists, which may name 20,000 chains; a frame holds one.
  package static let byteLimit = 1 << 20

  package init(
    fleet: FleetID, issuer: PublicKey, sequence: UInt64, previous: Digest?, scope: Text = "", body: Body,
    notes: StatementNotes = StatementNotes(), signature: Signature, id: Digest, encoded: [UInt8]
  ) {
    (self.fleet, self.issuer, self.sequence, self.previous) = (fleet, issuer, sequence, previous)
    (self.scope, self.body, self.notes) = (scope, body, notes)
    (self.signature, self.id, self.encoded) = (signature, id, encoded)
  }

  package var isOfFleet: Bool { scope.utf8.isEmpty }

  /// What an issuer's next statement goes on from.
  package struct Link: Hashable, Sendable {
    package let sequence: UInt64
    package let id: Digest
    package init(sequence: UInt64, id: Digest) { (self.sequence, self.id) = (sequence, id) }
  }

  package enum Body: Hashable, Sendable {
    case genesis(Genesis)
    case membership(Membership)
    case replica(ReplicaDeclaration)
    case grant(Grant)
    case rule(Rule)
    case end(End)
    case raise(Raise)
    case baseline(Baseline)
    case invitation(Invitation)
    case room(Room)
    case removal(Removal)
    case leave(Leave)
    /// A kind of a later version, or a known kind in a shape of a later version: without effect (rule C27).
    case unknown(Unknown)
  }

  /// Numbers of kinds on the wire.
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
  }
}

/// What a statement carries beside its meaning, in a map at the end of its body. Evaluation reads none of it.
package struct StatementNotes: Hashable, Sendable {
  /// In ascending order of their keys, which are below ``criticalKey``: a key from there on makes the shape unknown.
  package var entries: [Entry]

  package struct Entry: Hashable, Sendable {
    package let key: UInt64
    package let content: [UInt8]
    package init(key: UInt64, content: [UInt8]) { (self.key, self.content) = (key, content) }
  }

  /// Registered keys.
  package enum Key {
    /// The issuer's wall clock, as eight bytes big-endian: milliseconds since 1970-01-01T00:00:00Z.
    package static let issuedAt: UInt64 = 1
    /// In a membership: the serial number of the invitation that it answers.
    package static let invitationSerial: UInt64 = 2
    /// In a membership: the device's X25519 key, to which keys of sealed partitions will be sealed.
    package static let encryptionKey: UInt64 = 3
    /// In a room: 16 random bytes, by which its id differs from those of other rooms of the same membership.
    package static let roomNonce: UInt64 = 4
    /// In an end of a membership: as what it was asked for, one byte: 0 the device was retired, 1 revoked.
    package static let endManner: UInt64 = 5
  }

  package static let criticalKey: UInt64 = 1 << 15
  package static let countLimit = 64

  package init(_ entries: [Entry] = []) { self.entries = entries }

  package subscript(key: UInt64) -> [UInt8]? { entries.first { $0.key == key }?.content }
}
