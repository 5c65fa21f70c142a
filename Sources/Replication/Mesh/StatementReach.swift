/// How far statements reach that let nobody do or hold anything else than before, but for new devices and in the rooms that they
/// are of: with many partitions it takes long to look at every chain and every stream for each of those.
struct StatementReach {
  private(set) var replicas: Set<ReplicaID> = []
  private(set) var devices: Set<PublicKey> = []
  private(set) var rooms: Set<PartitionName> = []

  /// Nil where more may be moved than what is named in them.
  init?(_ fresh: [Statement], _ before: Authority) {
    for statement in fresh {
      switch statement.body {
      case .replica(let declaration): replicas.insert(declaration.replica)
      case .membership(let membership):
        // What it said already may count from now on, and another membership of a device moves its chains.
        guard membership.role != Authority.adminRole, before.members(of: membership.device).isEmpty,
          !before.allStatements.contains(where: { $0.issuer == membership.device })
        else { return nil }
        devices.insert(membership.device)
      default:
        guard statement.movesItsRoomAlone, let room = PartitionName(roomOf: statement.scope) else { return nil }
        rooms.insert(room)
      }
    }
  }

  /// Devices with which something else may be in common than before; nil: all.
  var concerned: Set<PublicKey>? { rooms.isEmpty ? devices : nil }

  /// Nobody is declared or made a member.
  var isOfRoomsAlone: Bool { replicas.isEmpty && devices.isEmpty }
}
