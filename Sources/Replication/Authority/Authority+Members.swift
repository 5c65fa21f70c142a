extension Authority {
  /// The role that makes admins, where root gave it.
  package static let adminRole = MemberTable.adminRole

  package var fleetName: Text? { members.genesis?.fleetName }

  /// All memberships of a device that count, in order of (sequence, id).
  package func members(of device: PublicKey) -> [Member] { members.byDevice[device, default: []] }

  /// The membership under which the device declares its next replica: its last.
  package func member(of device: PublicKey) -> Member? { members.byDevice[device]?.last }

  /// Whether a device is a member here that is none there.
  package func hasMembers(beyond other: Authority) -> Bool {
    members.byDevice.keys.contains { other.members.byDevice[$0] == nil }
  }

  package func membership(_ id: Digest) -> Member? { members.members[id] }

  package func membership(for replica: ReplicaID) -> Member? {
    if case .member(let member)? = members.byReplica[replica] { member } else { nil }
  }

  /// The key that signs what this replica writes; nil unless a counting statement declares the replica.
  package func signer(of replica: ReplicaID) -> PublicKey? { members.byReplica[replica]?.device }

  /// The device that the replica was made for, whatever counts of its statements now; nil where none declared it.
  package func author(of replica: ReplicaID) -> PublicKey? { members.authors[replica] }

  /// Declared, but not by a device whose membership counts.
  package func isVoid(_ replica: ReplicaID) -> Bool { members.voidReplicas.contains(replica) }

  /// Root, or a device that root made an admin and whose word still counts for what it says next.
  package func isAdmin(_ device: PublicKey) -> Bool {
    device == root
      || members(of: device).contains { members.isEverAdminMembership($0.id) && members.isUnbounded($0.id) }
  }

  /// The user of the membership under which an invitation to a room was signed.
  func inviter(_ statement: Statement) -> Text? {
    guard case .invitation(let invitation) = statement.body else { return nil }
    return self[invitation.by]?.member?.user
  }
}
