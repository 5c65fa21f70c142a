/// A rule of the protocol that a peer broke, and where: for people, who have to find the device that did it.
package struct BrokenRule: Sendable, Equatable {
  /// A run that it was about.
  package struct Place: Sendable, Equatable {
    package let partition: PartitionName
    package let replica: ReplicaID
    package let sequence: UInt64

    package init(partition: PartitionName, replica: ReplicaID, sequence: UInt64) {
      (self.partition, self.replica, self.sequence) = (partition, replica, sequence)
    }
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

extension Mesh {
  /// The same as any other end of a session, but for the note: it says who did what.
  mutating func fail(_ id: SessionID, breaking reason: String, _ place: BrokenRule.Place?, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let user = session.hello == nil ? nil : ledger.authority.member(of: session.peer)?.user
    let rule = BrokenRule(device: session.device, user: user, reason: reason, place: place)
    step.emit(.note(id, .ruleBroken(rule)))
    end(id, .protocolError, &step)
  }

  func place(_ run: DeliveredRun, in name: PartitionName) -> BrokenRule.Place {
    BrokenRule.Place(partition: name, replica: run.incoming.replica, sequence: run.incoming.first)
  }
}
