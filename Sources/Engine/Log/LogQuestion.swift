import Replication

/// A question that the core asks of the log.
enum LogQuestion {
  /// The runs that a peer lacks, in order of arrival.
  case lacking(SessionID, PartitionID, VersionVector, byteLimit: Int)
  /// Whether what the session has said is handed over. Asks nothing of the log, but has its turn as what is read for peers.
  case isSaid(SessionID)
  case chain(PartitionID, ReplicaID, from: UInt64, ChainPurpose)
  /// `isRest`: some of it was shown, and what is behind has time.
  case evidence(SessionID, PartitionID, ReplicaID, above: UInt64, isRest: Bool)
  /// Whether the device that asked to join is a member now, durably. Asks nothing of the log, but waits for
  /// the commit, too.
  case isAdmitted(SessionID, PublicKey, JoinAcceptance)

  /// For whom something is read.
  var session: SessionID? {
    switch self {
    case .lacking(let id, _, _, _), .isSaid(let id), .evidence(let id, _, _, _, _), .isAdmitted(let id, _, _): id
    case .chain: nil
    }
  }

  var needsEverythingStored: Bool {
    switch self {
    case .evidence, .isAdmitted: true
    case .lacking, .isSaid, .chain: false
    }
  }
}
