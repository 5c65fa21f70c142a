/// A change that writes again what another of the same device wrote on a branch that was lost (rule C22).
package struct Reissue: Hashable, Sendable {
  package let dot: Dot
  package let hash: Digest
  /// The first original.
  package let origin: ChangeOrigin

  package init(dot: Dot, hash: Digest, origin: ChangeOrigin) {
    (self.dot, self.hash, self.origin) = (dot, hash, origin)
  }
}

/// The re-issues known in a partition: rare, so all are remembered.
struct ReissueTable: Sendable {
  private(set) var all: Set<Reissue> = []
  /// By original: those whose device is also the original's.
  private(set) var groups: [ChangeOrigin: [Reissue]] = [:]
  /// Lowest original per chain: from there on the chain stays in its tree, where the original's hash can be looked up.
  private(set) var pins: [ReplicaID: UInt64] = [:]
  /// Highest original or re-issue per chain.
  private var reach: [ReplicaID: UInt64] = [:]

  /// By the hash of a re-issue.
  var origins: [Digest: ChangeOrigin] { Dictionary(all.map { ($0.hash, $0.origin) }) { first, _ in first } }

  /// A device speaks for its own writes alone.
  static func counts(_ origin: ChangeOrigin, in replica: ReplicaID, _ authority: Authority) -> Bool {
    guard origin.dot.sequence >= 1, let author = authority.author(of: replica) else { return false }
    return authority.author(of: origin.dot.replica) == author
  }

  mutating func insert(_ reissue: Reissue, _ authority: Authority) {
    guard all.insert(reissue).inserted else { return }
    group(reissue, authority)
  }

  /// Membership of replicas may have changed.
  mutating func regroup(_ authority: Authority) {
    groups.removeAll()
    pins.removeAll()
    reach.removeAll()
    for reissue in all { group(reissue, authority) }
  }

  private mutating func group(_ reissue: Reissue, _ authority: Authority) {
    guard ReissueTable.counts(reissue.origin, in: reissue.dot.replica, authority) else { return }
    groups[reissue.origin, default: []].append(reissue)
    let original = reissue.origin.dot
    pins[original.replica] = min(original.sequence, pins[original.replica] ?? .max)
    for dot in [original, reissue.dot] { reach[dot.replica] = max(dot.sequence, reach[dot.replica] ?? 0) }
  }

  /// May what counts of originals and re-issues be other than before the run came? Not where it only prolongs a chain
  /// above all of them, as nearly every run does.
  func mayBeMoved(by run: RunSummary, _ chain: Chain) -> Bool {
    guard let reach = reach[run.replica] else { return false }
    return run.first <= reach || !chain.tree.isEmpty
  }
}
