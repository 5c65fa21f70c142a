/// A rule of the protocol that a peer broke, and where: for people, who have to find the device that did it.
package struct BrokenRule: Sendable, Equatable {
  /// What it was about.
  package struct Place: Sendable, Equatable {
    package let partition: PartitionName
    /// Nil where the message names none, as a piece of a payload does not.
    package let change: Dot?

    package init(partition: PartitionName, replica: ReplicaID, sequence: UInt64) {
      (self.partition, change) = (partition, Dot(replica: replica, sequence: sequence))
    }

    package init(partition: PartitionName) { (self.partition, change) = (partition, nil) }
  }

  package let device: DeviceID
  /// Whom the device acts for, where it is a member. Nil: a stranger, whom no name tells from others.
  package let user: Text?
  /// What it did, as a sentence goes on.
  package let reason: String
  package let place: Place?

  package init(device: DeviceID, user: Text?, reason: String, place: Place? = nil) {
    (self.device, self.user, self.reason, self.place) = (device, user, reason, place)
  }
}

/// Why this side ends a session. A breach of the protocol is the peer's, and noted as such.
struct SessionEnd: Error, Sendable {
  let goodbye: Goodbye
  /// What the peer did, as a sentence goes on.
  let why: String
  /// What a breach is about.
  let place: BrokenRule.Place?

  init(_ goodbye: Goodbye, _ why: String, at place: BrokenRule.Place? = nil) {
    (self.goodbye, self.why, self.place) = (goodbye, why, place)
  }

  static func breach(_ why: String, at place: BrokenRule.Place? = nil) -> SessionEnd {
    SessionEnd(.protocolError, why, at: place)
  }
  static let outOfTurn = breach("a message out of turn")
  static let notAMember = SessionEnd(.notAMember, "not a member of this fleet")
}
