// For people.
extension Authority {
  /// Every counting membership, one per device: its last. In order of (sequence, id).
  package var allMembers: [Member] {
    members.byDevice.values.compactMap(\.last).sorted { $0.id < $1.id }
  }

  /// The roles that a device has by all memberships of it that stand; where none does, those that it had. An admin's first, the
  /// others in byte order: which of its memberships was signed or heard of first changes nothing.
  package func roles(of device: PublicKey) -> [Text] {
    let standing = standingMemberships(of: device)
    let roles = Set((standing.isEmpty ? members(of: device) : standing).map(\.membership.role))
    return roles.sorted { a, b in (a == Authority.adminRole ? 0 : 1, a) < (b == Authority.adminRole ? 0 : 1, b) }
  }

  /// The first of ``roles(of:)``, for where there is room for one.
  package func role(of device: PublicKey) -> Text { roles(of: device).first ?? "" }

  /// Replicas that the device declared and that count, in byte order.
  package func replicas(of device: PublicKey) -> [ReplicaID] {
    members.byReplica.filter { $0.value.device == device }.keys.sorted()
  }
}
