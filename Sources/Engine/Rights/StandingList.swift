import Replication

/// Lists for narrowings and raises what is here: of each partition how far chains count, and what devices signed (rule C12).
struct StandingList {
  private let state: EngineState

  init(_ state: EngineState) { self.state = state }

  private var authority: Authority { state.mesh.authority }

  /// Partitions whose changes come here as others write them: this node wants them and may hold them.
  var carried: [PartitionState] {
    state.mesh.partitions.values.filter { partition in
      state.mesh.interest.wants(partition.id, name: partition.name)
        && authority.level(of: state.identity.device, in: partition.name) >= .carry
    }.sorted { $0.name < $1.name }
  }

  var notCarried: [PartitionName] {
    let carried = Set(carried.map(\.id))
    return state.mesh.partitions.values.filter { !carried.contains($0.id) }.map(\.name).sorted()
  }

  /// How far chains count now, or as far as a cut lets them. Every carried partition has a group, so that none is spared
  /// for want of one.
  ///
  /// - Parameter everyChain: lists chains of which nothing is here with number 0: unlisted, an end that retires would
  ///   leave them without a bound.
  func ends(
    of replicas: [ReplicaID], in partitions: [PartitionState], by cut: ArrivalCut? = nil, everyChain: Bool
  ) throws -> [Statement.PartitionEnds] {
    try partitions.map { partition in
      let chains = try replicas.compactMap { replica -> Statement.ChainEnd? in
        let position = try self.position(of: replica, in: partition, cut)
        guard position.sequence > 0 || everyChain else { return nil }
        return Statement.ChainEnd(replica: replica, position: position)
      }
      return Statement.PartitionEnds(partition: partition.name.text, chains: chains)
    }
  }

  private func position(
    of replica: ReplicaID, in partition: PartitionState, _ cut: ArrivalCut?
  ) throws -> ChainPosition {
    let accepted = partition.log.accepted[replica] ?? .start
    guard let cut else { return accepted }
    guard partition.log.forkPoints[replica] == nil else { return try branchEnd(of: replica, in: partition, cut) }
    let last = cut.last(of: replica, in: partition.id)
    return last < accepted.sequence ? try position(of: replica, in: partition, at: last) : accepted
  }

  /// Where the branch of a forked chain ended, and as far as that counts, that is made of what had come: what a thief signed since
  /// beside it neither shortens it nor takes its place. Reads what had come of the chain above its trunk; where something of that
  /// does not read, nobody can tell, and it throws.
  private func branchEnd(
    of replica: ReplicaID, in partition: PartitionState, _ cut: ArrivalCut
  ) throws -> ChainPosition {
    let start = min(partition.log.trunk(of: replica).sequence, cut.last(of: replica, in: partition.id))
    let runs = try LogReader(state).summaries(partition.id, replica, from: max(1, start)) {
      cut.had($0, of: replica, in: partition.id)
    }
    // What its device said since falls with the end, and is not to choose a branch either.
    guard let end = partition.log.end(of: replica, from: start, knowing: runs, under: cut.authority) else {
      throw DamagedLog("a change that counts is not in the log")
    }
    return end
  }

  /// On the chosen branch, at a sequence that counts: memory may not reach down to it.
  private func position(
    of replica: ReplicaID, in partition: PartitionState, at sequence: UInt64
  ) throws -> ChainPosition {
    guard sequence > 0 else { return .start }
    if let known = partition.log.position(of: replica, at: sequence), known.sequence == sequence { return known }
    let runs = try LogReader(state).summaries(partition.id, replica, from: sequence)
    guard let run = runs.first(where: { $0.first <= sequence && $0.last >= sequence }) else {
      throw DamagedLog("a change that counts is not in the log")
    }
    return ChainPosition(sequence: sequence, tip: run.hashes[Int(sequence - run.first)].tip)
  }

  /// What is here of chains, where that is more than counts.
  func beyond(_ replicas: [ReplicaID]) -> [Statement.PartitionEnds] {
    carried.compactMap { partition in
      let chains = replicas.compactMap { replica -> Statement.ChainEnd? in
        guard let received = partition.log.received[replica],
          received.sequence > partition.log.accepted.sequence(of: replica)
        else { return nil }
        return Statement.ChainEnd(replica: replica, position: received)
      }
      return chains.isEmpty ? nil : Statement.PartitionEnds(partition: partition.name.text, chains: chains)
    }
  }
}
