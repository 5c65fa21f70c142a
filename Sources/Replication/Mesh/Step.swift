/// What stands around the core at one event, as the shell knows it.
package struct Surroundings: Sendable {
  package let now: MonotonicTime
  /// For people and for words that are dated; nothing is decided by it.
  package let wallMilliseconds: Int64
  /// Own replica, of which no peer can show more than is here.
  package let ownReplica: ReplicaID?
  /// Own ones that rest and may be gone on under again: nor can anybody of these. A few.
  package let restingReplicas: [ReplicaID]
  /// The next own change stands under a new replica id: what peers say of the present one asks for nothing.
  package let isRenewalDue: Bool
  /// Payloads of which pieces are here. A pull names them, so that a cut costs no more than a piece.
  package let staged: StagedPayloads
  /// Chains of which the log does not give every run, by partition: this device does not say that it holds them.
  package let damaged: [PartitionID: Set<ReplicaID>]
  /// What is damaged of the log is known: nothing was before the start, or all of it was read over since.
  package let knowsDamage: Bool

  package init(
    now: MonotonicTime, wallMilliseconds: Int64 = 0, ownReplica: ReplicaID? = nil,
    restingReplicas: [ReplicaID] = [], isRenewalDue: Bool = false,
    staged: StagedPayloads = StagedPayloads(), damaged: [PartitionID: Set<ReplicaID>] = [:], knowsDamage: Bool = true
  ) {
    (self.now, self.wallMilliseconds) = (now, wallMilliseconds)
    (self.ownReplica, self.restingReplicas) = (ownReplica, restingReplicas)
    (self.isRenewalDue, self.staged) = (isRenewalDue, staged)
    (self.damaged, self.knowsDamage) = (damaged, knowsDamage)
  }

  /// Under these this node writes, now or again.
  var ownReplicas: [ReplicaID] { (ownReplica.map { [$0] } ?? []) + restingReplicas }

  func isOwn(_ replica: ReplicaID) -> Bool { replica == ownReplica || restingReplicas.contains(replica) }
}

/// One event's working set.
struct Step {
  let surroundings: Surroundings
  let configuration: MeshConfiguration
  private var storing: [Mesh.Directive] = []
  private var others: [Mesh.Directive] = []

  init(_ surroundings: Surroundings, _ configuration: MeshConfiguration) {
    (self.surroundings, self.configuration) = (surroundings, configuration)
  }

  var now: MonotonicTime { surroundings.now }

  /// What is to be stored goes first: by then the core has taken in all of it, and any other directive may read the log
  /// or tell of it.
  var directives: [Mesh.Directive] { storing + others }

  mutating func emit(_ directive: Mesh.Directive) {
    switch directive {
    case .store, .discard, .apply, .rebuild, .keep: storing.append(directive)
    default: others.append(directive)
    }
  }
}
