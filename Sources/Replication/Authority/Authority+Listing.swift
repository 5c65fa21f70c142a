// For people.
extension Authority {
  /// Every counting membership, one per device: its last. In order of (sequence, id).
  package var allMembers: [Member] {
    members.byDevice.values.compactMap(\.last).sorted { $0.id < $1.id }
  }

  /// Replicas that the device declared and that count, in byte order.
  package func replicas(of device: PublicKey) -> [ReplicaID] {
    members.byReplica.filter { $0.value.device == device }.keys.sorted()
  }
}
