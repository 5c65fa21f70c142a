import Replication

/// What the core asks of the log.
enum LogQuestion {
  /// What a peer lacks, in order of arrival.
  case lacking(SessionID, PartitionID, VersionVector, byteLimit: Int)
  case chain(PartitionID, ReplicaID, from: UInt64, ChainPurpose)
  case evidence(SessionID, PartitionID, ReplicaID, above: UInt64)
  /// Is the device that asked to join a member now, durably?
  case isAdmitted(SessionID, PublicKey)

  var needsEverythingStored: Bool {
    switch self {
    case .evidence, .isAdmitted: true
    case .lacking, .chain: false
    }
  }
}
