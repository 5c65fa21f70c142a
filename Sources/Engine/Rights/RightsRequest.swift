import Replication

/// What somebody wants to be true of rights from now on.
package enum RightsRequest: Sendable {
  /// Everyone whom the subject names has this level by it, no more and no less, whoever granted what before.
  case grant(Statement.Subject, AccessLevel, Text)
  /// A device is a member no longer.
  case end(PublicKey, EndManner, ArrivedBefore?)
  /// What ends and lowerings hold back, and is here, counts again.
  case raise([Digest])
  /// A member becomes an admin.
  case promote(PublicKey)

  package enum EndManner: String, Sendable, CaseIterable {
    /// It has done its work: what it wrote under chains that are not here counts as well, when it comes.
    case retire
    /// What it wrote beyond what is here is held, in partitions of which there is anything here.
    case revoke
    /// The same, and in partitions that are not carried here nothing of it counts.
    case compromised

    /// As the end notes it, which says by its reason alone that a device is compromised.
    var note: UInt8? {
      switch self {
      case .retire: 0
      case .revoke: 1
      case .compromised: nil
      }
    }
  }
}

extension Statement {
  /// As what this ends a device; nil where it does not, or does not say whether the device had done its work.
  package var endManner: RightsRequest.EndManner? {
    guard case .end(let end) = body, case .membership = end.target else { return nil }
    guard end.reason != .compromised else { return .compromised }
    guard let number = notes[StatementNotes.Key.endManner]?.first else { return nil }
    return RightsRequest.EndManner.allCases.first { $0.note == number }
  }
}

/// What had arrived here at a moment: beyond it nothing of a device counts.
package struct ArrivedBefore: Sendable {
  /// By partition and replica, the last change up to which everything had come, where something came later.
  package let changes: [PartitionID: [ReplicaID: UInt64]]
  /// Of those of these chains that had forked, the arrivals of the runs that came later: their numbers do not tell them from those
  /// of other branches.
  package let branched: [PartitionID: [ReplicaID: Set<Int64>]]
  /// The arrival of the last run of the log that was looked at. What is behind came later.
  package let end: Int64
  package let statements: Set<Digest>

  package init(
    changes: [PartitionID: [ReplicaID: UInt64]], branched: [PartitionID: [ReplicaID: Set<Int64>]], end: Int64,
    statements: Set<Digest>
  ) {
    (self.changes, self.branched, self.end, self.statements) = (changes, branched, end, statements)
  }
}

/// A key that can sign statements here.
package struct StatementAuthor: Sendable {
  package let key: PublicKey
  package let sign: @Sendable ([UInt8]) -> Signature

  package init(key: PublicKey, sign: @escaping @Sendable ([UInt8]) -> Signature) { (self.key, self.sign) = (key, sign) }
}

/// Statements that would bring about what was asked for, and what they would do.
package struct RightsPlan: Sendable {
  /// Empty where it is so already.
  package let statements: [Statement]
  package let author: PublicKey
  /// Whether they take anything away.
  package let isNarrowing: Bool
  /// Of each partition carried here what would count no longer, in byte order of the names; those that lose nothing too.
  package let falls: [PartitionFall]
  /// Names of partitions that were met and are not carried here.
  package let notCarried: [PartitionName]
  /// Nobody would be an admin any more.
  package let leavesNoAdmin: Bool
  /// In which they count.
  package let authority: Authority
}

/// What of a partition would count no longer, or again.
package struct PartitionFall: Sendable {
  package let name: PartitionName
  package var lostChanges = 0
  package var gainedChanges = 0
  /// Documents that those changes write.
  package var documents = 0
}

/// Why nothing was signed.
package enum RightsError: Error, Hashable, Sendable {
  /// Neither this device nor a key beside it may say this.
  case noRightToSign
  /// Only what the fleet's root signs counts here.
  case needsRoot
  case notAMember
  case alreadyEnded
  /// No end and no lowering has this id.
  case nothingToRaise
  case tooManyStatements
}

extension RightsError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .noRightToSign:
      "this device may not decide this: only the fleet's admins may, and managers below manage within what they manage"
    case .needsRoot: "only the fleet's root key can sign this, and it is not in this data directory"
    case .notAMember: "this device is no member of the fleet"
    case .alreadyEnded: "the device is no member any more: nothing is left to end"
    case .nothingToRaise: "nothing holds anything back here that could be raised"
    case .tooManyStatements: "the fleet has as many statements as it can have"
    }
  }
}
