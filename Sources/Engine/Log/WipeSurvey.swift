import Replication
import Wire

/// What would be lost with this store, with some of the documents concerned.
package struct WipeSurvey: Sendable {
  package var holdings: [WipeHolding] = []
  package var judgements: [WipeJudgement] = []
  /// The log is not what memory takes it to be, or nobody can tell.
  package var hasFailed = false
  /// Devices that could take a partition now, for the first of the ``losses``.
  package var hearers: [PartitionID: [PublicKey]] = [:]
  /// Members with which there is a session, whatever they take.
  package var inReach: [PublicKey] = []
  /// Of the same partitions, those that this node does not want any more: it hears of no word about them.
  package var unheard: Set<PartitionID> = []
  /// A few documents that changes wrote that would be lost, for the same partitions.
  package var documents: [PartitionID: [DocumentKey]] = [:]

  package var isSafe: Bool { !hasFailed && judgements.allSatisfy(\.isSafe) }

  /// Partitions of which something would be lost, those with the most changes first: as they are told one by one.
  package var losses: [WipeJudgement] {
    judgements.filter { !$0.isSafe }.sorted { ($0.lost, $0.name.text) > ($1.lost, $1.name.text) }
  }

  /// Documents of one partition, and partitions that are looked into and told one by one.
  package static let documentLimit = 3
  package static let partitionLimit = 16
  fileprivate static let readByteCount = 65_536
}

extension NodeEngine {
  /// Of one moment: what is written after it is not judged.
  package func wipeSurvey(_ rules: WipeRules) -> WipeSurvey {
    var survey = WipeSurvey()
    survey.hasFailed = failure != nil
    let forked = state.mesh.ledger.forkedDevices
    for partition in state.mesh.partitions.keys.sorted() {
      guard let holding = wipeHolding(of: partition, forked) else { continue }
      survey.holdings.append(holding)
      survey.judgements.append(WipeJudgement(holding, rules))
    }
    let live = state.mesh.sessions.values.lazy.filter { $0.phase == .live }.map(\.peer)
    survey.inReach = Set(live).filter { !state.mesh.authority.isEnded($0) }.sorted()
    for loss in survey.losses.prefix(WipeSurvey.partitionLimit) {
      survey.hearers[loss.partition] = state.mesh.hearers(of: loss.partition)
      if !state.mesh.interest.wants(loss.partition, name: loss.name) { survey.unheard.insert(loss.partition) }
      survey.documents[loss.partition] = documents(of: loss)
    }
    return survey
  }

  /// Changes that are not known to be elsewhere.
  package func lostIfWiped(_ rules: WipeRules) -> UInt64 {
    let forked = state.mesh.ledger.forkedDevices
    return state.mesh.partitions.keys.reduce(0) { lost, partition in
      lost + (wipeHolding(of: partition, forked).map { WipeJudgement($0, rules).lost } ?? 0)
    }
  }

  private func wipeHolding(of partition: PartitionID, _ forked: Set<PublicKey>) -> WipeHolding? {
    let tips = StoredTips(self, partition)
    return state.mesh.wipeHolding(of: partition, state.surroundings, forked: forked, stored: { tips.tip($0, $1) })
  }

  private func documents(of judgement: WipeJudgement) -> [DocumentKey] {
    let reader = RunReader(state.identity)
    var found: [DocumentKey] = []
    for (replica, safe) in judgement.safeThrough.sorted(by: { $0.key < $1.key }) {
      let chain = ChainIdentity(fleet: state.identity.fleet, partition: judgement.partition, replica: replica)
      let runs = (try? state.store.runs(of: chain, after: safe, byteLimit: WipeSurvey.readByteCount)) ?? []
      for run in runs {
        let written =
          (try? reader.documents(
            writtenBy: run.body, in: judgement.partition, apart: state.store.largePayload)) ?? []
        for key in written where !found.contains(key) {
          found.append(key)
          if found.count == WipeSurvey.documentLimit { return found }
        }
      }
    }
    return found
  }
}
