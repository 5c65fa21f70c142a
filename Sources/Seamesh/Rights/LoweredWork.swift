import Engine
import Replication

/// What a device that still stands wrote where its right had been lowered, and is held for that.
struct LoweredWork: Sendable {
  /// Its label.
  let device: String
  var changes: Int64
  /// What lowered it, in words.
  var words: [String]
  /// Beginnings of ids by which `raise` takes them.
  var narrowings: [String]
}

/// Finds out what lowered rights hold, from what each partition holds.
struct LoweredRights {
  private let authority: Authority
  private let words: RightsWords
  private let isMeant: (PublicKey) -> Bool
  private var counts: [PublicKey: Int64] = [:]
  private var causes: [PublicKey: Set<Digest>] = [:]

  /// Of devices that are meant alone.
  init(_ authority: Authority, where isMeant: @escaping (PublicKey) -> Bool) {
    (self.authority, words, self.isMeant) = (authority, RightsWords(authority), isMeant)
  }

  /// By the label of the device.
  var work: [LoweredWork] {
    counts.map { device, count in
      let ids = causes[device, default: []].sorted()
      return LoweredWork(
        device: words.name(of: device), changes: count, words: ids.map { words.words(of: $0) },
        narrowings: ids.map(\.shortText))
    }.sorted { ($0.device, $0.changes) < ($1.device, $1.changes) }
  }

  /// Of changes above what closed a right of their author, and those that wait behind them in the same chain.
  ///
  /// - Parameter held: in the order of the chains.
  mutating func note(_ held: [HeldChange], in partition: PartitionName) {
    var chains: [ReplicaID: Int64] = [:]
    for change in held {
      let replica = change.dot.replica
      // What closes a chain comes before what waits behind it.
      if change.reason == .aboveLimit || change.reason == .afterHeld && chains[replica] != nil {
        chains[replica, default: 0] += 1
      }
    }
    for (replica, count) in chains {
      guard let member = authority.membership(for: replica), isMeant(member.device),
        authority.ends(of: .membership(member.id)).isEmpty
      else { continue }
      counts[member.device, default: 0] += count
      causes[member.device, default: []].formUnion(authority.closersOfWriting(of: member, in: partition))
    }
  }
}
