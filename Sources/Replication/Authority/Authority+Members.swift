extension Authority {
  /// Whose holder may sign memberships, beside root and admins.
  package var admissionKey: PublicKey? { members.genesis?.admissionKey }
  package var fleetName: Text? { members.genesis?.fleetName }

  /// All memberships of a device that count, in order of (sequence, id).
  package func members(of device: PublicKey) -> [Member] { members.byDevice[device, default: []] }

  /// The membership under which the device declares its next replica: its last.
  package func member(of device: PublicKey) -> Member? { members.byDevice[device]?.last }

  package func membership(_ id: Digest) -> Member? { members.members[id] }

  package func membership(for replica: ReplicaID) -> Member? { members.byReplica[replica] }

  /// The key that signs what this replica writes; nil unless a counting statement declares the replica.
  package func signer(of replica: ReplicaID) -> PublicKey? { members.byReplica[replica]?.device }

  /// Declared, but not by a device whose membership counts.
  package func isVoid(_ replica: ReplicaID) -> Bool { members.voidReplicas.contains(replica) }

  package func isAdmin(_ device: PublicKey) -> Bool { members.isAdmin(device) }
}
