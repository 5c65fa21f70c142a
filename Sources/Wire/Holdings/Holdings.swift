import Replication

/// What a device says, under its signature, that it holds of one partition.
///
/// No statement: of one device, partition and kind the record with the greatest number stands in place of all others.
package struct Holdings: Hashable, Sendable {
  package enum Kind: UInt64, Sendable {
    /// Durably here.
    case received = 0
    /// What of it counts here.
    case accepted = 1
  }

  /// The last change of the author's own chain, whether it counts or not: who forgets must not do so below it.
  package struct OwnLast: Hashable, Sendable {
    package let replica: ReplicaID
    package let sequence: UInt64
    package init(replica: ReplicaID, sequence: UInt64) { (self.replica, self.sequence) = (replica, sequence) }
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

  package init(
    fleet: FleetID, device: PublicKey, partition: PartitionName, number: UInt64, vector: VersionVector, kind: Kind,
    ownLast: OwnLast?
  ) {
    (self.fleet, self.device, self.partition) = (fleet, device, partition)
    (self.number, self.vector, self.kind, self.ownLast) = (number, vector, kind, ownLast)
  }
}

/// Holdings under the device's signature.
package struct SignedHoldings: Hashable, Sendable {
  package let holdings: Holdings
  package let signature: Signature

  package init(_ holdings: Holdings, signature: Signature) { (self.holdings, self.signature) = (holdings, signature) }

  package func isSigned(_ verify: (Signature, [UInt8], PublicKey) -> Bool) -> Bool {
    verify(signature, HoldingsCodec.signedBytes(holdings), holdings.device)
  }
}
