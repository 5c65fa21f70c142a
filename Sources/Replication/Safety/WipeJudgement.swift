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
    let words = holding.words.enumerated().filter { $0.element.flaw(rules) == nil }
    var (lost, safeThrough) = (holding.apart, [ReplicaID: UInt64]())
    for (replica, last) in holding.received {
      let safe = WipeJudgement.safe(words.map(\.element), replica, rules)
      guard safe < last else { continue }
      safeThrough[replica] = safe
      lost += last - safe
    }
    (partition, name, self.lost, lostApart) = (holding.partition, holding.name, lost, holding.apart)
    changes = holding.received.values.reduce(holding.apart, +)
    self.safeThrough = safeThrough
    evidence = words.filter { word in word.element.reaches.contains { $0.value > 0 } }.map(\.offset)
  }

  /// The backend has a change, or as many other devices as the rules want.
  private static func safe(_ words: [WipeWord], _ replica: ReplicaID, _ rules: WipeRules) -> UInt64 {
    // What this device has read there itself goes before what others said earlier: the ledger may have gone back since.
    let ownAge = words.first { $0.speaker == .ownReading && $0.reaches[replica] != nil }?.age ?? .max
    let backend =
      words.lazy.filter { $0.kind == .backend && $0.age ?? .max <= ownAge }.map { $0.reaches[replica] ?? 0 }.max() ?? 0
    var devices: [PublicKey: UInt64] = [:]
    for word in words where word.kind == .received {
      guard case .other(let device, _) = word.speaker else { continue }
      devices[device] = max(devices[device] ?? 0, word.reaches[replica] ?? 0)
    }
    let needed = max(1, rules.devices)
    let held = devices.values.sorted(by: >)
    return max(backend, held.count >= needed ? held[needed - 1] : 0)
  }
}
