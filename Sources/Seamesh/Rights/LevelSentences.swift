import Engine
import Identity
import Replication

/// Who could do what from then on, as people read it: partitions in which the same changes for the same devices share a sentence.
struct LevelSentences {
  private let foresight: LevelForesight
  private let own: PublicKey
  private let words: RightsWords
  private static let limit = 10

  init(_ foresight: LevelForesight, own: PublicKey) {
    (self.foresight, self.own, words) = (foresight, own, RightsWords(foresight.authority))
  }

  private struct Effect: Hashable {
    let before: AccessLevel
    let after: AccessLevel
    /// What the level rests on afterwards; none where it is less: by what something is left matters little then.
    let reasons: [Digest]

    init(_ forecast: LevelForecast) {
      (before, after) = (forecast.before, forecast.after)
      reasons = after < before ? [] : forecast.reasons
    }

    var isLess: Bool { after < before }
  }

  private struct Group: Hashable {
    let effect: Effect
    let devices: [PublicKey]
  }

  var sentences: [String] {
    var (order, partitions): ([Group], [Group: [String]]) = ([], [:])
    for forecast in foresight.partitions {
      for group in groups(forecast.devices) {
        if partitions[group] == nil { order.append(group) }
        partitions[group, default: []].append(forecast.partition.text.string)
      }
    }
    // Those that may do less are what matters.
    let groups = order.filter(\.effect.isLess) + order.filter { !$0.effect.isLess }
    var sentences = groups.prefix(LevelSentences.limit).map { sentence($0, in: partitions[$0, default: []]) }
    let rest = groups.count - sentences.count
    if rest > 0 { sentences.append(counted(rest, "more such change is", "more such changes are") + " not told here") }
    if foresight.untold > 0 {
      sentences.append(
        counted(foresight.untold, "more partition here was", "more partitions here were") + " not looked at")
    }
    return sentences
  }

  private func groups(_ forecasts: [LevelForecast]) -> [Group] {
    Dictionary(grouping: forecasts, by: Effect.init)
      .map { effect, forecasts in Group(effect: effect, devices: inOrder(forecasts.map(\.device))) }
      .sorted {
        ($0.effect.after, $0.effect.before, $0.devices[0]) < ($1.effect.after, $1.effect.before, $1.devices[0])
      }
  }

  /// This device first.
  private func inOrder(_ devices: [PublicKey]) -> [PublicKey] {
    let names = Dictionary(devices.map { ($0, name($0)) }) { first, _ in first }
    return names.keys.sorted { a, b in
      (a == own ? 0 : 1, names[a, default: ""], a) < (b == own ? 0 : 1, names[b, default: ""], b)
    }
  }

  private func name(_ device: PublicKey) -> String {
    words.name(of: device) + (device == own ? " (this device)" : "")
  }

  private func sentence(_ group: Group, in partitions: [String]) -> String {
    let (who, place) = (LevelSentences.list(group.devices.map(name)), LevelSentences.list(partitions))
    let (before, after) = (group.effect.before, group.effect.after)
    if after < before { return "from then on \(who) may no longer \(before.verb(in: place))\(after.rest)" }
    let reasons = LevelSentences.list(group.effect.reasons.map { words.words(of: $0) })
    let by = reasons.isEmpty ? "" : ", by \(reasons)"
    if after > before { return "from then on \(who) may \(after.verb(in: place))\(by)" }
    return "\(who) may still \(after.verb(in: place))\(by)"
  }

  /// The first ten, and how many others.
  static func list(_ names: [String]) -> String {
    let rest = names.count - limit
    let told = names.prefix(limit) + (rest > 0 ? [counted(rest, "other")] : [])
    guard let last = told.last, told.count > 1 else { return told.first ?? "" }
    return told.dropLast().joined(separator: ", ") + " and " + last
  }
}

extension AccessLevel {
  fileprivate func verb(in place: String) -> String {
    switch self {
    case .none: "do anything in \(place)"
    case .carry: "carry \(place)"
    case .read: "read \(place)"
    case .write: "write in \(place)"
    case .manage: "manage \(place)"
    }
  }

  /// What is left.
  fileprivate var rest: String {
    switch self {
    case .none: ", nor do anything else there"
    case .carry: ", only carry it"
    case .read: ", only read"
    case .write, .manage: ", only write"
    }
  }
}
