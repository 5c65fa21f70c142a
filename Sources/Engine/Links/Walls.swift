import Replication

/// Tells in the log what this node and a peer do not share, since one of them may not have it: once for each device, and again
/// when statements have changed.
struct Walls {
  private var told: [DeviceID: Digest] = [:]
  /// Devices of which it is remembered that they were told of; beyond these a line comes again. More than a fleet has.
  private static let limit = 4_096

  /// What is wanted and may be carried here, and may not be told to the peer. Nil where it was told, or there is nothing.
  mutating func raised(towards session: PeerSession, in state: EngineState) -> (count: Int, first: PartitionName)? {
    let (authority, own) = (state.mesh.authority, state.identity.device)
    let digest = authority.digest(state.identity.cryptography.hash)
    guard told[session.device] != digest else { return nil }
    if told.count >= Walls.limit { told = [:] }
    told[session.device] = digest
    var (count, first): (Int, PartitionName?) = (0, nil)
    for partition in state.mesh.partitions.values {
      let name = partition.name
      guard state.mesh.interest.wants(partition.id, name: name), authority.level(of: session.peer, in: name) < .carry,
        authority.level(of: own, in: name) >= .carry
      else { continue }
      count += 1
      first = first.map { min($0, name) } ?? name
    }
    return first.map { (count, $0) }
  }
}
