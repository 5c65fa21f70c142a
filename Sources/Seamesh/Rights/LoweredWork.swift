import Engine
import Replication

/// What a device that still stands wrote where its right had been lowered, and is held for that.
struct LoweredWork: Sendable {
  /// Its label.
  let device: String
  var changes: Int64
  /// What lowered it, in words.
  var words: [String]
  /// Beginnings of ids by which `raise` takes those that have to be raised. Where several took the right away and one raise lets all of
  /// it count, that one alone.
  var narrowings: [String]
}

/// Finds out what lowered rights hold, from what each partition holds.
struct LoweredRights {
  private let authority: Authority
  private let words: RightsWords
  private let isMeant: (PublicKey) -> Bool
  private var counts: [PublicKey: Int64] = [:]
  private struct Place: Hashable {
    let membership: Digest
    let partition: PartitionName
  }
  /// What closed the right in each place, by the grant or rule that it closed: one set of each place has to be raised.
  private var closers: [PublicKey: [Place: [Set<Digest>]]] = [:]

  /// Of devices that are meant alone.
  init(_ authority: Authority, where isMeant: @escaping (PublicKey) -> Bool) {
    (self.authority, words, self.isMeant) = (authority, RightsWords(authority), isMeant)
  }

  /// By the label of the device.
  var work: [LoweredWork] {
    counts.map { device, count in
      let closers = closers[device, default: [:]]
        .sorted { ($0.key.partition, $0.key.membership) < ($1.key.partition, $1.key.membership) }.map(\.value)
      let causes = Set(closers.joined().joined()).sorted()
      return LoweredWork(
        device: words.name(of: device), changes: count, words: causes.map { words.words(of: $0) },
        narrowings: LoweredRights.enough(of: closers).sorted().map(\.shortText))
    }.sorted { ($0.device, $0.changes) < ($1.device, $1.changes) }
  }

  /// What has to be raised for work in all of the places to count: one set that does for all where there is one, else of each
  /// place the first that it has.
  private static func enough(of closers: [[Set<Digest>]]) -> Set<Digest> {
    if let common = closers.first?.first(where: { ids in closers.allSatisfy { $0.contains(ids) } }) { return common }
    return closers.reduce(into: []) { chosen, ways in
      guard !ways.contains(where: chosen.isSuperset), let first = ways.first else { return }
      chosen.formUnion(first)
    }
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
      let found = authority.closersOfWriting(of: member, in: partition)
      guard !found.isEmpty else { continue }
      closers[member.device, default: [:]][Place(membership: member.id, partition: partition)] = found
    }
  }
}
