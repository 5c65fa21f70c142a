/// What a device says, under its signature, that it holds of one partition.
///
/// No statement: of one device, partition and kind the record with the greatest number stands in place of all others.
package struct Holdings: Hashable, Sendable {
  package enum Kind: UInt64, Sendable, CaseIterable {
    /// Durably here.
    case received = 0
    /// What of it counts here.
    case accepted = 1
    /// What the device has read back from the backend's ledger.
    case backend = 2
  }

  /// The last change of the author's own chain, whether it counts or not: who forgets must not do so below it.
  package struct OwnLast: Hashable, Sendable {
    package let replica: ReplicaID
    package let sequence: UInt64
    package init(replica: ReplicaID, sequence: UInt64) { (self.replica, self.sequence) = (replica, sequence) }
  }

  /// Whose word it is, and about what.
  package struct Subject: Hashable, Comparable, Sendable {
    package let device: PublicKey
    package let kind: Kind
    package init(device: PublicKey, kind: Kind) { (self.device, self.kind) = (device, kind) }
    package static func < (a: Subject, b: Subject) -> Bool {
      (a.device, a.kind.rawValue) < (b.device, b.kind.rawValue)
    }
  }

  package let fleet: FleetID
  package let device: PublicKey
  package let partition: PartitionName
  /// Greater than in any earlier record of this device, partition and kind.
  package let number: UInt64
  /// All chains, the author's own among them.
  package let vector: VersionVector
  package let kind: Kind
  /// Nil where the device never wrote in the partition.
  package let ownLast: OwnLast?

  /// Numbers stay below 2^53, as all ordinals do.
  package static let numberLimit: UInt64 = (1 << 53) - 1

  package init(
    fleet: FleetID, device: PublicKey, partition: PartitionName, number: UInt64, vector: VersionVector, kind: Kind,
    ownLast: OwnLast?
  ) {
    (self.fleet, self.device, self.partition) = (fleet, device, partition)
    (self.number, self.vector, self.kind, self.ownLast) = (number, vector, kind, ownLast)
  }

  package var subject: Subject { Subject(device: device, kind: kind) }
}

/// Holdings under the device's signature.
package struct SignedHoldings: Hashable, Sendable {
  package let holdings: Holdings
  package let signature: Signature

  package init(_ holdings: Holdings, signature: Signature) { (self.holdings, self.signature) = (holdings, signature) }
}

/// A record as it is kept: durable, with the time at which it came.
package struct KeptHoldings: Hashable, Sendable {
  package let signed: SignedHoldings
  /// When it came or was made, by this node's clock, in milliseconds since 1970.
  package let heard: Int64

  package init(_ signed: SignedHoldings, heard: Int64) { (self.signed, self.heard) = (signed, heard) }

  package var holdings: Holdings { signed.holdings }
}
