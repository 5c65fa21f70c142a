@testable import Replication
@testable import Simulation

// The naive reading of statements against the shipped one.

extension NaiveRights {
  /// What the naive reading says differently of anything that a history asks for; nil: nothing.
  func difference(_ authority: Authority, _ history: RightsHistory) throws -> String? {
    let odd = history.statements.first { statements.contains($0.id) != authority.holds($0.id) }
    if let odd { return "in one set alone: \(Named.name(odd.issuer.bytes)) \(odd.sequence) \(odd.body)" }
    if isInDoubt != authority.isInDoubt { return "doubt: \(isInDoubt)" }
    for name in history.partitions {
      let partition = try PartitionName(name)
      let difference =
        RightsHistory.replicas.lazy.compactMap { self.difference(authority, $0, in: partition) }.first
        ?? RightsHistory.devices.lazy.compactMap { self.difference(authority, of: $0, in: partition) }.first
      if let difference { return "\(name.string): \(difference)" }
    }
    return nil
  }

  private func difference(_ authority: Authority, of device: String, in partition: PartitionName) -> String? {
    let levels = (
      level(of: Named.key(device), in: partition.text), authority.level(of: Named.key(device), in: partition)
    )
    return levels.0 == levels.1 ? nil : "level of \(device): \(levels)"
  }
}

extension NaiveRights {
  /// What the naive reading of the statements says differently of one replica; nil: nothing.
  func difference(_ authority: Authority, _ replica: ReplicaID, in partition: PartitionName) -> String? {
    let (naive, shipped) = (limits(of: replica, in: partition.text), authority.limits(of: replica, in: partition))
    let name = Named.name(replica.bytes)
    let isSame =
      naive.bound == NaivePosition(shipped.bound) && naive.branch == NaivePosition(shipped.branch)
      && naive.reason.rawValue == shipped.reason.rawValue
    if !isSame { return "limits of \(name): \(naive), \(shipped)" }
    for sequence in 1...8 as ClosedRange<UInt64> {
      for own in RightsHistory.ownDocuments {
        let reasons = (
          naive.reason(against: ObservedChange(own), at: sequence)?.rawValue,
          shipped.reason(against: own, at: sequence)?.rawValue
        )
        if reasons.0 != reasons.1 { return "change \(sequence) of \(name) that writes \(own as Any): \(reasons)" }
      }
    }
    let floors = (floor(of: replica, in: partition.text), authority.floor(of: replica, in: partition))
    if floors.0 != floors.1 { return "floor of \(name): \(floors)" }
    let signers = (signer(of: replica), authority.signer(of: replica))
    return signers.0 == signers.1 ? refusal(authority, replica, in: partition) : "signer of \(name)"
  }

  private func refusal(_ authority: Authority, _ replica: ReplicaID, in partition: PartitionName) -> String? {
    for own in RightsHistory.ownDocuments {
      let run = RunSummary(
        partition: partition, replica: replica, first: 1, hashBefore: .zero, hashes: [Named.digest("change")],
        context: VersionVector(), signer: signer(of: replica) ?? Named.root, facts: [ChangeFacts(ownDocument: own)])
      let refusals = (
        limits(of: replica, in: partition.text).refusal(of: ObservedRun(run, content: true))?.rawValue,
        authority.refusal(of: run, genesis: .zero)?.rawValue
      )
      guard refusals.0 == refusals.1 else {
        return "refusal of \(Named.name(replica.bytes)) that writes \(own as Any): \(refusals)"
      }
    }
    return nil
  }
}

extension NaivePosition {
  init(_ position: ChainPosition) { self.init(sequence: position.sequence, tip: position.tip) }
}

extension ObservedChange {
  init(_ own: OwnDocument?) {
    self.init(hash: .zero, own: own.map { OwnWrites(user: $0.user, otherFields: $0.otherFields) })
  }
}

extension ChainLimits {
  /// What holds a change whose kind is known.
  func reason(against own: OwnDocument?, at sequence: UInt64) -> HoldReason? {
    if sequence > bound.sequence { return reason }
    if sequence > known { return lack }
    return fitsDocumentRule(own, at: sequence) ? nil : .documentRule
  }
}
