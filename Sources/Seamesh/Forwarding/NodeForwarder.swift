import Replication

/// Whoever forwards what this node holds. The node knows nothing else of it: a program that embeds a node need not have one.
package protocol NodeForwarder: AnyObject, Sendable {
  var status: ForwardingStatus { get }
  /// What the backend refuses now, so many at the most.
  func refused(most count: Int) -> [RefusedChain]
  /// Statements that it refuses, so many at the most.
  func refusedStatements(most count: Int) -> [RefusedStatementStatus]
  /// Tries at once, where it would wait.
  func sendNow()
}

/// A chain that is left out, since the backend refuses something of it.
package struct RefusedChain: Equatable, Sendable {
  package let partition: PartitionID
  package let replica: ReplicaID
  /// Of the run that it refuses; nil: how far the chain counts.
  package let changes: ClosedRange<UInt64>?
  /// The backend's words.
  package let reason: String

  package init(partition: PartitionID, replica: ReplicaID, changes: ClosedRange<UInt64>?, reason: String) {
    (self.partition, self.replica, self.changes, self.reason) = (partition, replica, changes, reason)
  }

  /// In one answer; ``ForwardingStatus/putAside`` counts all.
  static let limit = 1_024
}

/// The same for people.
package struct RefusedRunStatus: Equatable, Sendable {
  /// Empty where its name has not been learnt.
  package let partition: String
  package let replica: String
  /// Numbers of its changes; nil: the backend refuses how far the chain counts.
  package let first: UInt64?
  package let last: UInt64?
  package let reason: String

  package init(partition: String, replica: String, first: UInt64?, last: UInt64?, reason: String) {
    (self.partition, self.replica, self.first, self.last) = (partition, replica, first, last)
    self.reason = reason
  }
}

/// A statement that the backend refuses, for people.
package struct RefusedStatementStatus: Equatable, Sendable {
  /// Hash of its signed bytes.
  package let id: String
  /// The device that signed it.
  package let issuer: String
  /// Its place among those of its issuer in the same scope.
  package let number: UInt64
  /// Empty: a statement of the fleet.
  package let room: String
  /// The backend's words.
  package let reason: String

  package init(id: String, issuer: String, number: UInt64, room: String, reason: String) {
    (self.id, self.issuer, self.number, self.room, self.reason) = (id, issuer, number, room, reason)
  }

  /// In one answer; ``ForwardingStatus/putAside`` counts all.
  static let limit = 1_024
}
