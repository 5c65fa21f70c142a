import Replication

/// What may be done in a partition. Each level holds those before it.
public enum PartitionAccess: String, Sendable, Comparable, CaseIterable {
  case none
  /// To hold it and pass it on.
  case carry
  case read
  case write
  /// To grant the lower levels in it.
  case manage

  public static func < (a: PartitionAccess, b: PartitionAccess) -> Bool { a.level < b.level }

  init(_ level: AccessLevel) {
    self =
      switch level {
      case .none: .none
      case .carry: .carry
      case .read: .read
      case .write: .write
      case .manage: .manage
      }
  }

  var level: AccessLevel {
    switch self {
    case .none: .none
    case .carry: .carry
    case .read: .read
    case .write: .write
    case .manage: .manage
    }
  }
}

/// A right that this device would have needed.
public struct LackOfRight: Sendable, Equatable {
  public let partition: String
  /// What it may do there.
  public let has: PartitionAccess
  public let needs: PartitionAccess
}

/// To whom rights are granted.
public enum RightsSubject: Sendable, Equatable {
  /// By its label, or the beginning of its key.
  case device(String)
  case user(String)
  case role(String)
  case everyone

  var text: String {
    switch self {
    case .device(let name): "device:" + name
    case .user(let user): "user:" + user
    case .role(let role): "role:" + role
    case .everyone: "everyone"
    }
  }
}

/// What a change of rights did, or would do.
public struct RightsEffect: Sendable, Equatable {
  public struct Partition: Sendable, Equatable {
    public let name: String
    /// Changes that count no longer, and those that count again.
    public let lostChanges: Int
    public let gainedChanges: Int
    /// Documents that these write.
    public let documents: Int
  }

  /// False where it was only asked what would happen, or it is so already.
  public let isSigned: Bool
  /// Those in which something changes.
  public let partitions: [Partition]
  /// Partitions that were met and are not carried here.
  public let notCarried: [String]
  /// What has to be confirmed before it is signed, as sentences.
  public let warnings: [String]

  init(_ outcome: RightsOutcome) {
    isSigned = outcome.isSigned
    partitions = outcome.falls.filter { $0.lostChanges + $0.gainedChanges > 0 }.map {
      Partition(
        name: $0.partition, lostChanges: $0.lostChanges, gainedChanges: $0.gainedChanges, documents: $0.documents)
    }
    (notCarried, warnings) = (outcome.notCarried, outcome.warnings)
  }
}
