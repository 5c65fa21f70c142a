/// What has to be known elsewhere before a device's store may be destroyed (decision 41).
package struct WipeRules: Hashable, Sendable {
  /// So many other devices hold a change, where the backend does not.
  package var devices = 2
  /// A word that is older does not count.
  package var milliseconds: Int64 = 7 * 86_400_000

  package init() {}
}

/// A word about one partition, as far as it is known to speak of what is here.
package struct WipeWord: Sendable, Equatable {
  package enum Speaker: Sendable, Equatable {
    case other(PublicKey, Receipt.Standing)
    /// This very device's word about itself, which would go with it. Another replica of this device is this device.
    case own
    /// What this device's forwarder has read in the ledger.
    case ownReading
  }

  package let speaker: Speaker
  package let kind: Holdings.Kind
  /// Milliseconds since it was given; nil where this node's clock cannot tell.
  package let age: Int64?
  /// Of each chain so much, of the very branch that is here.
  package let reaches: [ReplicaID: UInt64]
  /// This device would hear a later word of the same speaker, which may take this one back.
  package let isHeard: Bool

  package init(
    speaker: Speaker, kind: Holdings.Kind, age: Int64?, reaches: [ReplicaID: UInt64], isHeard: Bool = true
  ) {
    (self.speaker, self.kind, self.age, self.reaches, self.isHeard) = (speaker, kind, age, reaches, isHeard)
  }

  /// Why a word does not count.
  package enum Flaw: String, Sendable, Equatable {
    case own, ended, forked, unentitled, barred, old, clock
    /// It does not say that the changes are held as they are here.
    case kind
    /// The partition is not wanted here any more: nobody tells this device what became of it since.
    case unheard
  }

  package func flaw(_ rules: WipeRules) -> Flaw? {
    switch speaker {
    case .own: return .own
    case .other(_, .ended): return .ended
    case .other(_, .forked): return .forked
    case .other(_, .unentitled): return .unentitled
    case .other(_, .barred): return .barred
    case .other(_, .member), .ownReading: break
    }
    guard kind != .accepted else { return .kind }
    guard isHeard else { return .unheard }
    guard let age else { return .clock }
    return age <= rules.milliseconds ? nil : .old
  }
}

/// What a node holds of one partition, and what it knows of others who do.
package struct WipeHolding: Sendable {
  package let partition: PartitionID
  package let name: PartitionName
  /// Of each chain all changes up to there are here.
  package let received: [ReplicaID: UInt64]
  /// Changes that are here beside those: on branches that were not chosen, of which no word speaks.
  package let apart: UInt64
  package let words: [WipeWord]

  package init(
    partition: PartitionID, name: PartitionName, received: [ReplicaID: UInt64], apart: UInt64, words: [WipeWord]
  ) {
    (self.partition, self.name, self.received, self.apart, self.words) = (partition, name, received, apart, words)
  }
}

/// What of a partition would be lost with this store, as far as is known: what cannot be known to be elsewhere would be.
package struct WipeJudgement: Sendable, Equatable {
  package let partition: PartitionID
  package let name: PartitionName
  package let changes: UInt64
  /// Of each chain changes above this one; only chains of which any would be lost.
  package let safeThrough: [ReplicaID: UInt64]
  package let lost: UInt64
  /// Of these, changes on branches that were not chosen.
  package let lostApart: UInt64
  /// Places in ``WipeHolding/words`` of what counts and speaks of anything that is here.
  package let evidence: [Int]

  package var isSafe: Bool { lost == 0 }

  package init(_ holding: WipeHolding, _ rules: WipeRules) {
    let words = CountedWords(holding, rules)
    var (lost, safeThrough) = (holding.apart, [ReplicaID: UInt64]())
    for (replica, last) in holding.received {
      let safe = words.safe(replica)
      guard safe < last else { continue }
      safeThrough[replica] = safe
      lost += last - safe
    }
    (partition, name, self.lost, lostApart) = (holding.partition, holding.name, lost, holding.apart)
    changes = holding.received.values.reduce(holding.apart, +)
    self.safeThrough = safeThrough
    evidence = words.evidence
  }
}

/// The words of a partition that count, and how far.
private struct CountedWords {
  private let words: [(offset: Int, element: WipeWord)]
  private let needed: Int
  /// What this device itself has read in the ledger last, as it knows or as it signed: the ledger may have gone back since others
  /// read it.
  private let lastReading: WipeWord?

  /// So long before its word somebody may have read the ledger, and so far ahead his clock may be.
  private static let doubt = Int64(HoldingsRules().readingMilliseconds) + Receipt.clockMilliseconds

  init(_ holding: WipeHolding, _ rules: WipeRules) {
    let all = holding.words
    words = all.enumerated().filter { $0.element.flaw(rules) == nil }
    needed = max(1, rules.devices)
    lastReading =
      all.first { $0.speaker == .ownReading } ?? all.first { $0.speaker == .own && $0.kind == .backend }
  }

  /// Places of those that speak of anything that is here.
  var evidence: [Int] {
    words.filter { word in word.element.reaches.keys.contains { reach(word.element, $0) > 0 } }.map(\.offset)
  }

  /// The backend has a change, or as many other devices as the rules want.
  func safe(_ replica: ReplicaID) -> UInt64 {
    let backend = words.lazy.filter { $0.element.kind == .backend }.map { reach($0.element, replica) }.max() ?? 0
    var devices: [PublicKey: UInt64] = [:]
    for word in words.lazy.map(\.element) where word.kind == .received {
      guard case .other(let device, _) = word.speaker else { continue }
      devices[device] = max(devices[device] ?? 0, reach(word, replica))
    }
    let held = devices.values.sorted(by: >)
    return max(backend, held.count >= needed ? held[needed - 1] : 0)
  }

  /// What another read in the ledger no later than this device counts as far as this device has read it too.
  private func reach(_ word: WipeWord, _ replica: ReplicaID) -> UInt64 {
    let said = word.reaches[replica] ?? 0
    guard word.kind == .backend, let lastReading, !isLater(word, than: lastReading) else { return said }
    return min(said, lastReading.reaches[replica] ?? 0)
  }

  private func isLater(_ word: WipeWord, than reading: WipeWord) -> Bool {
    guard let age = word.age, let before = reading.age else { return false }
    return age <= before - CountedWords.doubt
  }
}
