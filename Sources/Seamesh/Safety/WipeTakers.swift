import Engine
import Replication

/// Who has what would be lost of a partition, and who could take it.
struct WipeTakers {
  /// They have all of it by words that count, and are fewer than are asked for.
  let holding: [PublicKey]
  /// In reach, and not known to have all of it.
  let lacking: [PublicKey]
  private let name: String
  private let isUnheard: Bool
  /// In reach, and not to be handed the partition.
  private let unwilling: [PublicKey]

  init(_ judgement: WipeJudgement, _ survey: WipeSurvey, _ rules: WipeRules) {
    let partition = judgement.partition
    let holding = WipeTakers.holders(judgement, survey.holdings.first { $0.partition == partition }, rules)
    let hearers = survey.hearers[partition] ?? []
    // What lies on branches that were not chosen nobody can take over by a word.
    let canBeTaken = judgement.lost > judgement.lostApart
    // Of branches that were not chosen a word tells nothing: who has all others may lack those.
    self.holding = judgement.lostApart > 0 ? [] : holding.sorted()
    lacking = canBeTaken ? hearers.filter { !holding.contains($0) } : []
    name = judgement.name.text.string
    isUnheard = survey.unheard.contains(partition)
    unwilling = canBeTaken ? survey.inReach.filter { !hearers.contains($0) && !holding.contains($0) } : []
  }

  private static func holders(
    _ judgement: WipeJudgement, _ holding: WipeHolding?, _ rules: WipeRules
  ) -> Set<PublicKey> {
    guard let holding, !judgement.safeThrough.isEmpty else { return [] }
    return Set(
      holding.words.compactMap { word in
        guard case .other(let device, _) = word.speaker, word.kind == .received, word.flaw(rules) == nil else {
          return nil
        }
        let hasAll = judgement.safeThrough.keys.allSatisfy { replica in
          (word.reaches[replica] ?? 0) >= (holding.received[replica] ?? 0)
        }
        return hasAll ? device : nil
      })
  }

  /// Why waiting may bring nothing.
  func hindrances(_ label: (PublicKey) -> String) -> [String] {
    if isUnheard {
      return [
        "this device does not subscribe to it any more, so that no word about it counts: seamesh subscribe \(name)"
      ]
    }
    guard lacking.isEmpty, !unwilling.isEmpty else { return [] }
    let names = LevelSentences.list(unwilling.map(label))
    return [
      "in reach without being handed it: \(names); it takes a subscription there, the right to hold it at both ends, and "
        + "a link that passes it"
    ]
  }
}
